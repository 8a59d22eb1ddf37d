"""How accurate the forging solver is: step sizes, meshes, Young's modulus; and a census of dies.

    python studies/plasticity_study.py --out results/plasticity.md

Every run leaves its frames in a folder named after the sources of the solver, so that an interrupted study
goes on where it stopped. The dies are those of the first cases of the fast set. Differences
are between the frames of a run and those of a reference on the nodes that both have: over the displacements
of the reference (all frames), and, in brackets, over the four channels (x, y, u_x, u_y) of the benchmark's
metric.
"""

import argparse
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

import numba
import numpy as np
import torch

import lrsa
from lrsa.console import bar
from lrsa.data.making import case_rng
from lrsa.data.store import Dataset
from lrsa.files import atomic, data_home
from lrsa.numerics.compiled import code_folder
from lrsa.problems.catalogue import get
from lrsa.problems.making import make_dataset
from lrsa.problems.plasticity import flow as plasticity_flow
from lrsa.problems.plasticity.die import random_heights
from lrsa.problems.plasticity.dynamics import LEFT, PLASTIC, SHORTEST, STEPS, WORK
from lrsa.problems.plasticity.solver import Plasticity, deepest, passed, smallest_corner

BENCHMARK = get("plasticity")
FAST = Plasticity(young=200e3 / 16)
FULL = Plasticity()
SOLVERS = {
    "51 x 16": replace(FAST, columns=50, rows=15),
    "101 x 31": FAST,
    "201 x 61": replace(FAST, columns=200, rows=60),
    "step / 2": replace(FAST, safety=FAST.safety / 2),
    "step / 4": replace(FAST, safety=FAST.safety / 4),
    "E / 4": replace(FAST, young=FULL.young / 4),
    "E": FULL,
    "E, 51 x 16": replace(FULL, columns=50, rows=15),
    "E, step / 2": replace(FULL, safety=FULL.safety / 2),
}
"""101 x 31 nodes and E / 16 where nothing else is said."""
TABLES = {
    "Step sizes (E / 16), against a quarter of the step": (("101 x 31", "step / 2"), "step / 4"),
    "Step size at E, against half of it": (("E",), "E, step / 2"),
    "Meshes (E / 16), against 201 x 61 nodes": (("51 x 16", "101 x 31"), "201 x 61"),
    "Meshes at E, against 101 x 31 nodes": (("E, 51 x 16",), "E"),
    "The coarser mesh at E / 16 in the same way": (("51 x 16",), "101 x 31"),
    "Young's modulus, against E": (("101 x 31", "E / 4"), "E"),
}
CENSUS = 200


@dataclass(frozen=True)
class Run:
    """One die through one solver, kept in a file."""

    solver: str
    die: int
    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / f"{self.solver.replace(' ', '').replace('/', '-')}-die{self.die}.npz"

    def make(self) -> None:
        if self.path.exists():
            return
        solver = SOLVERS[self.solver]
        heights = die(self.die)
        start = time.process_time()
        run = solver.forge(heights)
        seconds = time.process_time() - start
        facts = [
            seconds,
            run.energy_error,
            run.ledger[STEPS],
            run.ledger[SHORTEST],
            run.ledger[LEFT],
            run.ledger[PLASTIC] / run.ledger[WORK],
            deepest(run.frames, heights),
            float(passed(run, heights)),
        ]
        with atomic(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, frames=run.frames, facts=np.array(facts), parameters=str(asdict(solver)))

    def frames(self) -> np.ndarray:
        return np.load(self.path)["frames"]

    def facts(self) -> np.ndarray:
        return np.load(self.path)["facts"]


@cache
def die(index: int) -> np.ndarray:
    """The die of a case of the fast set: the first that does not fail."""
    rng = case_rng("plasticity", BENCHMARK.version, 0, "train", index)
    while True:
        heights = random_heights(rng)
        if passed(FAST.forge(heights), heights):
            return heights


