"""The time budget: its arithmetic with a fake clock, and that a run keeps what was settled."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import OPTIONS, WORDS, grid_cases, quick, refusal, say, write

from lrsa.training.budget import Pace, duration
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare, train_run, trainer_of

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

times = st.floats(1e-3, 100)


@given(step=times, validation=times, minutes=st.floats(0.01, 1000), steps=st.integers(1, 1000))
def test_what_fits_is_within_the_minutes_and_one_more_epoch_is_not(
    step: float, validation: float, minutes: float, steps: int
) -> None:
    pace = Pace(step, validation)
    epochs, taken = pace.within(minutes, steps)
    assert epochs >= 1
    assert 1 <= taken <= steps
    if (epochs, taken) != (1, 1):
        assert pace.seconds(epochs, taken) <= 60 * minutes * (1 + 1e-9)
    assert pace.seconds(epochs + 1, steps) > 60 * minutes * (1 - 1e-9)


def test_a_fake_clock_measures_the_steps_and_not_the_first_ones(data: Path) -> None:
    """The clock goes on by a second whenever it is asked, and by a hundred in the first two steps."""
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"epochs": 20, "batch_size": 2})
    trainer, now, late = trainer_of(run, RunConfig.load(run)), count(), [0.0]
    step = trainer.step

    def slow(batch: Any) -> float:
        late[0] += 5 if len(late) <= 2 else 0
        late.append(0)
        return step(batch)

    trainer.step = slow  # pyright: ignore[reportAttributeAccessIssue]
    pace = Pace.of(trainer, lambda: next(now) / 10 + late[0])
    assert pace.step == pytest.approx(0.1)
    assert pace.validation == pytest.approx(0.1)


def test_minutes_settle_the_epochs_once(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine cases in steps of four: 3 steps of 2 s an epoch and 1 s of validation, 17 times in 2 minutes."""
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(2.0, 1.0))
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"minutes": 2, "batch_size": 4})
    assert "17 epochs of 3 steps take about 119 s" in capsys.readouterr().out.replace("2 min", "119 s")
    config = RunConfig.load(run)
    assert (config.train.epochs, config.train.steps, config.train.minutes) == (17, None, 2)
    monkeypatch.setattr(Pace, "of", lambda trainer: pytest.fail("measured again"))
    assert train_run(run).epoch == 17


@pytest.mark.parametrize(
    ("typed", "epochs"),
    [({}, 85), ({"epochs": 3}, 3), ({"epochs": 3, "minutes": 60}, 3), ({"minutes": 60}, 514)],
)
def test_own_data_gets_ten_minutes_unless_epochs_or_minutes_are_typed(
    data: Path, monkeypatch: pytest.MonkeyPatch, typed: dict[str, Any], epochs: int
) -> None:
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(2.0, 1.0))
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"batch_size": 4, **typed})
    assert RunConfig.load(run).train.epochs == epochs


def test_own_data_of_a_moment_stops_at_so_many_epochs(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(1e-4, 0.0))
    assert RunConfig.load(prepare(str(data), "lrsa", options=OPTIONS, train={})).train.epochs == 500


def test_the_axes_of_a_long_domain_are_normalised_each_by_itself() -> None:
    for stretch, how in ((1, "box"), (11, "axis")):
        cases = [replace(c, x=c.x * np.array([stretch, 1], np.float32)) for c in grid_cases(3)]
        run = prepare(str(write(Path(f"{how}.h5"), cases)), "lrsa", options=OPTIONS, train={"epochs": 1})
        assert RunConfig.load(run).train.coordinates == how


def test_where_not_one_epoch_fits_some_of_the_cases_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(Path("many.h5"), grid_cases(40), grid_cases(2, seed=1))
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(10.0, 0.0))
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"minutes": 0.5, "batch_size": 4})
    config = RunConfig.load(run)
    assert (config.train.epochs, config.train.steps) == (1, 3)
    trainer = trainer_of(run, config)
    assert [len(keys) for keys in trainer.batches(0)] == [4, 4, 4]
    assert len({key for keys in trainer.batches(0) for key in keys}) == 12
    train_run(run)


def test_the_finish_is_told_before_the_first_epoch(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick(data, "run", epochs=2)
    said = capsys.readouterr().out
    assert 0 < said.index("take about") < said.index("Training lrsa")


def test_senseless_minutes_are_refused(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for minutes in ("0", "-3", "nan"):
        assert "a positive number" in refusal(capsys, "train", data, "--minutes", minutes)
    assert "take about" in say(capsys, "train", data, "--minutes", "0.01", *WORDS)


@pytest.mark.parametrize(
    ("seconds", "words"), [(4.4, "4 s"), (89, "89 s"), (100, "2 min"), (5400, "1.5 h"), (1e6, "12 days")]
)
def test_durations_are_said_in_the_unit_of_people(seconds: float, words: str) -> None:
    assert duration(seconds) == words
