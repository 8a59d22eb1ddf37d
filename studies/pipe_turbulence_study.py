"""The solver of Pipe Turbulence: CPU time of a case, and what finer meshes and steps change.

    python studies/pipe_turbulence_study.py [--cases 3] [--out results/pipe-turbulence.md]

Minutes a case: what was solved is kept in $LRSA_HOME/pipe-turbulence-study and not solved again. CPU seconds
are those of pimpleFoam. Differences are relative L2, at the nodes of the benchmark, of the first frame and of
the second; beside them stands how much a flow changes from the first to the second.
"""

import argparse
import resource
from pathlib import Path

import numpy as np

from lrsa.console import bar
from lrsa.files import atomic, data_home
from lrsa.problems.pipe_turbulence.solver import Inflow, PipeTurbulence
from lrsa.training.config import versions

FAST, DEFAULT, HALF = (0, 0.04), (1, 0.02), (1, 0.01)
"""Refinement and step; the last one is solved for the first case only."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/pipe-turbulence.md"))
    options = parser.parse_args()
    wanted = [(seed, *size) for seed in range(options.cases) for size in (FAST, DEFAULT)] + [(0, *HALF)]
    runs = {}
    with bar("Solving") as report:
        for done, key in enumerate(wanted):
            report(done, len(wanted), "flows")
            runs[key] = solved(*key)
    rows = [row(key, runs) for key in wanted]
    words = ", ".join(f"{name} {value}" for name, value in versions().items())
    with atomic(options.out) as temporary:
        temporary.write_text(HEAD.format(cases=options.cases) + "".join(rows) + f"\nVersions: {words}.\n")
    print(options.out.read_text())


def solved(seed: int, refinement: int, step: float) -> dict[str, np.ndarray]:
    """Both frames at the nodes, CPU seconds, steps and the worst residual of a case."""
    path = data_home().parent / "pipe-turbulence-study" / f"{seed}-{refinement}-{step:g}.npz"
    if not path.exists():
        solver = PipeTurbulence(refinement=refinement, step=step)
        inflow = Inflow.draw(np.random.default_rng(seed), solver.start)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        case = solver.case_of(inflow, solver.solve(inflow)).arrays()
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary, open(temporary, "wb") as file:
            kept = {name: case[name] for name in ("f", "u", "iterations", "residual")}
            np.savez(file, seconds=seconds, **kept)  # pyright: ignore[reportArgumentType]
    with np.load(path) as file:
        return dict(file)


def row(key: tuple[int, int, float], runs: dict[tuple[int, int, float], dict[str, np.ndarray]]) -> str:
    seed, refinement, step = key
    run, best = runs[key], runs[(seed, *DEFAULT)] if key[1:] != HALF else runs[(0, *DEFAULT)]
    numbers = [relative(run["u"], run["f"]), *(relative(run[k], best[k]) for k in ("f", "u"))]
    cells = [
        str(seed),
        str(5034 * 4**refinement),
        f"{step:g}",
        f"{run['seconds']:.0f}",
        f"{run['residual']:.1e}",
    ]
    return f"| {' | '.join([*cells, *(f'{100 * number:.1f} %' for number in numbers)])} |\n"


def relative(value: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


HEAD = """\
# The solver of Pipe Turbulence

Made by `python studies/pipe_turbulence_study.py --cases {cases}`: CPU seconds of pimpleFoam on one thread,
the worst residual of any equation in any step, how much the flow changes from the first frame to the second,
and the relative L2 difference of both frames, at the nodes of the benchmark, to those of the default (20,136
cells, steps of 0.02 s).

| case | cells | step, s | CPU s | worst residual | change from frame to frame | first frame | second frame |
|---|---|---|---|---|---|---|---|
"""

if __name__ == "__main__":
    main()
