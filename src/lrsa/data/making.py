"""Making a benchmark's data: many processes, resumable, the same arrays however it was made.

Case i of a split depends only on (benchmark, generator version, seed, split, i). Workers leave blocks of
cases in a folder beside the file; an interrupted run finds them again. When all are there, they and the
cases of an earlier, smaller file become the new file, in one rename.
"""

import os
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from lrsa.data.catalogue import Benchmark, get
from lrsa.data.pointset import Names, PointSet
from lrsa.data.store import Dataset, Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.files import alone, atomic

BLOCK = 8
"""Cases that a worker makes and leaves at a time."""
Progress = Callable[[int, int], None]
"""Called with (cases done, cases in all)."""


def make_dataset(
    benchmark: Benchmark,
    samples: int | None = None,
    test: int | None = None,
    fidelity: str = "default",
    seed: int = 0,
    workers: int | None = None,
    out: Path | None = None,
    progress: Progress = lambda done, total: None,
) -> Path:
    """Make (or extend, or find) the set and return its path.

    `samples` are training cases; `test` is the published number by default, but no more than `samples`.
    """
    if seed < 0 or (workers is not None and workers < 1):
        raise LrsaError(f"cannot make data with seed {seed} and {workers} workers: from 0 and from 1 on")
    wanted = _wanted(benchmark, samples, test)
    path, schema = out or benchmark.path(fidelity, seed), benchmark.schema(fidelity, seed)
    blocks, tag = path.with_name(path.name + ".parts"), f"{zlib.crc32(schema.to_json().encode()):08x}"

    def missing(have: Mapping[str, Dataset]) -> list[Job]:
        return [
            Job(benchmark.name, fidelity, seed, split, start, min(start + BLOCK, n), blocks, tag)
            for split, n in wanted.items()
            for start in range(len(have.get(split, ())), n, BLOCK)
        ]

    if not missing(_earlier(path, schema)):
        return path
    with alone(path):
        have = _earlier(path, schema)  # again: another process may have made it just now
        if jobs := missing(have):
            _run(jobs, workers or os.cpu_count() or 1, progress)
            write_dataset(
                path, {split: Joined.of(split, have, jobs, schema.names) for split in wanted}, schema
            )
            shutil.rmtree(blocks, ignore_errors=True)
    return path


def _wanted(benchmark: Benchmark, samples: int | None, test: int | None) -> dict[str, int]:
    """The number of cases of each split."""
    samples = benchmark.samples if samples is None else samples
    wanted = {"train": samples, "test": min(samples, benchmark.test) if test is None else test}
    if min(wanted.values()) < 1:
        raise LrsaError(
            f"cannot make {samples} training and {wanted['test']} test cases: at least one of each"
        )
    return wanted


def _earlier(path: Path, schema: Schema) -> dict[str, Dataset]:
    """The splits of the file that is there, if one is."""
    if not path.exists():
        return {}
    have = {split: Dataset(path, split) for split in ("train", "test")}
    if any(part.schema.to_json() != schema.to_json() for part in have.values()):
        raise LrsaError(
            f"{path} was made with other settings or by another version. Remove it, or name another --out"
        )
    return have


def case_rng(benchmark: str, version: int, seed: int, split: str, index: int) -> np.random.Generator:
    """The random generator of one case; nothing else decides what the case is."""
    words = [zlib.crc32(benchmark.encode()), version, seed, zlib.crc32(split.encode()), index]
    return np.random.default_rng(np.random.SeedSequence(words))


@dataclass(frozen=True)
class Job:
    """A block of cases of one split."""

    benchmark: str
    fidelity: str
    seed: int
    split: str
    start: int
    stop: int
    folder: Path
    tag: str
    """Of all settings, so that the blocks of an interrupted run with others are not mistaken for these."""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.tag}-{self.split}-{self.start}-{self.stop}.npz"

    def make(self) -> int:
        """Solve the cases and leave them in the folder; the number of cases made."""
        benchmark = get(self.benchmark)
        solver = benchmark.solver_at(self.fidelity)
        arrays: dict[str, np.ndarray] = {}
        for i in range(self.start, self.stop):
            rng = case_rng(self.benchmark, benchmark.version, self.seed, self.split, i)
            with threadpool_limits(1):  # workers share the cores, and no case depends on the threads
                case = solver.sample(rng)
            arrays |= {f"{i}/{name}": value for name, value in case.arrays().items()}
            if case.grid is not None:
                arrays[f"{i}/grid"] = np.array(case.grid)
        with atomic(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
        return self.stop - self.start

    def read(self, index: int, names: Names) -> PointSet:
        """One case of the block."""
        with np.load(self.path) as block:
            fields = {key.split("/")[1]: block[key] for key in block.files if key.startswith(f"{index}/")}
        grid = fields.pop("grid", None)
        return PointSet(**fields, grid=None if grid is None else tuple(map(int, grid)), names=names)


@dataclass(frozen=True)
class Joined(Sequence[PointSet]):
    """The cases of an earlier file followed by those of the blocks."""

    earlier: Sequence[PointSet]
    jobs: Sequence[Job]
    names: Names

    @staticmethod
    def of(split: str, have: Mapping[str, Dataset], jobs: Sequence[Job], names: Names) -> "Joined":
        return Joined(have.get(split, ()), [job for job in jobs if job.split == split], names)

    def __len__(self) -> int:
        return max([len(self.earlier), *(job.stop for job in self.jobs)])

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index < len(self.earlier):
            return self.earlier[index]
        job = next(job for job in self.jobs if job.start <= index < job.stop)
        return job.read(index, self.names)


def _run(jobs: Sequence[Job], workers: int, progress: Progress) -> None:
    total = sum(job.stop - job.start for job in jobs)
    missing = [job for job in jobs if not job.path.exists()]
    done = total - sum(job.stop - job.start for job in missing)
    progress(done, total)
    for made in _results(missing, workers):
        done += made
        progress(done, total)


def _results(jobs: Sequence[Job], workers: int) -> Iterator[int]:
    """The numbers of cases made, as workers finish their jobs; each is a process of its own."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _end_with_parent)
    try:
        for future in as_completed([pool.submit(job.make) for job in jobs]):
            yield future.result()
    except BrokenProcessPool as error:
        raise LrsaError(
            "a worker process died (out of memory?). Run the command again: it goes on where it stopped"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next block forever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
