"""Files in requests: read and written by processes that may die, in a folder that only the service names.

Only formats that are whole in one file: a collection names others, and what a request names is never opened.
"""

import asyncio
import logging
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.pool import Call, ReaderPool
from lrsa.studio.service_bodies import Form, Limits
from lrsa.studio.service_models import Served
from lrsa.studio.service_reader import read_within, write_beside
from lrsa.surrogate.inputs import Inputs, Loaded

FORMATS = (".vtu", ".vtp", ".vtk", ".vti", ".vts", ".vtr", ".stl", ".ply", ".obj", ".csv", ".tsv", ".npz")
UNPACKED = 8
"""A file may take so many times the largest body in memory."""
READERS = 2
"""Files that are read at one time."""
OPTION = re.compile(r"(?:, e\.g\. --\w+ [^.;]*)|--(inputs|globals|time)(?: TABLE)?")
"""How errors name the options of the command line."""


@dataclass(frozen=True)
class Received:
    """A file as a case of a run."""

    inputs: Inputs
    loaded: Loaded


class Files:
    """The processes that read and write."""

    def __init__(self, limits: Limits, folder: Path) -> None:
        self.folder, self.home, self.limits = folder / "files", folder, limits
        self.folder.mkdir()
        self.most = UNPACKED * limits.bytes
        self._pools: asyncio.Queue[ReaderPool] = asyncio.Queue()
        for _ in range(READERS):
            self._pools.put_nowait(ReaderPool(1, limits.seconds, most=(4 << 30) + 2 * self.most))

    def tidy(self) -> None:
        """Forget the graphs and eigenfunctions of earlier cases where they have become many."""
        kept = [path for name in ("graphs", "basis") for path in (self.home / name).glob("*")]
        if sum(path.stat().st_size for path in kept) > self.most:
            for path in kept:
                path.unlink()

    def close(self) -> None:
        while not self._pools.empty():
            self._pools.get_nowait().close()

    async def read(self, served: Served, form: Form, folder: Path) -> Received:
        """The case in a file. All that is wrong with it is an error without a path of this machine."""
        if form.suffix not in FORMATS:
            raise LrsaError(
                f'files "{form.suffix}" are not taken, only {", ".join(FORMATS)}. Give the file its name'
            )
        if served.surrogate.protocol.history:
            raise LrsaError(f"{served.name} predicts frame after frame: it takes JSON, and no files")
        path = folder / f"case{form.suffix}"
        path.write_bytes(form.content)
        return await self._elsewhere(folder, lambda call: self._load(served, form, path, call))

    async def write(
        self, received: Received, u: np.ndarray, doubts: Mapping[str, np.ndarray]
    ) -> tuple[Path, bytes]:
        """The same file with the predicted fields (N, o) or (1, N, o) in it, and the spread and intervals of
        an ensemble: its name and content."""
        folder = received.loaded.path.parent
        out = await self._elsewhere(folder, lambda pool: _write(received, u, doubts, pool))
        return Path(f"predicted{out.suffix}"), out.read_bytes()

    def folder_of_request(self) -> tempfile.TemporaryDirectory[str]:
        """Where the file of one request lives, and no longer than that."""
        return tempfile.TemporaryDirectory(dir=self.folder)

    async def _elsewhere(self, folder: Path, work: Callable[[ReaderPool], Any]) -> Any:
        """Run work that calls other processes in a thread; whatever a file does to it is an LrsaError."""
        pool = await self._pools.get()

        def free(done: asyncio.Future[Any]) -> None:
            done.exception()  # somebody may have given up waiting for it
            self._pools.put_nowait(pool)

        running = asyncio.ensure_future(asyncio.to_thread(work, pool))
        running.add_done_callback(free)
        try:
            return await asyncio.shield(running)
        except LrsaError as error:
            raise LrsaError(_told(error, folder)) from error
        except OSError:  # of this machine: the file itself is opened elsewhere
            raise
        except Exception as error:
            logging.getLogger(__name__).warning("a file makes no case", exc_info=error)
            reason = LrsaError(f"the file makes no case ({type(error).__name__}: {str(error)[:200]})")
            raise LrsaError(_told(reason, folder)) from error

    def _load(self, served: Served, form: Form, path: Path, pool: ReaderPool) -> Received:
        given, times = _numbers(form.fields, "globals"), _numbers(form.fields, "time")
        names = [word.strip() for word in form.fields.get("inputs", "").split(",") if word.strip()]
        wanted = len(served.about.globals)
        if given is not None and len(given) != wanted:
            raise LrsaError(f"{served.name} takes {wanted} globals, and {len(given)} are given")
        if times is not None and len(times) != 1:
            raise LrsaError("a file holds one time: ask for one with --time")

        def elsewhere(function: Callable[[Path], Any], path: Path) -> Any:
            return pool.one(Call(read_within, (function, path, self.most), path))

        times = () if times is None else tuple(map(float, times))
        run = Path(served.name)
        inputs = Inputs(run, served.surrogate, [path], names, None, times, given, elsewhere)
        loaded = inputs.load(path)
        asked = loaded.case.times
        if asked is not None and len(asked) != 1:
            raise LrsaError(f"{path.name} has {len(asked)} times: ask for one with --time")
        return Received(inputs, loaded)


def _write(received: Received, u: np.ndarray, doubts: Mapping[str, np.ndarray], pool: ReaderPool) -> Path:
    loaded, times = received.loaded, received.loaded.case.times
    fields = received.inputs.fields(u if times is None else u[0], loaded, None if times is None else 0)
    for what, values in doubts.items():
        fields |= received.inputs.doubts(values if times is None else values[0], what)
    time = None if times is None else float(times[0])
    return pool.one(
        Call(write_beside, (loaded.path, fields, received.inputs.roles.location, time), loaded.path)
    )


def _numbers(fields: Mapping[str, str], name: str) -> np.ndarray | None:
    """Of a field of a form, numbers separated by commas."""
    if name not in fields:
        return None
    try:
        values = np.array([float(word) for word in fields[name].split(",")])
    except ValueError:
        raise LrsaError(f"{name} takes numbers separated by commas") from None
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise LrsaError(f"{name} has NaN or infinite values")
    return values


def _told(error: LrsaError, folder: Path) -> str:
    """The error in the words of the service: nobody hears where its files are."""
    said = "; ".join(error.lines).replace(f"{folder}/", "")
    return OPTION.sub(lambda option: f"the form field {option[1]}" if option[1] else "", said)
