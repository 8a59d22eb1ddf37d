"""Tuning: what each trial gets, that all of it keeps to its minutes, and that it goes on where it stopped."""

import json
import math
import re
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import h5py
import pytest
import pyvista as pv
from hypothesis import given
from hypothesis import strategies as st
from small import files, grid_cases, ragged_cases, refusal, say, write

import lrsa
from lrsa.training import tune as tuning
from lrsa.training.budget import Pace
from lrsa.training.checkpoint import Standing
from lrsa.training.config import RunConfig
from lrsa.training.tune import (
    SEARCH,
    Candidate,
    Tuning,
    affordable,
    candidates_for,
    rounds_of,
    table,
    trial_folder,
    tune,
)

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]
SMALL = {"width": 16, "depth": 1, "heads": 2, "rank": 4, "local": "pointwise"}
FEW = [
    Candidate("small", "lrsa", SMALL),
    Candidate("slow", "lrsa", SMALL, {"muon_lr": 1e-4, "max_lr": 1e-5}),
    Candidate("transolver", "backbone-transolver", {**SMALL, "rank": 8}),
    Candidate("impossible", "fno", {"width": 16}, {"coordinates": "box", "points": 3}),
]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four small candidates, of steps that take half a second by a fake clock."""
    monkeypatch.setattr(tuning, "candidates_for", lambda data: FEW)
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(0.5, 0.0))


@given(candidates=st.integers(1, 30), minutes=st.floats(5, 1000))
def test_every_round_has_the_same_share_and_the_last_leaves_one(candidates: int, minutes: float) -> None:
    rounds = rounds_of(candidates, minutes)
    assert sum(n * each for n, each in rounds) <= SEARCH * minutes * (1 + 1e-9) or minutes < 60
    assert rounds[0][0] == candidates
    counts = [n for n, _ in rounds]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 3


@given(candidates=st.integers(1, 30), minutes=st.floats(0.01, 60))
def test_as_many_are_tried_as_there_is_time_for(candidates: int, minutes: float) -> None:
    def within(count: int) -> bool:
        return sum(n * each for n, each in rounds_of(count, minutes)) <= SEARCH * minutes * (1 + 1e-9)

    every = [Candidate(str(i), "lrsa") for i in range(candidates)]
    some = affordable(every, minutes)
    assert some == every[: len(some)]
    assert len(some) == 1 or within(len(some))
    assert len(some) == candidates or not within(len(some) + 1)


def test_candidates_that_there_is_no_time_for_are_left_out_and_it_is_said(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(tuning, "train_run", lambda run: Standing(epoch=1, best=0.1, best_epoch=1))
    found, _ = tune(str(data), 0.5, Path("tuned"), threads=1)
    assert [c.name for c in found.candidates] == ["automatic", "pod-rbf", "dilated filters"]
    assert "there is time for the first 3 of 12 candidates" in capsys.readouterr().out


def test_a_fake_clock_sees_the_minutes_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that take as long as they are given: the winner gets what is left."""
    given: list[float] = []
    now = [0.0]

    def prepare(path: str, model: str, *, out: Path, train: Any, **others: Any) -> Path:
        given.append(train.get("minutes", 0.0))
        now[0] += 1.0  # a second of preparation
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.json").write_text("{}")
        return out

    def train_run(run: Path) -> Standing:
        now[0] += 60 * given[-1]
        return Standing(epoch=1, best=1 / len(run.name), best_epoch=1)

    monkeypatch.setattr(tuning, "prepare", prepare)
    monkeypatch.setattr(tuning, "train_run", train_run)
    found, _ = tune(str(data), 30, Path("tuned"), clock=lambda: now[0])
    assert now[0] == pytest.approx(1800, abs=1)
    assert given[-1] > 0.35 * 30
    assert len({t.name for t in found.trials if t.round == 1}) == len(found.candidates)


