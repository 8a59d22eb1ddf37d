"""What a run does inside: ranks, maps and cost, for every kind of model."""

from pathlib import Path

import numpy as np
import pytest
import torch

import lrsa
from lrsa.analysis import inspect
from lrsa.analysis.inspect import Inspection, inspect_run
from lrsa.data.batch import collate
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import open_dataset
from lrsa.report.inspect_figures import draw_inspection
from lrsa.report.inspect_tables import print_inspection

GRID = (9, 8)
SMALL = {"width": 16, "depth": 2}
MODELS: dict[str, dict[str, object]] = {
    "lrsa": {**SMALL, "heads": 2, "rank": 6, "local": "depthwise"},
    "transolver": {**SMALL, "heads": 2, "rank": 6},
    "flare": {**SMALL, "heads": 2, "rank": 6},
    "galerkin": {**SMALL, "heads": 2},
    "fno": {**SMALL, "modes": 3},
    "f-fno": {**SMALL, "modes": (3, 3)},
    "factformer": {**SMALL, "heads": 4},
    "perceiver-io": {**SMALL, "heads": 2, "rank": 6},
    "lno": {**SMALL, "heads": 2, "rank": 6},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A smooth map on a grid, with uneven weights."""
    rng = np.random.default_rng(0)
    axes = [(np.arange(n) + 0.5) / n for n in GRID]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)

    def case() -> PointSet:
        f = np.sin(2 * np.pi * (x @ rng.normal(size=2) + rng.random()))[:, None]
        return PointSet(x, f, f.mean() + f * x[:, :1], weights=0.5 + x[:, 0], grid=GRID)

    path = tmp_path_factory.mktemp("data") / "map.h5"
    lrsa.write_dataset(path, {"train": [case() for _ in range(6)], "test": [case() for _ in range(2)]})
    return path


def trained(data: Path, model: str, out: Path, **options: object) -> Path:
    lrsa.fit(data, model, out=out, epochs=1, options={**MODELS.get(model, {}), **options}, validation=0.0)
    return out


@pytest.mark.parametrize("model", MODELS)
def test_every_kind_of_model_shows_ranks_maps_and_costs(data: Path, model: str, tmp_path: Path) -> None:
    inspection = inspect_run(trained(data, model, tmp_path / "run"), case=1)
    depth = 1 if model in ("lno", "perceiver-io") else 2
    assert len(inspection.layers) == depth
    for view in inspection.layers:
        modes = view.singular_values.shape[1]
        assert ((view.effective_rank >= 1) & (view.effective_rank <= modes)).all()
        for shown in view.maps:
            assert shown.write.shape == shown.read.shape == (72,)
    steps = {cost.step for cost in inspection.cost}
    mixing = {"mix"} if model in ("fno", "f-fno", "factformer") else {"compress", "process", "reconstruct"}
    assert mixing | {"lift", "head"} <= steps
    assert min(cost.seconds for cost in inspection.cost) > 0


@pytest.fixture(scope="module")
def shown(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    return inspect_run(trained(data, "lrsa", tmp_path_factory.mktemp("runs") / "run"))


def test_the_maps_of_attention_are_the_shares_that_they_claim_to_be(shown: Inspection) -> None:
    assert shown.case.weights is not None
    weights = shown.case.weights / shown.case.weights.mean()
    for view in shown.layers:
        assert not view.linear
        for latent in view.maps:
            assert np.average(latent.write, weights=weights) == pytest.approx(1, abs=1e-6)
            assert latent.read.min() >= 0
            assert latent.read.max() <= 1


def test_operations_are_those_of_the_formulae(shown: Inspection) -> None:
    """Two per multiply-add: keys and values, queries, scores and sums over points, output."""
    n, d, m = 72, 16, 6
    compress = 2 * (2 * n * d * d + m * d * d + 2 * n * m * d + m * d * d)
    reconstruct = 2 * (n * d * d + 2 * m * d * d + 2 * n * m * d + n * d * d)
    flops = {cost.step: cost.flops for cost in shown.cost}
    assert flops["compress"] == 2 * compress
    assert flops["reconstruct"] == 2 * reconstruct
    assert flops["head"] == 2 * n * d
    assert flops["rest"] == 0


def test_looking_changes_nothing(data: Path, tmp_path: Path) -> None:
    run = trained(data, "transolver", tmp_path / "run")
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    first, second = inspect_run(run), inspect_run(run)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == files
    np.testing.assert_array_equal(first.layers[0].effective_rank, second.layers[0].effective_rank)


def test_the_layers_are_seen_with_the_inputs_of_the_prediction(data: Path, tmp_path: Path) -> None:
    """The factors of the first layer, at what it was given, are those of a pass by hand."""
    run = trained(data, "lrsa", tmp_path / "run", local="pointwise")
    surrogate = lrsa.load(run)
    batch = collate([open_dataset(data, "test")[0]], weights=True)
    context = batch.context.normalised()
    model = surrogate.model
    assert isinstance(model, lrsa.NeuralOperator)
    with torch.no_grad():
        x, f, context = surrogate.normalise(batch.x, batch.f, context)
        h = model.lift(x, f, context)
        block = model.each_block()[0]
        made = inspect.factors(block.mix, block.norm_mix(h), x, context)
        ranks = inspect.effective_rank(made.singular_values())
    np.testing.assert_allclose(inspect_run(run).layers[0].effective_rank, ranks.numpy(), rtol=1e-3)


def test_what_is_shown_is_printed_and_drawn(
    shown: Inspection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_inspection(shown)
    text = capsys.readouterr().out
    assert "72 points, LowRankSpatialAttention" in text
    assert all(
        word in text for word in ("Effective rank", "Jacobian", "compress", "process", "reconstruct", "FFN")
    )
    paths = draw_inspection(shown, tmp_path / "figures")
    assert [path.name for path in paths] == ["latents.png", "effective-rank.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_a_jacobian_that_takes_too_long_is_left_out_with_a_cure(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(data, "lrsa", tmp_path / "run", local="pointwise")
    monkeypatch.setattr(inspect, "WORK", 0.0)
    inspection = inspect_run(run, stride=2)
    assert len(inspection.case) == 20
    assert inspection.layers[0].jacobian_rank is None
    assert any("--stride" in note for note in inspection.notes)


def test_what_cannot_be_inspected_is_refused(data: Path, tmp_path: Path) -> None:
    run = trained(data, "lsm", tmp_path / "lsm", width=8)
    with pytest.raises(LrsaError, match='"lsm" has no global mixing layer'):
        inspect_run(run)
    with pytest.raises(LrsaError, match="no test case 7"):
        inspect_run(run, case=7)
