"""Evaluation: every number computed again by hand, at every sampling, with and without the truth."""

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor, nn

import lrsa
from lrsa.context import Context
from lrsa.data.store import Dataset, Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate, parse_strides
from lrsa.evaluation.null import NullBaselines
from lrsa.evaluation.verdict import verdict
from lrsa.models import registry
from lrsa.objectives.metrics import DEFINITIONS
from lrsa.objectives.protocols import Static
from lrsa.pointset import Names, PointSet, corresponding
from lrsa.report.printing import print_evaluation, tables
from lrsa.training.config import RunConfig
from lrsa.training.fit import train_run

NAMES = Names(("x", "y"), ("a",), ("p", "T"), ("load",), {"p": "Pa"})
FILES = [f"plate_{i:02d}.vtu" for i in range(9)]


class Pointwise(nn.Module):
    """A function of each point by itself: no sampling can change it."""

    def __init__(self, coord_dim: int, in_features: int, out_features: int) -> None:
        super().__init__()
        self.layer = nn.Linear(coord_dim + in_features, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        return self.layer(x if f is None else torch.cat([x, f], dim=-1))


def ragged_case(seed: int) -> PointSet:
    rng = np.random.default_rng(seed)
    n, load = int(rng.integers(20, 40)), rng.uniform(1, 2)
    x = rng.random((n, 2))
    a = np.sin(3 * x[:, :1])
    u = np.column_stack([load * (1 + x[:, 0]), a[:, 0] - x[:, 1]])
    known = np.column_stack([np.ones(n, bool), rng.random(n) < 0.6])
    values = {"x": x, "f": a, "u": u, "globals": np.array([load])}
    return PointSet(**{k: v.astype(np.float32) for k, v in values.items()}, u_mask=known, names=NAMES)


def train(path: Path, run: Path, model: str = "pointwise", **options: int) -> Path:
    lrsa.fit(path, model, out=run, epochs=1, threads=1, options=options)
    return run


@pytest.fixture(scope="module", autouse=True)
def _pointwise() -> Iterator[None]:
    lrsa.register("pointwise", Pointwise)
    yield
    registry._MODELS.pop("pointwise")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pointwise surrogate of ragged cases with a mask, parameters and file names."""
    folder = tmp_path_factory.mktemp("ragged")
    cases = [ragged_case(i) for i in range(9)]
    schema = Schema("plates", names=NAMES, provenance={"cases": {"train": FILES[:6], "test": FILES[6:]}})
    write_dataset(folder / "plates.h5", {"train": cases[:6], "test": cases[6:]}, schema)
    return train(folder / "plates.h5", folder / "run")


@pytest.fixture(scope="module")
def grid_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small LRSA on a 9 x 9 grid: what a point is told depends on the other points."""
    folder = tmp_path_factory.mktemp("grid")
    x = np.stack(np.meshgrid(*[np.linspace(0, 1, 9)] * 2, indexing="ij"), -1).reshape(-1, 2)
    rng = np.random.default_rng(0)
    cases = [
        PointSet(x, np.sin(k * x[:, :1]), np.cos(k * x[:, 1:]), grid=(9, 9)) for k in 1 + 5 * rng.random(5)
    ]
    write_dataset(folder / "grid.h5", cases)
    return train(folder / "grid.h5", folder / "run", "lrsa", width=8, depth=1, heads=2, rank=4)


def predictions(run: Path) -> list[tuple[PointSet, np.ndarray]]:
    surrogate = lrsa.load(run)
    tests = Dataset(Path(RunConfig.load(run).data.path), "test")
    return [(case, surrogate.predict(case.x, case.f, globals=case.globals, grid=case.grid)) for case in tests]


def test_every_number_of_every_case_and_field(run: Path) -> None:
    evaluation = evaluate(run)
    for row, (case, p) in zip(evaluation.table, predictions(run), strict=True):
        assert case.u is not None
        assert case.u_mask is not None
        e, u = (p - case.u).astype(float), case.u.astype(float)
        for c, name in enumerate(NAMES.targets):
            k = case.u_mask[:, c]
            square, spread = (e[k, c] ** 2).sum(), ((u[k, c] - u[k, c].mean()) ** 2).sum()
            expected = {
                "relative_l2": math.sqrt(square / (u[k, c] ** 2).sum()),
                "mse": square / k.sum(),
                "max_error": np.abs(e[k, c]).max(),
                "r2": 1 - square / spread,
            }
            assert row.fields[name] == pytest.approx(expected, rel=1e-5)
        k = case.u_mask
        assert row.relative_l2 == pytest.approx(math.sqrt((e[k] ** 2).sum() / (u[k] ** 2).sum()), rel=1e-5)
        assert row.points == len(case)
    assert evaluation.relative_l2 == pytest.approx(np.mean(evaluation.per_case))
    for name, metrics in evaluation.fields.items():
        for metric in DEFINITIONS:
            assert metrics[metric] == pytest.approx(
                np.mean([r.fields[name][metric] for r in evaluation.table])
            )


def test_the_worst_case_is_named_by_its_file(run: Path) -> None:
    evaluation = evaluate(run)
    worst = evaluation.worst(2)
    assert worst[0].name == FILES[6 + int(np.argmax(evaluation.per_case))]
    assert worst[0].relative_l2 == max(evaluation.per_case) >= worst[1].relative_l2


def test_linear_regression_is_exact_where_the_field_is_linear_in_the_parameters() -> None:
    rng = np.random.default_rng(0)
    x, slopes = rng.random((30, 2)), rng.standard_normal((30, 2, 3))
    parameters = 1e4 * rng.random((6, 3)) + 1e5
    cases = [PointSet(x, u=1 + slopes @ g, globals=g) for g in parameters]
    errors = NullBaselines(cases[:5], Static(), fixed=True).errors(cases[5:])
    assert errors["linear regression"][0] < 1e-10
    assert errors["mean field"][0] > 1e-3


def test_linear_regression_of_ragged_cases_gives_their_mean_level(run: Path) -> None:
    """On its own training cases, by numpy's least squares of the mean over known points."""
    cases = [ragged_case(i) for i in range(9)]
    assert not corresponding(cases)
    means = np.array([[c.u[k, j].mean() for j, k in enumerate(c.u_mask.T)] for c in cases[:6]])  # pyright: ignore[reportOptionalMemberAccess, reportOptionalSubscript]
    design = np.array([[1.0, c.globals[0]] for c in cases])  # pyright: ignore[reportOptionalSubscript]
    expected = design[8] @ np.linalg.lstsq(design[:6], means, rcond=None)[0]
    got = NullBaselines(cases[:6], Static(), fixed=False).predictions(cases[8])["linear regression"]
    np.testing.assert_allclose(got, np.broadcast_to(expected, got.shape), rtol=1e-5)


def test_no_regression_without_parameters(grid_run: Path) -> None:
    assert evaluate(grid_run).nulls.keys() == {"mean field", "nearest case", "POD regression"}


def test_meshes_of_one_size_correspond_only_if_they_are_one_mesh() -> None:
    x, u = np.random.default_rng(0).random((4, 2)), np.ones((4, 1))
    one, other = (PointSet(x, u=u, cells=np.array([cell])) for cell in ([0, 1, 2], [1, 2, 3]))
    assert corresponding([one, one])
    assert not corresponding([one, other])


def test_a_pointwise_function_is_consistent_at_every_sampling(run: Path) -> None:
    samplings = evaluate(run, stride=(1, 2, 3)).samplings
    assert [s.stride for s in samplings] == [1, 2, 3]
    assert samplings[0].self_consistency == 0
    assert max(s.self_consistency for s in samplings) < 1e-6


@pytest.mark.parametrize("tied", [{"deviations": True}, {"statistics": "point"}])
def test_statistics_of_each_node_are_those_of_the_nodes_that_a_sampling_keeps(
    tied: dict[str, Any], tmp_path: Path
) -> None:
    """A function of each point and its statistics is the same at the nodes of any coarser sampling."""
    rng = np.random.default_rng(0)
    x = rng.random((5, 81, 2)).astype(np.float32)
    write_dataset(tmp_path / "d.h5", [PointSet(p, p[:, :1] ** 2, p.sum(1)[:, None], grid=(9, 9)) for p in x])
    lrsa.fit(tmp_path / "d.h5", "pointwise", out=tmp_path / "run", epochs=1, threads=1, **tied)
    first, *coarser = evaluate(tmp_path / "run", stride=(1, (2, 1), 2)).samplings
    assert lrsa.load(tmp_path / "run").normaliser.points == 81
    assert [s.points for s in coarser] == ["45", "25"]
    assert max(s.self_consistency for s in coarser) < 1e-6
    assert evaluate(tmp_path / "run", stride=2).relative_l2 == coarser[1].relative_l2 != first.relative_l2


def test_coarser_samplings_of_a_grid_computed_again(grid_run: Path) -> None:
    evaluation = evaluate(grid_run, stride=(1, 2, 4))
    surrogate = lrsa.load(grid_run)
    whole = predictions(grid_run)
    for sampling in evaluation.samplings:
        s, errors, distances = sampling.stride, [], []
        assert isinstance(s, int)
        for case, full in whole:
            part = case.strided(s)
            assert part.u is not None
            p = surrogate.predict(part.x, part.f, grid=part.grid)
            shared = full.reshape(9, 9, 1)[::s, ::s].reshape(-1, 1)
            errors.append(np.linalg.norm(p - part.u) / np.linalg.norm(part.u))
            distances.append(np.linalg.norm(p - shared) / np.linalg.norm(shared))
        assert sampling.points == str(len(range(0, 9, s)) ** 2)
        assert sampling.relative_l2 == pytest.approx(np.mean(errors), rel=1e-4)
        assert sampling.self_consistency == pytest.approx(np.mean(distances), rel=1e-4, abs=1e-7)
    assert evaluation.relative_l2 == evaluation.samplings[0].relative_l2
    assert evaluation.samplings[2].self_consistency > 0


def test_axes_are_strided_by_themselves(grid_run: Path) -> None:
    evaluation = evaluate(grid_run, stride=(1, (2, 1), (1, 2), (2, 2), 2))
    assert [s.points for s in evaluation.samplings] == ["81", "45", "45", "25", "25"]
    errors = [s.relative_l2 for s in evaluation.samplings]
    assert errors[3] == errors[4]
    assert len(set(errors)) == 4
    with pytest.raises(LrsaError, match="2x1x1 is of 3 axes; the points have a grid of 2"):
        evaluate(grid_run, stride=[(2, 1, 1)])


def test_one_stride_moves_the_whole_evaluation(grid_run: Path) -> None:
    assert evaluate(grid_run, stride=2).points == "25"
    assert (
        evaluate(grid_run, stride=2).relative_l2 == evaluate(grid_run, stride=(1, 2)).samplings[1].relative_l2
    )


def test_the_points_that_a_stride_leaves_do_not_make_one_mesh_of_many(run: Path, tmp_path: Path) -> None:
    """All cases begin at one corner, which is all that is left of them."""
    cases = [ragged_case(i) for i in range(9)]
    for case in cases:
        arrays = case.arrays()
        arrays["x"][0], arrays["u_mask"][0] = 0, True
    write_dataset(tmp_path / "corner.h5", {"train": cases[:6], "test": cases[6:]})
    evaluation = evaluate(train(tmp_path / "corner.h5", tmp_path / "run"), stride=1000)
    assert evaluation.points == "1"
    assert evaluation.nulls.keys() == evaluate(run).nulls.keys()


def test_without_the_truth_there_is_self_consistency(
    run: Path, grid_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [PointSet(case.x, case.f, grid=case.grid) for case, _ in predictions(grid_run)]
    write_dataset(tmp_path / "blind.h5", {"test": cases})
    evaluation = evaluate(grid_run, str(tmp_path / "blind.h5"), (1, 2))
    known = evaluate(grid_run, stride=(1, 2))
    assert [s.self_consistency for s in evaluation.samplings] == [s.self_consistency for s in known.samplings]
    assert math.isnan(evaluation.relative_l2)
    assert not evaluation.fields
    print_evaluation(grid_run, evaluation)
    assert "no truth" in capsys.readouterr().out
    evaluation.save(tmp_path / "evaluation.json")
    assert json.loads((tmp_path / "evaluation.json").read_text())["relative_l2"] is None


def test_the_files_hold_what_was_computed(run: Path, tmp_path: Path) -> None:
    evaluation = evaluate(run, stride=(1, 2))
    evaluation.save(tmp_path / "evaluation.json")
    values = json.loads((tmp_path / "evaluation.json").read_text())
    assert values["relative_l2"] == evaluation.relative_l2
    assert values["per_case"] == evaluation.per_case
    with open(tmp_path / "evaluation.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["case"] for row in rows] == FILES[6:]
    assert [float(row["relative_l2"]) for row in rows] == evaluation.per_case
    assert [float(row["T: max_error"]) for row in rows] == [
        r.fields["T"]["max_error"] for r in evaluation.table
    ]
    nulls = np.mean([float(row["linear regression: relative_l2"]) for row in rows])
    assert nulls == pytest.approx(evaluation.nulls["linear regression"])
    assert {"stride 2: relative_l2", "stride 2: self_consistency"} <= rows[0].keys()


def test_the_console_shows_fields_nulls_and_worst_cases(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation = evaluate(run, stride=(1, 2))
    print_evaluation(run, evaluation)
    said = capsys.readouterr().out
    for words in ("linear regression", "plate_0", "self-consistency", f"{evaluation.relative_l2:.4f}"):
        assert words in said
    assert len(tables(RunConfig.load(run), evaluation)) == 5


def test_a_field_that_was_hardly_learned_is_named_though_all_together_look_well(run: Path) -> None:
    evaluation, config = evaluate(run), RunConfig.load(run)
    first, *others = evaluation.fields
    well = replace(
        evaluation,
        relative_l2=0.1 * min(evaluation.nulls.values()),
        fields={name: {"relative_l2": 0.0} for name in others} | {first: {"relative_l2": 1.5}},
        null_fields={name: dict.fromkeys(evaluation.nulls, 1.0) for name in evaluation.fields},
    )
    said = verdict(config, well)
    assert said is not None
    assert f", but larger than that of one for {first}." in said.text
    assert "--train.loss mse" in said.cure
    other = replace(config, train=replace(config.train, loss="mse"))
    assert verdict(other, well) == replace(said, cure="")
    learned = verdict(
        config, replace(well, fields={name: {"relative_l2": 0.0} for name in evaluation.fields})
    )
    assert learned is not None
    assert "but larger" not in learned.text


def test_the_worst_cases_are_legible_on_a_narrow_console(run: Path) -> None:
    """However many fields there are: names are folded, numbers are whole."""
    values = {"relative_l2": 0.5, "max_error": 9.901e05}
    fields = {f"component_{i}_of_a_velocity": {**values, "relative_l2": 0.1 * i} for i in range(6)}
    fields["unknown"] = {"relative_l2": math.nan, "max_error": math.nan}
    evaluation = evaluate(run)
    rows = [replace(row, name=f"wing_{i:060d}", fields=fields) for i, row in enumerate(evaluation.table)]
    screen = Console(width=80, file=(printed := io.StringIO()), soft_wrap=True)
    screen.print(tables(RunConfig.load(run), replace(evaluation, table=rows))[-1])
    cells = [
        [word.strip() for word in line.split("│")[1:-1]]
        for line in printed.getvalue().splitlines()
        if line.startswith("│")
    ]
    columns = ["".join(column) for column in zip(*cells, strict=True)]
    assert {row.name for row in rows} == {columns[0][i : i + 65] for i in range(0, 195, 65)}
    assert columns[-2:] == ["component_5_of_a_velocity" * 3, "9.901e+05" * 3]


@pytest.mark.parametrize("text", ["two", "1,,2", "1.5"])
def test_strides_that_are_no_numbers_are_refused(text: str) -> None:
    with pytest.raises(LrsaError, match="whole numbers"):
        parse_strides(text)


def test_strides_as_typed(run: Path) -> None:
    assert parse_strides("1,2,4") == (1, 2, 4)
    assert parse_strides("2x1,2") == ((2, 1), 2)
    assert parse_strides(None) is None
    with pytest.raises(LrsaError, match="1 or more"):
        evaluate(run, stride=0)


def test_other_targets_are_refused(run: Path, grid_run: Path) -> None:
    with pytest.raises(LrsaError, match="predicts p, T"):
        evaluate(run, RunConfig.load(grid_run).data.path)


@pytest.mark.parametrize("changed", ["another split", "other files", "no record of files"])
def test_a_file_that_was_imported_anew_is_not_mistaken_for_that_of_the_training(
    tmp_path: Path, changed: str
) -> None:
    """A test case could be one that was learned from; cases without a record are taken as they are."""
    path, cases = tmp_path / "plates.h5", [ragged_case(i) for i in range(5)]
    stored = {"train": FILES[:4], "test": FILES[4:5]}
    recorded = {"another split": stored, "other files": stored, "no record of files": None}[changed]
    schema = Schema("plates", names=NAMES, provenance={"cases": recorded} if recorded else {})
    write_dataset(path, {"train": cases[:4], "test": cases[4:]}, schema)
    run = train(path, tmp_path / "run")
    others = {"train": FILES[1:5], "test": FILES[:1]} if changed == "another split" else {"test": FILES[8:9]}
    write_dataset(
        path, {"train": cases[1:], "test": cases[:1]}, replace(schema, provenance={"cases": others})
    )
    if recorded is None:
        assert evaluate(run).cases == 1
        return
    for use in (evaluate, lambda run: evaluate(run, str(path)), train_run):
        with pytest.raises(LrsaError, match=r"plates\.h5 no longer has the cases that this run"):
            use(run)
