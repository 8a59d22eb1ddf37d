"""`lrsa train --nproc` on this machine: the same training, and on again when a process is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from safetensors.torch import load_file
from small import WORDS, assert_bit_equal, grid_cases, refusal, write

from lrsa.cli.program import main
from lrsa.evaluation.evaluate import evaluate

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def words(out: str, *more: str) -> list[str]:
    given = ["--train.epochs", "3", "--train.validation", "0.2", "--threads", "1"]
    return ["train", "small.h5", "--out", out, *given, *WORDS, *more]


def test_two_processes_end_where_one_does(home: Path) -> None:
    """Sharing the points of every case."""
    write(home / "small.h5", grid_cases(8), grid_cases(2, seed=1))
    assert main(words("alone")) == 0
    assert main(words("together", "--nproc", "2", "--shard-points", "2")) == 0
    ours, theirs = (
        [json.loads(row) for row in (home / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("together", "alone")
    )
    assert len(ours) == len(theirs) == 3
    for row, same in zip(ours, theirs, strict=True):
        assert row == pytest.approx(same, rel=1e-5)
    together, alone = (evaluate(home / run).relative_l2 for run in ("together", "alone"))
    assert together == pytest.approx(alone, rel=1e-4)
    assert (home / "together" / "report.html").exists()


def test_what_cannot_be_shared_is_refused_before_there_is_a_run(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home / "small.h5", grid_cases(8), grid_cases(2, seed=1))
    cases = {
        "--shard-points 3 does not divide --nproc 2": words("a", "--nproc", "2", "--shard-points", "3"),
        "65 processes cannot share a case of 64 points": words("a", "--nproc", "65", "--shard-points", "65"),
        "Add --nproc 2": words("a", "--shard-points", "2"),
        "--nproc must be at least 1": words("a", "--nproc", "0"),
        "Leave out --train.compile": words("a", "--nproc", "2", "--shard-points", "2", "--train.compile"),
        'cannot be shared with "backbone-fno"': [
            *("train", "small.h5", "--out", "a", "--nproc", "2", "--shard-points", "2"),
            *("--model", "backbone-fno", "--model.width", "16", "--model.depth", "1"),
        ],
    }
    for said, typed in cases.items():
        assert said in refusal(capsys, *typed)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "the environment of torchrun lacks RANK" in refusal(capsys, *words("a"))
    assert not (home / "a").exists()


@pytest.mark.slow
def test_a_killed_process_costs_nothing(home: Path) -> None:
    """kill -9 of one of two, in the middle of an epoch: the same bits as undisturbed, by one restart."""
    write(home / "small.h5", grid_cases(40), grid_cases(2, seed=1))
    more = ["--train.epochs", "20"]
    assert main(words("undisturbed", *more, "--nproc", "2")) == 0
    agent = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    starts = {
        "killed": ["-m", "lrsa", *words("killed", *more, "--nproc", "2")],
        "by torchrun": [*agent, "-m", "lrsa", *words("by torchrun", *more)],
    }
    for name, command in starts.items():
        with subprocess.Popen([sys.executable, *command]) as started:
            metrics = home / name / "metrics.jsonl"
            while not metrics.exists() or len(metrics.read_text().splitlines()) < 3:
                assert started.poll() is None
                time.sleep(0.05)
            os.kill(max(workers(started.pid)), signal.SIGKILL)
            assert started.wait(900) == 0
        for kept in ("last.safetensors", "model.safetensors"):
            assert_bit_equal(load_file(home / name / kept), load_file(home / "undisturbed" / kept))


def workers(command: int) -> list[int]:
    """The processes that train for a command."""
    started = psutil.Process(command).children(recursive=True)
    said = {process.pid: process.cmdline() for process in started}
    return [pid for pid, words in said.items() if "lrsa" in words and "torch.distributed.run" not in words]
