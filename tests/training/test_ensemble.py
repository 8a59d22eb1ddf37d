"""Ensembles: members that share a run, intervals that hold, cases like none before."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import OPTIONS, WORDS, assert_bit_equal, differ, grid_cases, quick, refusal, say, weights, write

import lrsa
from lrsa.cli.program import main
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.uncertainty import Coverage
from lrsa.mesh.arrays import read_npz, write_npz
from lrsa.problems.catalogue import CATALOGUE
from lrsa.surrogate.calibration import Calibration, calibrate, promised
from lrsa.surrogate.novelty import Novelty
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare, train_member, train_run
from lrsa.training.survey import split_cases

pytest_plugins = ["small_runs"]
QUANTITY = "peak=max:p"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "many.h5", grid_cases(20), grid_cases(6, seed=1))


@pytest.fixture(scope="module")
def ensemble(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two members, with one quantity."""
    run = tmp_path_factory.mktemp("runs") / "pair"
    quick(many, run, ensemble=2, quantities=QUANTITY)
    return run


def members(run: Path) -> list[Path]:
    return [run, run / "members" / "1"]


def test_members_differ_by_their_seed_and_share_the_validation_cases(ensemble: Path):
    first, second = (RunConfig.load(run) for run in members(ensemble))
    assert (first.train.seed, second.train.seed) == (0, 1)
    ours, theirs = (split_cases(config) for config in (first, second))
    assert [list(part.chosen) for part in ours] == [list(part.chosen) for part in theirs]
    assert differ(*(weights(run) for run in members(ensemble)))
    assert first.train.validation == 0.2


def test_the_ensemble_predicts_the_mean_of_its_members(ensemble: Path):
    case = grid_cases(1, seed=5)[0]
    alone = [lrsa.load(run) for run in members(ensemble)]
    alone[0].others = ()
    mean = np.mean([surrogate.predict(case) for surrogate in alone], axis=0)
    np.testing.assert_allclose(lrsa.load(ensemble).predict(case), mean, rtol=1e-5, atol=1e-6)


def test_a_killed_ensemble_goes_on_and_ends_with_the_same_bits(ensemble: Path, many: Path, home: Path):
    settings = {"epochs": 2, "quantities": QUANTITY}
    run = prepare(str(many), "lrsa", out=home / "killed", options=OPTIONS, train=settings, ensemble=2)
    train_member(run)  # and here it is killed
    with pytest.raises(LrsaError, match="lrsa resume"):
        lrsa.load(run)
    train_run(run)
    for ours, theirs in zip(members(run), members(ensemble), strict=True):
        assert_bit_equal(weights(ours), weights(theirs))
    assert Calibration.load(run) == Calibration.load(ensemble)


def test_the_report_of_an_ensemble_tells_coverage_beside_chance(ensemble: Path):
    found = evaluate(ensemble)
    assert found.members == 2
    assert set(found.coverage) == {"p", "peak"}
    coverage = found.coverage["peak"]
    assert (coverage.cases, coverage.calibrated_on) == (6, 4)
    assert coverage.level == pytest.approx(4 / 5)  # four cases cannot promise nine tenths
    assert coverage.inside == sum(bool(row.quantities["peak"].covered) for row in found.table)
    assert all(row.novelty >= 0 for row in found.table)
    errors = found.quantities["peak"]
    values = [(row.quantities["peak"].predicted, row.quantities["peak"].true) for row in found.table]
    assert errors.mean_absolute == pytest.approx(np.mean([abs(a - b) for a, b in values]))
    assert errors.nulls.keys() == found.nulls.keys()


