"""Files: where they live, never half, and never made by two processes at once."""

import errno
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lrsa.errors import LrsaError

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST)
"""What the system answers where no file can be made, EEXIST where a file stands in the place of a folder."""


class Busy(LrsaError):
    """Another process is at it."""


class Unwritable(LrsaError):
    """No file can be made in a folder."""


def data_home() -> Path:
    """Where data sets live: $LRSA_HOME/data, by default ~/.cache/lrsa/data."""
    return Path(os.environ.get("LRSA_HOME", "~/.cache/lrsa")).expanduser() / "data"


def ready(folder: Path) -> None:
    """Make a folder if it is not there; refuse one in which no file can be made.

    Tried with a file that has no name: an error later names a temporary one, or takes it for a lock.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix="."):
            pass
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        why = os.strerror(error.errno).lower()
        raise Unwritable(f"{folder.absolute()} cannot be written ({why}): name another --out") from None


@contextmanager
def atomic(path: Path, size: int = 0) -> Iterator[Path]:
    """A temporary name that becomes `path` when all went well, and vanishes otherwise."""
    ready(path.parent)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise LrsaError(
            f"no space for {path}: it needs {size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free"
        )
    temporary = path.with_name(f"{_prefix(path)}{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def remove_left(path: Path) -> None:
    """Remove what processes that were killed in writing `path` have left of it."""
    if not path.parent.is_dir():
        return
    for entry in os.listdir(path.parent):
        pid = entry.removeprefix(_prefix(path)).removesuffix(".tmp")
        if entry == f"{_prefix(path)}{pid}.tmp" and pid.isdecimal() and not _alive(int(pid)):
            path.with_name(entry).unlink(missing_ok=True)


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """An empty folder of this process that vanishes afterwards; what killed ones have left vanishes, too."""
    home = data_home().parent / "scratch"
    home.mkdir(parents=True, exist_ok=True)
    mine = f".{platform.node()}."
    for left in home.iterdir():
        pid = left.name.rpartition(mine)[2]
        if mine in left.name and pid.isdecimal() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = home / f"{name}{mine}{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def alone(path: Path, patience: float = 0.1) -> Iterator[None]:
    """No other process makes `path` meanwhile; one that tries is refused, after so many seconds.

    The lock is the system's, on a file beside `path`: it ends with the process, however that ends.
    """
    ready(path.parent)
    name = path.with_name(f".{path.name}.lock")
    # Its last holder may be removing it: at least a moment. A soft lock would outlive a killed process.
    lock = FileLock(name, timeout=patience, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise Busy(f"another process is making {path}. Wait for it, or name another file") from None
    except OSError as error:
        # Some network file systems have no locks; data may still be made there.
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    try:
        yield
    finally:
        with suppress(PermissionError):  # Windows removes it on release, and not before
            name.unlink(missing_ok=True)
        lock.release()


def is_made_now(path: Path) -> bool:
    """Whether a process holds `path` by `alone`; what a killed one left of that is removed."""
    if not path.with_name(f".{path.name}.lock").exists():
        return False
    try:
        with alone(path):
            return False
    except Busy:
        return True


def _prefix(path: Path) -> str:
    """Of temporary names. With the host: on a shared disk another's processes cannot be asked for."""
    return f".{path.name}.{platform.node()}."


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # not to be asked: signal 0 is Ctrl-C there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
