"""Time as an axis of the model: taught, evaluated and asked with all frames of a case at once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import frames, grid_cases, refusal, say, write

import lrsa
from lrsa.data.batch import collate
from lrsa.evaluation.evaluate import evaluate
from lrsa.objectives.losses import gradient_error, mean_square, relative_l2
from lrsa.objectives.protocols import AllFrames, TimeConditioned
from lrsa.pointset import PointSet
from lrsa.training.assemble import trainer_of
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

SIDE, FRAMES = 6, 5
SPACIOUS = 17
"""Points along each side from which on the coarsest scale of LSM has more than one."""
OPTIONS: dict[str, dict[str, Any]] = {
    "f-fno": {"width": 16, "depth": 3, "modes": (3, 3), "time_modes": 3, "padding": 2, "time_axis": True},
    "lsm": {"width": 4, "heads": 2, "tokens": 2, "bases": 4, "norm": "instance", "time_axis": True},
}


def moving(count: int, seed: int = 0, side: int = SIDE) -> list[PointSet]:
    """Cases that decay in time at a rate of their own, which is that of the mean of their input."""
    made = []
    for case in grid_cases(count, seed, side):
        framed = frames(case, FRAMES)
        assert case.u is not None
        assert case.f is not None
        assert framed.times is not None
        rate = 1 + np.tanh(case.f.mean())
        u = np.exp(-rate * framed.times)[:, None, None] * case.u
        made.append(replace(framed, u=u.astype(np.float32)))
    return made


@pytest.fixture
def times(home: Path) -> Path:
    return write(home / "times.h5", moving(6), moving(2, seed=1), "time-conditioned")


def fitted(data: Path, model: str = "f-fno", **settings: Any) -> lrsa.Surrogate:
    asked = {"epochs": 2, "batch_size": 2, "threads": 1, "out": "run", "validation": 0.0, **settings}
    return lrsa.fit(data, model, options=OPTIONS[model], **asked)


@pytest.mark.parametrize(
    ("model", "epochs", "side"),
    [("f-fno", 6, SIDE), pytest.param("lsm", 10, SPACIOUS, marks=pytest.mark.slow)],
)
def test_two_cases_are_learnt_by_heart_frame_by_frame(model: str, epochs: int, side: int) -> None:
    both = moving(2, side=side)
    data = write(Path("two.h5"), 10 * both, both, "time-conditioned")
    fitted(data, model, epochs=epochs, max_lr=1e-2)
    assert evaluate(Path("run"), epoch="last").relative_l2 < 0.1


def test_a_case_is_one_example_and_its_loss_that_of_all_its_frames(times: Path) -> None:
    surrogate = fitted(times)
    trainer = trainer_of(Path("run"), RunConfig.load(Path("run")))
    assert isinstance(surrogate.protocol, AllFrames)
    assert len(trainer.keys) == len(trainer.cases)
    case = trainer.cases[0]
    batch = trainer.collate([trainer.protocol.example(case, 0)])
    with torch.inference_mode():
        loss = surrogate.eval().protocol.loss(surrogate, batch, lambda p, t, b: relative_l2(p, t, b.known))
    assert case.u is not None
    u = surrogate.predict(case)
    assert u.shape == case.u.shape
    assert float(loss) == pytest.approx(np.linalg.norm(u - case.u) / np.linalg.norm(case.u), rel=1e-5)


def test_one_frame_is_that_of_all_and_a_batch_that_of_its_cases(times: Path) -> None:
    surrogate, (one, two) = fitted(times), moving(2, seed=3)
    whole = surrogate.predict(one)
    assert one.times is not None
    assert not np.allclose(whole[0], whole[-1])
    some = replace(one, u=None, times=one.times[[3, 1]])
    np.testing.assert_array_equal(surrogate.predict(some), whole[[3, 1]])
    alone = surrogate.predict(one.x, one.f, time=one.times[2], grid=one.grid)
    np.testing.assert_array_equal(alone, whole[2])
    both = surrogate.predict_cases([one, two])
    np.testing.assert_allclose(both[0], whole, rtol=1e-4, atol=1e-5)
    again = lrsa.load("run")
    np.testing.assert_array_equal(again.predict(one), whole)
    assert again.normaliser.frames is not None
    np.testing.assert_array_equal(again.normaliser.frames.numpy(), one.times)


def test_another_time_is_refused_and_so_is_another_grid_of_points(times: Path) -> None:
    surrogate, (case,) = fitted(times), moving(1)
    with pytest.raises(lrsa.LrsaError, match=r"5 frames alone \(0, 0.25, 0.5, 0.75, ...\), and 0.3 is none"):
        surrogate.predict(replace(case, u=None, times=np.array([0.5, 0.3], np.float32)))
    with pytest.raises(lrsa.LrsaError, match=r"needs Context\.grid"):
        surrogate.predict(replace(case, grid=None))


def test_without_the_axis_each_frame_is_an_example_as_before(times: Path) -> None:
    options = {**OPTIONS["f-fno"], "time_axis": False}
    surrogate = lrsa.fit(times, "f-fno", options=options, epochs=1, out="run", threads=1)
    assert type(surrogate.protocol) is TimeConditioned
    assert surrogate.normaliser.frames is None
    assert RunConfig.load(Path("run")).options["coord_dim"] == 2
    assert RunConfig.load(Path("run")).options["in_features"] == 2  # time among them


def test_parameters_of_the_case_are_features_of_all_its_frames() -> None:
    rate = np.ones(1, np.float32)
    cases = [replace(case, globals=k * rate) for k, case in enumerate(moving(4))]
    surrogate = fitted(write(Path("g.h5"), cases, cases[:1], "time-conditioned"))
    assert RunConfig.load(Path("run")).options["in_features"] == 2
    first, second = (surrogate.predict(replace(cases[0], globals=k * rate)) for k in (0, 2))
    assert not np.allclose(first, second)


def test_commands_evaluate_predict_and_refuse_what_is_of_two_axes(
    times: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    surrogate = fitted(times, epochs=1)
    assert "test relative L2" in say(capsys, "evaluate", "run")
    say(capsys, "predict", "run", times, "--out", "out.h5")
    made = lrsa.open_dataset("out.h5", "test")[0]
    case = moving(2, seed=1)[0]
    assert made.u is not None
    np.testing.assert_allclose(made.u, surrogate.predict(case), rtol=1e-5, atol=1e-6)
    assert "cannot be exported with time as an axis" in refusal(capsys, "export", "run", "--format", "torch")
    assert "has time as an axis" in refusal(capsys, "inspect", "run")


def refused(capsys: pytest.CaptureFixture[str], data: Path, *words: object) -> str:
    return refusal(capsys, "train", data, "--model", "f-fno", "--model.time-axis", *words)


def test_what_the_axis_cannot_do_is_refused_in_one_line(
    times: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "needs all points at once" in refused(capsys, times, "--train.chunk", 8)
    assert "needs all points of a case" in refused(capsys, times, "--train.points", 8)
    still = write(Path("still.h5"), grid_cases(3))
    assert "has no times that are asked for. Use --model.time-axis False" in refused(capsys, still)
    late = moving(3)
    late[1] = replace(late[1], times=2 * np.asarray(late[1].times))
    uneven = write(Path("uneven.h5"), late, protocol="time-conditioned")
    assert "differ in their times. Use --model.time-axis False" in refused(capsys, uneven)


def test_losses_of_frames_are_those_of_their_points_side_by_side() -> None:
    """Where some targets are not known, and with the gradient term."""
    rng = np.random.default_rng(0)
    known = rng.random((SIDE**2, 1)) < 0.7
    batch = collate([replace(case, u_mask=known) for case in moving(2)])
    assert batch.u is not None
    assert batch.known is not None
    prediction, scale = batch.u + torch.randn_like(batch.u), torch.tensor([2.0])
    ours, theirs = (values.flatten(1, 2) for values in (prediction, batch.u))
    every = batch.known.repeat(1, FRAMES, 1)
    torch.testing.assert_close(
        mean_square(prediction, batch.u, batch.known, scale), mean_square(ours, theirs, every, scale)
    )
    torch.testing.assert_close(
        relative_l2(prediction, batch.u, batch.known), relative_l2(ours, theirs, every)
    )
    first, truth, grid = prediction[:, :1], batch.u[:, :1], batch.context.grid
    alone = gradient_error(first[:, 0], truth[:, 0], grid)
    torch.testing.assert_close(gradient_error(first, truth, grid), alone)