def test_the_quantities_of_a_problem_have_intervals_too(
    many: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    """Such as the drag of ShapeNet Car, which its metrics name."""
    problem = replace(CATALOGUE["darcy"], quantities={"flux": lambda case, u: float(u.mean())})
    monkeypatch.setitem(CATALOGUE, Dataset(many, "train").schema.name, problem)
    quick(many, home / "pair", ensemble=2, metrics="spearman:flux")
    found = evaluate(home / "pair")
    assert found.coverage["flux"].cases == 6
    assert found.quantities["flux"].width > 0


def test_a_prediction_carries_its_spread_its_interval_and_its_quantities(
    ensemble: Path, home: Path, capsys: pytest.CaptureFixture[str]
):
    case = grid_cases(1, seed=5)[0]
    assert case.f is not None
    write_npz(Path("new.npz"), {"x": case.x, "a": case.f[:, 0], "grid": np.array(case.grid)})
    said = say(capsys, "predict", ensemble, "new.npz", "--out", "out.npz")
    arrays = read_npz(Path("out.npz"))
    every = lrsa.load(ensemble).answers([case])[0]
    np.testing.assert_allclose(arrays["p_predicted"], every.mean(0)[:, 0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(arrays["p_spread"], every.std(0)[:, 0], rtol=1e-3, atol=1e-5)
    assert (arrays["p_interval"] > 0).all()
    assert f"new.npz: peak {every.mean(0).max():.4g} ± " in said


def test_intervals_hold_as_often_as_promised():
    """Exchangeable scores: the promise is exact for any number of cases, on the average."""
    rng = np.random.default_rng(0)
    for cases in (4, 9, 12, 40):
        level, rank = promised(cases)
        scores = rng.exponential(size=(20000, cases + 1))
        held = scores[:, -1] <= np.sort(scores[:, :-1], axis=1)[:, rank]
        assert held.mean() >= level - 0.01
        assert level == (0.9 if cases >= 9 else cases / (cases + 1))


def test_a_single_model_has_intervals_of_quantities_by_its_residuals(many: Path, home: Path):
    surrogate = quick(many, home / "single", quantities=QUANTITY, validation=0.5)
    found = Calibration.load(home / "single")
    assert found is not None
    assert not found.fields
    factor, floor = found.quantities[QUANTITY]
    assert floor == 1.0
    _, validation = split_cases(RunConfig.load(home / "single"))
    misses = [abs(surrogate.predict(c).max() - np.max(c.u)) for c in validation if c.u is not None]
    assert factor == pytest.approx(max(misses), rel=1e-5)  # ten cases: 0.9 of eleven is the last
    assert calibrate(surrogate, [], {}) is None


def test_training_cases_are_no_news_and_a_case_from_elsewhere_is(ensemble: Path, many: Path):
    surrogate, novelty = lrsa.load(ensemble), Novelty.load(ensemble)
    assert novelty is not None
    training, _ = split_cases(RunConfig.load(ensemble))
    assert novelty.score(surrogate, training[0]) < 0.05
    case = grid_cases(1, seed=5)[0]
    assert case.f is not None
    far = lrsa.PointSet(case.x, 30 * case.f, grid=case.grid, names=case.names)
    assert novelty.score(surrogate, far) > max(1.0, novelty.score(surrogate, case))


def test_other_quantities_are_calibrated_when_they_are_asked_for(
    ensemble: Path, home: Path, capsys: pytest.CaptureFixture[str]
):
    said = say(capsys, "evaluate", ensemble, "--quantity", "low=min:p", "--quantity", "level=mean:p")
    assert "low" in said
    assert "level" in said
    assert "peak" not in said
    assert "promised" in said


@pytest.mark.parametrize(("option", "value"), [("--ensemble", 0), ("--ensemble", 65), ("--quantity", "peak")])
def test_what_makes_no_sense_is_refused_before_the_training(
    many: Path, home: Path, capsys: pytest.CaptureFixture[str], option: str, value: object
):
    refusal(capsys, "train", many, "--out", "run", option, value, *WORDS)


def test_coverage_is_told_with_the_counts_that_chance_allows():
    assert "47 of 50 (94%); 90% promised" in Coverage(0.9, 47, 50, 0.82, 0.98, 20).words()


def test_an_interrupted_training_names_the_command_that_goes_on(
    many: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def stop(run: Path, ranks: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lrsa.training.fit.train_run", stop)
    assert main(["train", str(many), "--out", "run", *WORDS]) == 130
    assert "`lrsa resume run`" in capsys.readouterr().err