def difference(run: Run, reference: Run) -> tuple[float, float]:
    """Over displacements, and over the four channels."""
    a, b = run.frames(), reference.frames()
    few = min(a.shape[1], b.shape[1]) - 1
    a, b = (f[:, :: (f.shape[1] - 1) // few, :: (f.shape[1] - 1) // few] for f in (a, b))
    u = b - b[0]
    off = np.linalg.norm(a - b)
    return float(off / np.linalg.norm(u)), float(
        np.sqrt(2) * off / np.hypot(np.linalg.norm(b), np.linalg.norm(u))
    )


def tables(runs: dict[tuple[str, int], Run], dies: int) -> Iterator[str]:
    for title, (solvers, reference) in TABLES.items():
        yield from ("", f"## {title}", "", f"| run | {' | '.join(f'die {i}' for i in range(dies))} | mean |")
        yield "|---" * (dies + 2) + "|"
        for name in solvers:
            pairs = [difference(runs[name, i], runs[reference, i]) for i in range(dies)]
            pairs.append(tuple(np.nanmean(pairs, axis=0)))  # a run that failed has no last frames
            cells = " | ".join(f"{100 * a:.2f} % ({100 * b:.3f} %)" for a, b in pairs)
            yield f"| {name} | {cells} |"


def balances(runs: dict[tuple[str, int], Run], dies: int) -> Iterator[str]:
    yield from ("", f"## Balances and cost, worst (seconds: mean) of {dies} dies", "")
    yield (
        "| run | CPU s | steps, mean | energy error | shortest step over first | contact left, mm |"
        " node above die, mm | plastic share of the work | passed |"
    )
    yield "|---" * 9 + "|"
    for name in SOLVERS:
        facts = np.stack([runs[name, i].facts() for i in range(dies)])
        worst = np.abs(facts).max(0)
        yield (
            f"| {name} | {facts[:, 0].mean():.1f} | {facts[:, 2].mean():.0f} | {worst[1]:.1e} |"
            f" {facts[:, 3].min():.3f} | {worst[4]:.1e} | {facts[:, 6].max():.1e} |"
            f" {100 * facts[:, 5].mean():.1f} % | {int(facts[:, 7].sum())} of {dies} |"
        )


def census(path: Path) -> Iterator[str]:
    """The first cases of the fast set: how many dies were drawn again, is any element inverted."""
    cases = Dataset(path, "train")
    counts, corners, furthest = [], [], []
    for i in range(CENSUS):
        case = cases[i]
        assert case.u is not None
        assert case.grid is not None
        assert case.redraws is not None
        counts.append(int(case.redraws))
        frames = case.u[..., :2].astype(float).reshape(len(case.u), *case.grid, 2)
        corners.append(smallest_corner(frames) / (0.5 * 0.5))
        furthest.append(float(np.abs(case.u[-1, :, 2:]).max()))
    yield from ("", f"## {CENSUS} random dies (101 x 31 nodes, E / 16, seed 0)", "")
    yield (
        f"{len(counts)} cases were made; {sum(counts)} of {len(counts) + sum(counts)} dies failed and were"
        f" drawn again (cases {[i for i, c in enumerate(counts) if c]}). {sum(c <= 0 for c in corners)} cases"
        f" have an inverted element: the smallest corner of one in any frame is {min(corners):.4f} of that at"
        f" rest (median over cases {np.median(corners):.3f}). Largest displacement:"
        f" {np.median(furthest):.1f} mm in the median case, {max(furthest):.1f} mm at most."
    )


def matmul() -> float:
    """CPU seconds of a product of 1024 x 1024 matrices in single precision, one thread, for comparison."""
    torch.set_num_threads(1)
    a = torch.randn(1024, 1024)
    seconds = []
    for _ in range(8):
        start = time.process_time()
        _ = a @ a
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dies", type=int, default=5)
    sources = code_folder(Path(plasticity_flow.__file__).parent)
    parser.add_argument("--parts", type=Path, default=data_home().parent / sources.name)
    options = parser.parse_args()
    replace(FAST, columns=4, rows=2).forge(random_heights(np.random.default_rng(0)))  # compiles
    runs = {(name, i): Run(name, i, options.parts) for name in SOLVERS for i in range(options.dies)}
    # The cheap ones first.
    order = sorted(
        runs.values(), key=lambda run: SOLVERS[run.solver].columns ** 3 * SOLVERS[run.solver].young
    )
    with bar("study") as advance:
        for done, run in enumerate(order):
            advance(done, len(order), f"{run.solver}, die {run.die}")
            run.make()
    with bar("census") as advance:
        path = make_dataset(BENCHMARK, CENSUS, 40, "fast", workers=1, progress=advance)
    head = [
        "# Plasticity: the error of the solver",
        "",
        *[line for line in (__doc__ or "").splitlines()[4:] if line],
        "",
        f"`python studies/plasticity_study.py --out {options.out} --dies {options.dies}`; seed 0, lrsa"
        f" {lrsa.__version__}, numpy {np.__version__}, numba {numba.__version__}, python"
        f" {platform.python_version()}. CPU seconds are of one thread on a shared machine, where a product of"
        f" two 1024 x 1024 matrices in single precision took {matmul():.4f} s.",
    ]
    body = chain(tables(runs, options.dies), balances(runs, options.dies), census(path))
    text = "\n".join([*head, *body, ""])
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
