"""A run that is killed at any moment and resumed ends with the bits of one that was not."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from small import (
    OPTIONS,
    WORDS,
    assert_bit_equal,
    copy_run,
    differ,
    files,
    frames,
    grid_cases,
    quick,
    refusal,
    say,
    weights,
    write,
)

from lrsa.cli.program import main
from lrsa.errors import LrsaError
from lrsa.training import checkpoint
from lrsa.training.fit import prepare, train_run

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
EPOCHS = 7
SETTINGS = ["--threads", "1", "--train.epochs", str(EPOCHS), "--train.validation", "0.2", *WORDS]
PATIENCE = 120.0
DYING = """
import os, pathlib, signal, sys
from lrsa.cli.program import main
real, left = pathlib.Path.write_bytes, [{count}]
def dying(self, data):
    left[0] -= "state.safetensors" in self.name
    if left[0] == 0:
        real(self, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, data)
pathlib.Path.write_bytes = dying
sys.exit(main(sys.argv[1:]))
"""
"""The program, killed in the middle of writing a checkpoint."""


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data whose epochs take a while."""
    return write(tmp_path_factory.mktemp("long") / "long.h5", grid_cases(30), grid_cases(2, seed=1))


@pytest.fixture(scope="module")
def uninterrupted(long: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("long") / "whole"
    quick(long, run, threads=1, epochs=EPOCHS, validation=0.2)
    return run


def start(*words: object, program: Sequence[str] = ("-m", "lrsa")) -> subprocess.Popen[str]:
    """`lrsa ...` as a process of its own."""
    command = [sys.executable, *program, *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, preexec_fn=_hear_control_c
    )


def _hear_control_c() -> None:
    # A shell starts background jobs, and so the tests in them, with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stop_when(process: subprocess.Popen[str], ready: Callable[[], bool], how: signal.Signals) -> None:
    """Send a signal as soon as something is the case."""
    until = time.monotonic() + PATIENCE
    while not ready():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.0005)
    process.send_signal(how)


