"""Training on some of the points: others in every epoch, reproducible, and all of them at validation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import OPTIONS, assert_bit_equal, differ, grid_cases, quick, refusal, weights

import lrsa
from lrsa.data.store import Dataset
from lrsa.evaluation.evaluate import evaluate
from lrsa.report.report import write_report
from lrsa.surrogate.calibration import Calibration, calibrate
from lrsa.training.config import RunConfig, TrainConfig
from lrsa.training.examples import thinned
from lrsa.training.fit import prepare, train_run, trainer_of
from lrsa.training.loop import Trainer
from lrsa.training.survey import split_cases

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
POINTS = 20
GEO = {"width": 8, "modes": (3, 3), "grid": (8, 8)}


def trainer(data: Path) -> Trainer:
    settings = {"points": POINTS, "epochs": 2, "validation": 0.2, "batch_size": 2}
    run = prepare(str(data), "lrsa", out=Path("seen"), options=OPTIONS, train=settings)
    return trainer_of(run, RunConfig.load(run))


def test_every_epoch_and_case_has_points_of_its_own_whatever_the_order(data: Path) -> None:
    seen = trainer(data)
    there, back = seen.batch(seen.keys), seen.batch(seen.keys[::-1])
    assert there.x.shape[1] == POINTS
    assert torch.equal(there.x, back.x.flip(0))
    assert not torch.equal(there.x[0], there.x[1])
    seen.progress.epoch = 1
    assert not torch.equal(seen.batch(seen.keys).x, there.x)


def test_the_points_are_some_of_the_case_with_their_own_values_and_none_twice() -> None:
    case = grid_cases(1)[0]
    some = thinned(case, TrainConfig(points=POINTS, seed=3), [0, 1])
    assert some.grid is None
    rows = [np.flatnonzero((case.x == place).all(1)).item() for place in some.x]
    assert rows == sorted(set(rows))
    for ours, theirs in ((some.f, case.f), (some.u, case.u)):
        assert ours is not None
        assert theirs is not None
        assert np.array_equal(ours, theirs[rows])
    counts = np.zeros(len(case))
    for epoch in range(400):
        chosen = thinned(case, TrainConfig(points=POINTS), [epoch, 0])
        counts += (case.x[:, None] == chosen.x).all(-1).any(1)
    assert np.abs(counts / 400 - POINTS / len(case)).max() < 5 * np.sqrt(0.25 / 400)


def test_a_case_of_fewer_points_keeps_all_of_them_and_its_grid() -> None:
    case = grid_cases(1)[0]
    assert thinned(case, TrainConfig(points=len(case)), [0]) is case
    assert thinned(case, TrainConfig(), [0]) is case


def test_validation_sees_all_points(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, sizes = trainer(data), []
    collate = seen.collate
    monkeypatch.setattr(seen, "collate", lambda cases: sizes.append(len(cases[0])) or collate(cases))
    seen.train(lambda *_: None)
    assert set(sizes) == {POINTS, 64}
    assert sizes.count(64) == 2


def test_a_stopped_training_on_some_points_ends_with_the_same_bits(data: Path) -> None:
    settings = {"epochs": 3, "points": POINTS, "validation": 0.2}
    quick(data, "whole", **settings)
    quick(data, "all", **{**settings, "points": None})
    run = prepare(str(data), "lrsa", out=Path("stopped"), options=OPTIONS, train=settings)
    stopping = trainer_of(run, RunConfig.load(run))

    def stop(step: int, *_: object) -> None:
        if step == stopping.steps + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopping.train(stop)
    train_run(run)
    assert_bit_equal(weights(run), weights(Path("whole")))
    assert differ(weights(run, "last"), weights(Path("all"), "last"))


def test_a_model_that_does_not_stream_is_tested_on_subsets_until_each_point_has_an_answer(data: Path) -> None:
    """And each point has the mean of its answers; LRSA sees all points at once. The outcomes say which."""
    settings: dict[str, Any] = {"epochs": 1, "points": POINTS}
    surrogate = lrsa.fit(data, "geo-fno", out="geo", options=GEO, **settings)
    found = evaluate(Path("geo"))
    assert found.subsets == POINTS
    assert "(means over random subsets of 20)" in write_report(Path("geo"), found).read_text()
    case = Dataset(data, "test")[0]
    rng = np.random.default_rng(0)
    answers: list[list[np.ndarray]] = [[] for _ in range(len(case))]
    while not all(answers):
        chosen = sorted(rng.choice(len(case), POINTS, replace=False))
        for place, value in zip(chosen, surrogate.predict(case.subset(np.array(chosen))), strict=True):
            answers[place].append(value)
    mean = np.array([np.mean(values, axis=0) for values in answers])
    assert case.u is not None
    error = np.linalg.norm(mean - case.u) / np.linalg.norm(case.u)
    assert found.per_case[0] == pytest.approx(error, rel=1e-5)
    assert error != pytest.approx(
        np.linalg.norm(surrogate.predict(case) - case.u) / np.linalg.norm(case.u), rel=1e-6
    )
    quick(data, "ours", **settings)
    assert evaluate(Path("ours")).subsets is None


@pytest.mark.parametrize("model", ["fno", "hpm", "graphsage"])
def test_models_that_need_all_points_refuse(
    model: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, "train", data, "--model", model, "--train.points", POINTS, "--train.epochs", 1)
    assert f'"{model}" needs all points of a case. Use --train.points None' in line


def test_no_points_are_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--train.points must be" in refusal(capsys, "train", data, "--train.points", 0)


def test_points_that_only_give_an_input_all_stay() -> None:
    gives = np.arange(100) % 5 == 0
    known = np.stack([gives, np.ones(100, bool)], axis=1)
    case = lrsa.PointSet(
        x=np.random.default_rng(0).random((100, 2)),
        f=known.astype(np.float32),
        f_mask=known,
        u=np.ones((100, 1), np.float32),
        u_mask=~gives[:, None],
    )
    some = thinned(case, TrainConfig(points=30), [0])
    assert some.u_mask is not None
    assert (len(some), int(some.u_mask.sum())) == (50, 30)
    assert thinned(case, TrainConfig(points=80), [0]) is case


def test_an_ensemble_on_subsets_keeps_its_spread_and_is_calibrated_on_subsets_too(data: Path) -> None:
    lrsa.fit(data, "geo-fno", out="pair", options=GEO, epochs=1, points=POINTS, ensemble=2, validation=0.5)
    found, run = evaluate(Path("pair")), Path("pair")
    assert found.subsets == POINTS
    assert found.coverage.keys() == found.fields.keys()
    _, validation = split_cases(RunConfig.load(run))
    kept, surrogate = Calibration.load(run), lrsa.load(run)
    assert kept == calibrate(surrogate, validation, {}, POINTS)
    assert kept != calibrate(surrogate, validation, {})
