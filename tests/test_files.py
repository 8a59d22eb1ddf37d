"""Files that are never half, and never made by two processes at once."""

import errno
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cases import make_case

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.files import Unwritable, alone, atomic, remove_left, scratch

KILLED = """
import os, signal, sys
from pathlib import Path
from lrsa.files import alone, atomic
with alone(Path(sys.argv[1])), atomic(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""

REFUSED = """
import sys
from pathlib import Path
from lrsa.errors import LrsaError
from lrsa.files import alone
try:
    with alone(Path(sys.argv[1])):
        print("in")
except LrsaError as error:
    print(error)
"""


def killed_in_writing(path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert not path.exists()
    assert len(os.listdir(path.parent)) == 2, "the lock and the half"


def test_what_a_killed_process_left_is_gone_after_the_next_write(tmp_path: Path) -> None:
    killed_in_writing(tmp_path / "a.h5")
    with alone(tmp_path / "a.h5"):
        write_dataset(tmp_path / "a.h5", [make_case(i, 3) for i in range(4)])
    assert os.listdir(tmp_path) == ["a.h5"]


def test_what_living_processes_and_others_write_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    killed_in_writing(tmp_path / "b.a.h5")
    theirs = set(os.listdir(tmp_path)) | {".a.h5.elsewhere.1.tmp", ".a.h5..tmp", ".a.h5.tmp"}
    for name in theirs:
        tmp_path.joinpath(name).touch()
    with atomic(path) as mine:
        mine.touch()
        remove_left(path)
        assert set(os.listdir(tmp_path)) == theirs | {mine.name}
    assert path.exists()


def test_a_scratch_folder_vanishes_and_so_does_what_a_killed_process_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    words = "import os; from lrsa.files import scratch\nwith scratch('a'): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", words], check=False)
    (left,) = (tmp_path / "scratch").iterdir()
    (tmp_path / "scratch" / "a.elsewhere.1").mkdir()
    with scratch("a") as mine:
        (mine / "file").touch()
        with scratch("b") as other:
            assert {p.name for p in (tmp_path / "scratch").iterdir()} == {
                mine.name,
                other.name,
                "a.elsewhere.1",
            }
    assert left.name not in os.listdir(tmp_path / "scratch")
    assert os.listdir(tmp_path / "scratch") == ["a.elsewhere.1"]


def test_only_one_of_many_is_let_in(tmp_path: Path) -> None:
    """Each lock is an open file of its own, so threads stand for processes; every one comes in later."""
    path, inside, entered = tmp_path / "a.h5", [0], [0]

    def enter(_: int) -> None:
        while True:
            try:
                with alone(path):
                    inside[0] += 1
                    assert inside == [1]
                    entered[0] += 1
                    inside[0] -= 1
                return
            except LrsaError:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(200)))
    assert entered == [200]
    assert not os.listdir(tmp_path)


def test_the_lock_ends_with_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), alone(tmp_path / "a.h5"):
            raise KeyError
    assert not os.listdir(tmp_path)


def test_another_process_is_refused_while_one_is_in(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"

    def other() -> str:
        words = [sys.executable, "-c", REFUSED, str(path)]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    with alone(path):
        assert other() == f"another process is making {path}. Wait for it, or name another file\n"
        assert other().startswith("another"), "the refused one took nothing away"
    assert other() == "in\n"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("reason", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_file_systems_without_locks_are_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    def flock(*_: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(fcntl, "flock", flock)
    with alone(tmp_path / "a.h5"):
        tmp_path.joinpath("a.h5").touch()
    assert os.listdir(tmp_path) == ["a.h5"]


def test_locks_that_fail_for_other_reasons_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"), alone(tmp_path / "a.h5"):
        pass


@pytest.mark.parametrize("making", [alone, atomic])
@pytest.mark.parametrize("reason", [errno.EACCES, errno.EROFS, errno.ENOENT])
def test_a_folder_that_cannot_be_written_is_named_and_not_a_file_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, making: Callable[[Path], Any], reason: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(reason, os.strerror(reason), ".a.h5.lock")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(Unwritable) as caught, making(tmp_path / "a.h5"):
        pass
    why = os.strerror(reason).lower()
    assert str(caught.value) == f"{tmp_path} cannot be written ({why}): name another --out"
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("making", [alone, atomic])
def test_places_where_the_system_makes_no_file_are_named(
    tmp_path: Path, making: Callable[[Path], Any]
) -> None:
    (tmp_path / "table.csv").touch()
    there = [Path("/proc")] if Path("/proc/self").exists() else []
    for folder in (tmp_path / "table.csv", tmp_path / "table.csv" / "deeper", *there):
        with pytest.raises(Unwritable, match=f"^{folder} cannot be written"), making(folder / "a.h5"):
            pass


@pytest.mark.parametrize("making", [alone, atomic])
def test_a_full_disk_is_no_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, making: Callable[[Path], Any]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space left"), making(tmp_path / "a.h5"):
        pass
