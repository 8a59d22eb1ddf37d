"""Making cases with a solver: many processes, resumable, the same arrays however they were made.

Case i of a split depends only on (problem, generator version, seed, split, i). Workers leave blocks of
cases in a folder beside the file; an interrupted run finds them again. When all are there, they and the
cases of an earlier, smaller file become the new file, in one rename.
"""

import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from lrsa.console import Advance
from lrsa.data.store import Dataset, Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.files import alone, atomic
from lrsa.parallel.pool import results
from lrsa.pointset import Names, PointSet

BLOCK = 8
"""Cases that a worker makes and leaves at a time."""
Key = tuple[str, int, int]
"""Problem, version of its generator, seed."""


def make_cases(
    path: Path,
    sample: Callable[[np.random.Generator], PointSet],
    schema: Schema,
    wanted: Mapping[str, int],
    key: Key,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Advance = lambda done, total, words: None,
    block: int = BLOCK,
) -> None:
    """Make `path` with so many cases of each split (or extend it, or find that all are there).

    `sample` goes to other processes, or to those of the Dask cluster at an address: a function of a module,
    or a method of a dataclass. An interruption loses the `block` of cases that each worker was at.
    """
    blocks, tag = path.with_name(path.name + ".parts"), f"{zlib.crc32(schema.to_json().encode()):08x}"

    def missing(have: Mapping[str, Dataset]) -> list[CaseBlock]:
        return [
            CaseBlock(sample, key, split, start, min(start + block, n), blocks, tag)
            for split, n in wanted.items()
            for start in range(len(have.get(split, ())), n, block)
        ]

    if not missing(_earlier(path, schema)):
        return
    with alone(path):
        have = _earlier(path, schema)  # again: another process may have made it just now
        if jobs := missing(have):
            _run(jobs, workers, cluster, progress)
            write_dataset(
                path, {split: Joined.of(split, have, jobs, schema.names) for split in wanted}, schema
            )
            shutil.rmtree(blocks, ignore_errors=True)


def _earlier(path: Path, schema: Schema) -> dict[str, Dataset]:
    """The splits of the file that is there, if one is."""
    if not path.exists():
        return {}
    have = {split: Dataset(path, split) for split in ("train", "test")}
    if any(part.schema.origin() != schema.origin() for part in have.values()):
        raise LrsaError(
            f"{path} was made with other settings or by another version. Remove it, or name another --out"
        )
    return have


def case_rng(problem: str, version: int, seed: int, split: str, index: int) -> np.random.Generator:
    """The random generator of one case; nothing else decides what the case is."""
    words = [zlib.crc32(problem.encode()), version, seed, zlib.crc32(split.encode()), index]
    return np.random.default_rng(np.random.SeedSequence(words))


@dataclass(frozen=True)
class CaseBlock:
    """A block of cases of one split."""

    sample: Callable[[np.random.Generator], PointSet]
    key: Key
    split: str
    start: int
    stop: int
    folder: Path
    tag: str
    """Of all settings, so that the blocks of an interrupted run with others are not mistaken for these."""

    @property
    def path(self) -> Path:
        return self.folder / f"{self.tag}-{self.split}-{self.start}-{self.stop}.npz"

    def make(self) -> None:
        """Solve the cases and leave them in the folder."""
        self.leave(self.solved())

    def solved(self) -> dict[str, np.ndarray]:
        """The arrays of all cases."""
        arrays: dict[str, np.ndarray] = {}
        for i in range(self.start, self.stop):
            with threadpool_limits(1):  # workers share the cores, and no case depends on the threads
                case = self.sample(case_rng(*self.key, self.split, i))
            arrays |= {f"{i}/{name}": value for name, value in case.arrays().items()}
            if case.grid is not None:
                arrays[f"{i}/grid"] = np.array(case.grid)
        return arrays

    def leave(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep them in the folder."""
        with atomic(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]

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
    jobs: Sequence[CaseBlock]
    names: Names

    @staticmethod
    def of(split: str, have: Mapping[str, Dataset], jobs: Sequence[CaseBlock], names: Names) -> "Joined":
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


def _run(jobs: Sequence[CaseBlock], workers: int | None, cluster: str | None, progress: Advance) -> None:
    total = sum(job.stop - job.start for job in jobs)
    missing = [job for job in jobs if not job.path.exists()]
    done = total - sum(job.stop - job.start for job in missing)
    progress(done, total, "cases")
    # On a cluster the blocks come back by the network: it need not see our disk.
    calls = [job.make if cluster is None else job.solved for job in missing]
    for i, made in results(calls, workers, cluster):
        if made is not None:
            missing[i].leave(made)
        done += missing[i].stop - missing[i].start
        progress(done, total, "cases")
