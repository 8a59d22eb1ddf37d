"""What is announced: seconds by what is recorded, for models that step otherwise than LRSA too."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import made, record, work_in

from lrsa.experiments.estimate import UNKNOWN, estimate
from lrsa.experiments.job import Job

OURS = Job("plasticity", "lrsa", "demo")
THEIRS = Job("plasticity", "f-fno", "demo")


def seconds(folder: Path, job: Job) -> float:
    work = work_in(folder)
    return estimate([job], work.cells, work.runs)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """LRSA in 100 s; F-FNO, with all frames of a case in a step, in 300 s."""
    work = work_in(tmp_path)
    record(work, OURS, made(OURS, 0.1, steps=1000, step={"model": 0.1, "lrsa": 0.1}))
    record(work, THEIRS, made(THEIRS, 0.1, steps=100, step={"model": 3.0, "lrsa": 0.1}))
    return tmp_path


def test_a_training_like_a_recorded_one_takes_as_long(recorded: Path) -> None:
    assert seconds(recorded, OURS) == pytest.approx(100)
    assert seconds(recorded, THEIRS) == pytest.approx(300)
    assert seconds(recorded, replace(THEIRS, train={"epochs": 3})) == pytest.approx(300 * 3 / epochs(THEIRS))


def test_one_busy_hour_of_the_machine_decides_nothing(recorded: Path) -> None:
    """Ratios are of steps in turns, and the median of all times counts."""
    slow = Job("plasticity", "hpm", "demo")
    record(work_in(recorded), slow, made(slow, 0.1, steps=1000, step={"model": 2.0, "lrsa": 1.0}))
    assert seconds(recorded, slow) == pytest.approx(200)


def test_a_model_that_was_never_timed_takes_a_little_longer_than_lrsa(recorded: Path) -> None:
    assert seconds(recorded, Job("plasticity", "lsm", "demo")) == pytest.approx(100 * UNKNOWN)


def test_other_cases_are_counted(recorded: Path) -> None:
    """On the same points the time goes with the cases, of which half are here."""
    half = replace(OURS, samples=OURS.configuration()["cases"][0] // 2)
    assert seconds(recorded, half) == pytest.approx(50)


def epochs(job: Job) -> int:
    return job.configuration()["train"]["epochs"]