@pytest.mark.usefixtures("few")
def test_the_best_by_validation_wins_and_is_trained_for_the_rest(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    finished: list[Path] = []
    monkeypatch.setattr("lrsa.cli.train.finish", lambda run, standing: finished.append(run))
    said = say(capsys, "tune", data, "--minutes", "0.7", "--out", "tuned", "--threads", "1")
    assert finished == [Path("tuned")]
    kept = Tuning.load(Path("tuned"))
    winner = kept.ranked(2)[0]
    assert winner.name == "small" or winner.error <= min(t.error for t in kept.ranked(2))
    assert winner.name != "slow"
    impossible = next(t for t in kept.trials if t.name == "impossible")
    assert math.isinf(impossible.error)
    assert "needs all points" in impossible.reason
    config = RunConfig.load(Path("tuned"))
    assert config.model == next(c for c in FEW if c.name == winner.name).model
    assert config.train.minutes == pytest.approx(max(0.14, 0.7 - kept.spent / 60))
    assert "The winner is" in said
    assert re.search(r"nearest case\s*│ null baseline\s*│ \d", said)
    assert "needs all points" in said
    lrsa.load("tuned")
    assert next(row[0] for row in table(kept)) == winner.name


@pytest.mark.usefixtures("few")
def test_a_stopped_tuning_goes_on(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the third trial, then in the training of the winner: what is done is not done again."""
    trained, calls = tuning.train_run, count()

    def stopping(run: Path) -> Standing:
        if next(calls) in (2, 6):
            raise KeyboardInterrupt
        return trained(run)

    monkeypatch.setattr(tuning, "train_run", stopping)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            tune(str(data), 0.7, Path("tuned"), threads=1)
    done = Tuning.load(Path("tuned"))
    before = json.dumps([vars(t) for t in done.trials])
    found, standing = tune(str(data), 0.7, Path("tuned"), threads=1)
    assert json.dumps([vars(t) for t in found.trials]) == before
    assert standing.epoch == RunConfig.load(Path("tuned")).train.epochs
    assert not list(Path("tuned").rglob("*.tmp"))


def test_candidates_suit_the_data(data: Path) -> None:
    def models(path: Path) -> set[str]:
        return {candidate.model for candidate in candidates_for(lrsa.open_dataset(path))}

    ragged = write(Path("ragged.h5"), ragged_cases(5), ragged_cases(2, seed=1))
    assert "pod-rbf" in models(data)
    assert "backbone-fno" in models(data)
    assert not {"pod-rbf", "backbone-fno"} & models(ragged)
    ragged_set = lrsa.open_dataset(ragged)
    names = [candidate.name for candidate in candidates_for(lrsa.open_dataset(data))]
    assert len(set(names)) == len(names) >= 8
    sinusoids = [c.options["frequencies"] for c in candidates_for(ragged_set) if "frequencies" in c.options]
    assert sinusoids == [4], "points that no grid tells what is near"
    assert "sinusoids of the coordinates" not in names


@pytest.mark.parametrize("step", [1.0, 1e-4], ids=["a small automatic choice", "a large one"])
def test_sizes_follow_the_automatic_choice(data: Path, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """Which is larger where steps are fast."""
    names = ("automatic", "smaller", "twice the rank")
    some = [c for c in candidates_for(lrsa.open_dataset(data)) if c.name in names]
    monkeypatch.setattr(tuning, "candidates_for", lambda data: some)
    monkeypatch.setattr(tuning, "train_run", lambda run: Standing(epoch=1, best=0.1, best_epoch=1))
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(step, 0.0))
    tune(str(data), 30, Path("tuned"), threads=1)
    chosen, smaller, twice = (RunConfig.load(trial_folder(Path("tuned"), n, 1)).options for n in names)
    assert chosen["width"] == (32 if step == 1.0 else 64)
    halved = {name: chosen[name] // 2 for name in ("width", "depth", "rank")}
    assert smaller == {**chosen, **halved}
    assert twice == {**chosen, "rank": 2 * chosen["rank"]}


def test_what_cannot_be_tuned_is_refused(data: Path, capsys: Capture) -> None:
    assert "a positive number" in refusal(capsys, "tune", data, "--minutes", "0")
    assert "`lrsa train darcy` trains a benchmark" in refusal(capsys, "tune", "darcy")
    assert "Did you mean darcy?" in refusal(capsys, "tune", "darci")
    assert "--seed must be at least 0, not -1" in refusal(capsys, "tune", data, "--seed", "-1")
    one = write(Path("one.h5"), grid_cases(1), grid_cases(1, seed=1))
    assert "one is needed for validation" in refusal(capsys, "tune", one)
    Tuning(str(data.resolve()), 5, 0, "cpu", None, []).save(Path("other"))
    assert "Name another --out" in refusal(capsys, "tune", data, "--out", "other")
    Path("other/tune.json").write_text("{")
    assert "is damaged" in refusal(capsys, "tune", data, "--out", "other")


def test_folders_are_refused_as_by_the_training(trained: Path, capsys: Capture) -> None:
    Path("plates").mkdir()
    pv.Plane(i_resolution=2, j_resolution=2).cast_to_unstructured_grid().save("plates/a.vtu")
    for folder, words in (("plates", "`lrsa data import plates"), (trained, "is a run. Go on with")):
        said = refusal(capsys, "tune", folder)
        assert words in said
        assert said == refusal(capsys, "train", folder)


def test_what_no_candidate_can_learn_is_said_once(data: Path, capsys: Capture) -> None:
    """With the data corrected, the same command finds nothing in its way."""
    shutil.copy(data, "bad.h5")
    with h5py.File("bad.h5", "r+") as file:
        file["train/u"][2, 3, 0] = math.nan  # pyright: ignore[reportIndexIssue]
    said = refusal(capsys, "tune", "bad.h5", "--out", "tuned", code=1)
    assert said.count("case 2 of train in") == said.count("has NaN in target p") == 1
    assert files(Path("tuned")) == {}


def test_a_tuning_that_is_not_finished_is_no_run_yet(data: Path, capsys: Capture) -> None:
    Tuning(str(data), 5, 0, "cpu", None, []).save(Path("tuned"))
    for words in (["resume"], ["evaluate"], ["report"], ["predict", data, "--out", "out.h5"]):
        said = refusal(capsys, words[0], "tuned", *words[1:])
        assert "tuned is not a run yet: its tuning is not finished. Run the same `lrsa tune` again" in said
