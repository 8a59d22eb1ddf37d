"""Readers in processes of their own: whatever a damaged file does to one of them, the program goes on.

VTK and HDF5 may abort, hang or ask for all the memory when a file is broken. A few persistent workers read;
one that dies or takes too long is replaced, and the file it had is named.
"""

import atexit
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from lrsa.errors import NO_SPACE, LrsaError
from lrsa.machine import memory, processor_seconds

TIMEOUT, SLOWEST = 120.0, 1e6
"""A file may take so many seconds, and another for every so many bytes."""
IDLE = 0.005
"""A reader that works a smaller share of the time hangs; others wait for their turn on a busy machine."""
COLLECTIONS = (".pvd", ".vtm", ".vtmb", ".pvtu", ".pvtp", ".pvts", ".pvtr", ".pvti", ".xdmf", ".xmf")
"""Meshes whose files name others."""


@dataclass(frozen=True)
class Call:
    """A function to run on a file in another process."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    path: Path
    """Named when the process dies."""
    folder: str = field(default_factory=os.getcwd)
    """To which relative paths belong: that of the program may have changed since a worker was started."""


class ReaderPool:
    """Worker processes; `run` gives the result of each call, or its error, as they come.

    Args:
        workers: How many.
        timeout: Seconds for a call (default: by the size of the file).
        most: Bytes of memory for each of them (default: half of the machine's).
    """

    def __init__(self, workers: int = 1, timeout: float | None = None, most: int | None = None) -> None:
        self.timeout = timeout
        self._workers = [_Worker(most) for _ in range(workers)]

    def __enter__(self) -> "ReaderPool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def run(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        """(index of the call, its result or the LrsaError it ended with), in the order of completion.

        Raises:
            OSError: The disk is full, which is no fault of the file and ends all calls.
        """
        waiting = list(enumerate(calls))[::-1]
        busy: dict[Any, tuple[_Worker, int]] = {}
        idle = list(self._workers)
        try:
            while waiting or busy:
                while idle and waiting:
                    worker, (index, call) = idle.pop(), waiting.pop()
                    busy[worker.start(call, self._allowed(call.path))] = (worker, index)
                for connection, late in self._ready(busy):
                    worker, index = busy.pop(connection)
                    path = calls[index].path
                    idle.append(worker)
                    yield index, worker.timed_out(path) if late else worker.result(path)
        finally:
            for worker, _ in busy.values():  # nobody waits for these any more
                worker.stop(kill=True)

    def _ready(self, busy: Mapping[Any, tuple["_Worker", int]]) -> list[tuple[Any, bool]]:
        """Connections that have an answer, or (True) whose time is over."""
        nearest = min(worker.deadline for worker, _ in busy.values())
        ready = wait(list(busy), timeout=max(0.0, nearest - time.monotonic()))
        now = time.monotonic()
        over = [c for c, (worker, _) in busy.items() if worker.deadline <= now and c not in ready]
        # Who named the seconds wants an answer then, on whatever machine.
        over = [c for c in over if self.timeout is not None or not busy[c][0].goes_on()]
        return [(c, False) for c in ready] + [(c, True) for c in over]

    def one(self, call: Call) -> Any:
        """The result of a single call; its error is raised."""
        ((_, result),) = self.run([call])
        if isinstance(result, LrsaError):
            raise result
        return result

    def _allowed(self, path: Path) -> float:
        if self.timeout is not None:
            return self.timeout
        return TIMEOUT + _size(path) / SLOWEST


@cache
def shared_pool(workers: int = 1) -> ReaderPool:
    """The workers of this program, kept until it ends: they take a second to start."""
    pool = ReaderPool(workers)
    atexit.register(pool.close)
    return pool


class _Worker:
    """One process, started when it is first needed."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.process: Any = None
        self.connection: Any = None
        self.allowed = self.deadline = 0.0
        self._begun = self._seen = 0.0

    def start(self, call: Call, allowed: float) -> Any:
        """Hand over a call, for so many seconds; the connection on which its result will come."""
        if self.process is None or not self.process.is_alive():
            self._begin()
        try:
            self.connection.send(call)
        except OSError:  # it died just now, of the file before
            self._begin()
            self.connection.send(call)
        self.allowed, self.deadline = allowed, time.monotonic() + allowed
        self._begun = self._seen = self._worked() or 0.0
        return self.connection

    def goes_on(self) -> bool:
        """Whether it works, only slowly, since others work here too: then it gets as long again."""
        worked = self._worked()
        if (
            worked is None
            or worked - self._begun >= self.allowed
            or worked - self._seen < IDLE * self.allowed
        ):
            return False
        self._seen = worked
        self.deadline += self.allowed
        return True

    def _worked(self) -> float | None:
        return processor_seconds(self.process.pid)

    def result(self, path: Path) -> Any:
        try:
            answer = self.connection.recv()
        except Exception:  # the pipe ended, or what came through it is no answer
            self.stop(kill=True)
            return crashed(path)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def timed_out(self, path: Path) -> LrsaError:
        self.stop(kill=True)
        return LrsaError(f"{path} was not read in time: the file is damaged, or on a very slow disk")

    def _begin(self) -> None:
        self.stop()
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.most), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self, kill: bool = False) -> None:
        if self.process is None:
            return
        if kill:
            self.process.kill()
        self.connection.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process = self.connection = None


def _size(path: Path) -> int:
    """Bytes of a case: a file, one in a group of it, a folder, or a collection with the files beside it."""
    if not path.exists():
        path = next((parent for parent in path.parents if parent.is_file()), path)
        return path.stat().st_size if path.exists() else 0
    if path.is_file() and path.suffix.lower() not in (*COLLECTIONS, ".case", ".foam"):
        return path.stat().st_size
    return _folder_size(str((path if path.is_dir() else path.parent).resolve()))


@lru_cache
def _folder_size(folder: str) -> int:
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file())


def _serve(connection: Any, most: int | None) -> None:
    """The life of a worker: it ends when the pipe does, so it does not outlive the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_quiet()
    _limit_memory(most)
    while True:
        try:
            call = connection.recv()
        except (EOFError, OSError):
            os._exit(0)  # VTK takes long to leave in order
        try:
            os.chdir(call.folder)
            answer = call.function(*call.arguments)
        except LrsaError as error:
            answer = error
        except Exception as error:
            full = isinstance(error, OSError) and error.errno in NO_SPACE
            answer = error if full else unreadable(call.path, error)
        connection.send(answer)


def unreadable(path: Path, error: Exception) -> LrsaError:
    """Of a file in which a reader stumbled."""
    reason = " ".join(str(error).split())[:160]
    return LrsaError(f"{path} is not readable ({type(error).__name__}: {reason})")


def crashed(path: Path) -> LrsaError:
    """Of a file of which a reader died."""
    return LrsaError(f"{path} crashed its reader: the file is damaged, or too large for the memory")


def _keep_quiet() -> None:
    """Readers write to the console from C++; what matters comes back as an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _limit_memory(most: int | None) -> None:
    """A damaged size field must not take the machine's memory: a worker may have half of it, or `most`."""
    with contextlib.suppress(ImportError, ValueError, OSError, AttributeError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (max(most or memory() // 2, 4 << 30), hard))
