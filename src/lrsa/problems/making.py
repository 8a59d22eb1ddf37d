"""Making a problem's data with its solver: `data.making` with what the problem knows."""

from pathlib import Path

from lrsa.console import Advance
from lrsa.data.making import BLOCK, make_cases
from lrsa.errors import LrsaError
from lrsa.problems.problem import Problem

MOST = 10**6
"""Cases of a split: more are a mistake, and the list of them would not fit into memory."""
PATIENCE = 60.0
"""Seconds of work that an interruption may lose, if a case takes no longer."""


def make_dataset(
    problem: Problem,
    samples: int | None = None,
    test: int | None = None,
    fidelity: str = "default",
    seed: int = 0,
    workers: int | None = None,
    out: Path | None = None,
    progress: Advance = lambda done, total, words: None,
    cluster: str | None = None,
) -> Path:
    """Make (or extend, or find) the generated set and return its path.

    `samples` are training cases; `test` is the published number by default, but no more than `samples`.
    `cluster` is the address of a Dask scheduler, whose workers then solve them.
    """
    if seed < 0 or (workers is not None and workers < 1):
        raise LrsaError(f"cannot make data with seed {seed} and {workers} workers: from 0 and from 1 on")
    solver, path = problem.solver_at(fidelity), out or problem.path(fidelity, seed)
    make_cases(
        path,
        solver.sample,
        problem.schema(fidelity, seed),
        wanted(problem, samples, test),
        key=(problem.name, problem.version, seed),
        workers=workers,
        cluster=cluster,
        progress=progress,
        block=max(1, min(BLOCK, int(PATIENCE / problem.seconds.get(fidelity, 1.0)))),
    )
    return path


def wanted(problem: Problem, samples: int | None, test: int | None) -> dict[str, int]:
    """The number of cases of each split."""
    samples = problem.samples if samples is None else samples
    counts = {"train": samples, "test": min(samples, problem.test) if test is None else test}
    if max(counts.values()) > MOST:
        raise LrsaError(f"cannot make {max(counts.values())} cases: at most {MOST}")
    if min(counts.values()) < 1:
        raise LrsaError(
            f"cannot make {samples} training and {counts['test']} test cases: at least one of each"
        )
    return counts
