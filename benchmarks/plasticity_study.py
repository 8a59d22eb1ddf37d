"""How accurate the forging solver is: step sizes, meshes, elements, Young's modulus; and a census of dies.

    python benchmarks/plasticity_study.py --out results/plasticity.md

Every run leaves its frames in a folder, so that an interrupted study goes on where it stopped. Differences
are between the frames of a run and those of a reference on the nodes that both have: over the displacements
of the reference (all frames), and, in brackets, over the four channels (x, y, u_x, u_y) of the benchmark's
metric.
"""

import argparse
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import numba
import numpy as np
import torch

import lrsa
from lrsa.console import bar
from lrsa.data.catalogue import get
from lrsa.data.making import case_rng, make_dataset
from lrsa.data.store import Dataset, data_home
from lrsa.files import atomic
from lrsa.solvers.plasticity import Plasticity, deepest, passed, smallest_corner
from lrsa.solvers.plasticity_die import random_heights
from lrsa.solvers.plasticity_dynamics import LEFT, PLASTIC, SHORTEST, STEPS, WORK

BENCHMARK = get("plasticity")
FAST = Plasticity(young=200e3 / 16)
MESHES = {"51 x 16": (50, 15), "101 x 31": (100, 30), "201 x 61": (200, 60)}
SOLVERS = {
    **{
        f"{mesh}, {points}": replace(FAST, columns=size[0], rows=size[1], points=points)
        for points in (4, 1)
        for mesh, size in MESHES.items()
    },
    "step / 2": replace(FAST, safety=0.45),
    "step / 4": replace(FAST, safety=0.225),
    "E / 4": replace(FAST, young=200e3 / 4),
    "E": replace(FAST, young=200e3),
}
"""By nodes and points of an element; 101 x 31, 4 and E / 16 where nothing else is said."""
TABLES = {
    "Step sizes (101 x 31 nodes, 4 points, E / 16), against a quarter of the step": (
        ("101 x 31, 4", "step / 2"),
        "step / 4",
    ),
    "Meshes and elements (E / 16), against 201 x 61 nodes with 4 points": (
        ("51 x 16, 4", "101 x 31, 4", "51 x 16, 1", "101 x 31, 1", "201 x 61, 1"),
        "201 x 61, 4",
    ),
    "One point against itself, 201 x 61 nodes": (("51 x 16, 1", "101 x 31, 1"), "201 x 61, 1"),
    "Young's modulus (101 x 31 nodes, 4 points), against E": (("101 x 31, 4", "E / 4"), "E"),
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
        heights = random_heights(case_rng("plasticity", BENCHMARK.version, 0, "train", self.die))
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
            run.hourglass / run.ledger[WORK],
            deepest(run.frames, heights),
            float(passed(run, heights)),
        ]
        with atomic(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, frames=run.frames, facts=np.array(facts), parameters=str(asdict(solver)))

    def frames(self) -> np.ndarray:
        return np.load(self.path)["frames"]

    def facts(self) -> np.ndarray:
        return np.load(self.path)["facts"]


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
            pairs.append(tuple(np.mean(pairs, axis=0)))
            cells = " | ".join(f"{100 * a:.2f} % ({100 * b:.3f} %)" for a, b in pairs)
            yield f"| {name} | {cells} |"


def balances(runs: dict[tuple[str, int], Run], dies: int) -> Iterator[str]:
    yield from ("", f"## Balances and cost, worst (seconds: mean) of {dies} dies", "")
    yield (
        "| run | CPU s | steps, mean | energy error | shortest step over first | contact left, mm |"
        " node above die, mm | hourglass energy | passed |"
    )
    yield "|---" * 9 + "|"
    for name in SOLVERS:
        facts = np.stack([runs[name, i].facts() for i in range(dies)])
        worst = np.abs(facts).max(0)
        yield (
            f"| {name} | {facts[:, 0].mean():.1f} | {facts[:, 2].mean():.0f} | {worst[1]:.1e} |"
            f" {facts[:, 3].min():.3f} | {worst[4]:.1e} | {facts[:, 7].max():.1e} | {100 * worst[6]:.2f} % |"
            f" {int(facts[:, 8].sum())} of {dies} |"
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
    yield from ("", f"## {CENSUS} random dies (101 x 31 nodes, 4 points, E / 16, seed 0)", "")
    yield (
        f"{CENSUS} of {CENSUS} cases were made; {sum(counts)} of {CENSUS + sum(counts)} dies failed and were"
        f" drawn again (cases {[i for i, c in enumerate(counts) if c]}). The smallest corner of an element in"
        f" any frame is {min(corners):.4f} of that at rest, so none is inverted (median over cases"
        f" {np.median(corners):.3f}). Largest displacement: {np.median(furthest):.1f} mm in the median case,"
        f" {max(furthest):.1f} mm at most."
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
    parser.add_argument("--parts", type=Path, default=data_home().parent / "plasticity-study")
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
        path = make_dataset(BENCHMARK, CENSUS, 40, "fast", workers=1, progress=lambda a, b: advance(a, b, ""))
    head = [
        "# Plasticity: the error of the solver",
        "",
        *[line for line in (__doc__ or "").splitlines()[4:] if line],
        "",
        f"`python benchmarks/plasticity_study.py --out {options.out} --dies {options.dies}`; seed 0, lrsa"
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