def rows(run: Path) -> int:
    log = run / "metrics.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def assert_as_if_nothing_had_happened(run: Path, whole: Path) -> None:
    for kind in ("model", "last"):
        assert_bit_equal(weights(run, kind), weights(whole, kind))
    assert (run / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()


def assert_killed(process: subprocess.Popen[str], run: Path) -> None:
    """It was, and every file that it left under its final name is whole."""
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    for path in run.rglob("*.safetensors"):
        with safe_open(path, "pt") as file:
            assert len(list(file.keys())) > 10, path


def test_killed_runs_end_as_if_nothing_had_happened(long: Path, uninterrupted: Path, home: Path) -> None:
    """Killed in the first epoch, in the writing of a checkpoint, right after one, and at a random moment."""
    run, state = home / "run", home / "run" / "checkpoint" / "state.safetensors"
    process = start("train", long, "--out", run, *SETTINGS)
    stop_when(process, lambda: (run / "metrics.jsonl").exists(), signal.SIGKILL)
    assert_killed(process, run)

    process = start("resume", run, program=("-c", DYING.format(count=2)))
    assert_killed(process, run)
    assert list(state.parent.glob(".*.tmp")), "it was not killed in writing"
    assert rows(run) == 2, "the row is written before the checkpoint"

    before = state.stat().st_mtime_ns
    process = start("resume", run)
    stop_when(process, lambda: state.stat().st_mtime_ns != before, signal.SIGKILL)
    assert_killed(process, run)

    wait, done = 0.1 * random.Random(0).random(), rows(run)
    process = start("resume", run)
    stop_when(process, lambda: rows(run) > done, signal.SIGCONT)
    time.sleep(wait)
    process.kill()
    assert_killed(process, run)

    assert rows(run) < EPOCHS, "it was not interrupted"
    train_run(run)
    assert_as_if_nothing_had_happened(run, uninterrupted)
    assert not list(run.rglob("*.tmp"))


def test_interruptions_inside_the_process_change_nothing_either(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each of the writes that close an epoch."""
    settings = {"epochs": 3, "validation": 0.2}
    quick(data, "whole", **settings)
    real = checkpoint.write_tensors

    class Killed(Exception):
        pass

    for count in range(8):
        for written in (False, True):
            left = [count]

            def dying(path: Path, *rest: object, written: bool = written, left: list[int] = left) -> None:
                if left[0] == 0:
                    if written:
                        real(path, *rest)  # pyright: ignore[reportArgumentType]
                    raise Killed
                left[0] -= 1
                real(path, *rest)  # pyright: ignore[reportArgumentType]

            run = Path(f"run-{count}-{written}")
            prepare(str(data), "lrsa", out=run, options=OPTIONS, train=settings)
            with monkeypatch.context() as patch:
                patch.setattr(checkpoint, "write_tensors", dying)
                try:
                    train_run(run)
                except Killed:
                    pass
                else:
                    assert count >= 7
            train_run(run)
            assert_as_if_nothing_had_happened(run, Path("whole"))


def stopped_twice(data: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was interrupted after each of its first two epochs, to its end."""
    run = prepare(str(data), "lrsa", out=Path("run"), options=OPTIONS, train=settings)
    for _ in range(2):
        stopped_at_checkpoint(run, monkeypatch)
    train_run(run)
    return run


def stopped_at_checkpoint(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for one more epoch."""
    real = checkpoint.write_tensors

    def once(path: Path, *rest: object) -> None:
        real(path, *rest)  # pyright: ignore[reportArgumentType]
        if path.name == "state.safetensors":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_tensors", once)
        with pytest.raises(KeyboardInterrupt):
            train_run(run)


def test_what_uses_an_unfinished_run_says_so(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = prepare(str(data), "lrsa", out=Path("run"), options=OPTIONS, train={"epochs": 3})
    stopped_at_checkpoint(run, monkeypatch)
    commands = (("evaluate", run), ("predict", run, data, "--out", "out.h5"))
    said = "run is not trained to its end: these are its best weights so far. Go on with `lrsa resume run`"
    assert all(said in say(capsys, *words) for words in commands)
    train_run(run)
    assert not any("not trained to its end" in say(capsys, *words) for words in commands)


def test_half_precision_resumes_exactly(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of the loss scale is part of it."""
    settings = {"epochs": 4, "precision": "fp16"}
    quick(data, "whole", **settings)
    assert_as_if_nothing_had_happened(stopped_twice(data, settings, monkeypatch), Path("whole"))


def test_noise_on_input_frames_resumes_exactly(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [frames(case, 12) for case in grid_cases(4)]
    data = write(home / "frames.h5", cases, cases[:1], protocol="autoregressive")
    settings = {"epochs": 4, "windows": True, "noise": 0.1}
    quick(data, "whole", **settings)
    quick(data, "noiseless", **{**settings, "noise": 0.0})
    assert differ(weights(Path("whole")), weights(Path("noiseless")))
    assert_as_if_nothing_had_happened(stopped_twice(data, settings, monkeypatch), Path("whole"))


def test_control_c_says_one_line_and_the_run_goes_on(long: Path, uninterrupted: Path, home: Path) -> None:
    run = home / "run"
    process = start("train", long, "--out", run, *SETTINGS)
    stop_when(process, lambda: rows(run) >= 2, signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors.startswith("lrsa: stopped.")
    assert errors.count("\n") == 1
    assert "lrsa resume" in errors
    assert not list(run.rglob("*.tmp"))
    train_run(run)
    assert_as_if_nothing_had_happened(run, uninterrupted)


def test_resuming_a_finished_run_changes_nothing(trained: Path) -> None:
    names = ("model.safetensors", "last.safetensors", "metrics.jsonl", "config.json")
    before = [(trained / name).read_bytes() for name in names]
    train_run(trained)
    assert [(trained / name).read_bytes() for name in names] == before


def test_a_finished_run_without_its_weights_is_not_sent_in_a_circle(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = copy_run(trained, Path("run"))
    (run / "model.safetensors").unlink()
    assert "put them back, or train again" in refusal(capsys, "resume", run)


def test_a_run_whose_log_was_lost_goes_on(data: Path) -> None:
    quick(data, "run")
    before = files(Path("run"))["model.safetensors"]
    Path("run/metrics.jsonl").unlink()
    train_run(Path("run"))
    assert Path("run/metrics.jsonl").read_bytes() == b""
    assert files(Path("run"))["model.safetensors"] == before


def test_a_run_goes_on_from_any_folder(data: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was named relative to another one."""
    Path("d.h5").write_bytes(data.read_bytes())
    quick(Path("d.h5"), "first")
    run = prepare(
        "d.h5", "lrsa", out=Path("run"), init="first", options=OPTIONS, train={"epochs": 2}
    ).resolve()
    (home / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    train_run(run)
    assert weights(run)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_damaged_checkpoint_is_refused(
    data: Path, share: float, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(data, "run", epochs=1)
    state = Path("run/checkpoint/state.safetensors")
    state.write_bytes(state.read_bytes()[: int(share * state.stat().st_size)])
    capsys.readouterr()
    assert main(["resume", "run"]) == 2
    line = capsys.readouterr().err
    assert "state.safetensors is damaged: train again" in line
    assert line.count("\n") == 1


def test_a_checkpoint_of_another_run_is_refused(data: Path) -> None:
    quick(data, "run", epochs=1)
    quick(data, "other", epochs=1, options={"width": 32})
    Path("run/checkpoint/state.safetensors").write_bytes(
        Path("other/checkpoint/state.safetensors").read_bytes()
    )
    with pytest.raises(LrsaError, match="of another run"):
        train_run(Path("run"))
