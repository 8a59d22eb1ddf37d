"""The solvers of the benchmarks: CPU time of a case, and their own error against a refinement.

    python studies/solvers.py [--cases 4] [--only darcy pipe] [--out results/solvers.md]

Rows that are not measured anew are kept from solvers.json beside it. Statistics beside those of the official
files are taken from the sets that are made already.

CPU seconds of one thread (`time.process_time`), beside those of a 1024 x 1024 x 1024 float32 product taken
between the cases of the same run. The error is the relative L2 difference, at the points of the benchmark, to
a solution of the same case on a finer grid.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import KDTree

from lrsa.console import bar
from lrsa.data.store import Dataset
from lrsa.files import atomic
from lrsa.numerics.random_fields import cosine_field
from lrsa.pointset import PointSet
from lrsa.problems.airfoil.solver import Airfoil
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.composite.solver import Composite
from lrsa.problems.darcy.solver import Darcy, solve_darcy
from lrsa.problems.elasticity.solver import Elasticity
from lrsa.problems.heat_transfer.gear import gear
from lrsa.problems.heat_transfer.solver import Conduction, HeatTransfer
from lrsa.problems.irregular_darcy.solver import IrregularDarcy
from lrsa.problems.navier_stokes.solver import NavierStokes
from lrsa.problems.obstacle_flow.solver import ObstacleFlow
from lrsa.problems.pipe.solver import Pipe
from lrsa.training.config import versions

Difference = Callable[[int], str]
"""Seed -> the difference to the refinement, in words."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--only", nargs="*", choices=list(REFINED), default=list(REFINED))
    parser.add_argument("--out", type=Path, default=Path("results/solvers.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept = options.out.with_suffix(".json")
    rows: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
    with bar("Solving") as report:
        for done, name in enumerate(options.only):
            report(done, len(options.only), name)
            rows[name] = measured(name, options.cases)
            with atomic(kept) as temporary:
                temporary.write_text(json.dumps(rows, indent=1) + "\n")
    cells = "".join(f"| {' | '.join(rows[name])} |\n" for name in REFINED if name in rows)
    command = f"python studies/solvers.py --cases {options.cases}"
    words = ", ".join(f"{key} {value}" for key, value in versions().items())
    with atomic(options.out) as temporary:
        head, like = HEAD.format(command=command), LIKE + "".join(statistics())
        temporary.write_text(f"{head}{cells}{like}\nVersions: {words}.\n")
    print(options.out.read_text())


def measured(name: str, cases: int) -> list[str]:
    """A row of the table."""
    solver = CATALOGUE[name].solver_at("default")
    solver.sample(np.random.default_rng(0))  # compiles, and fills the caches that every process fills once
    seconds, products = [], []
    for seed in range(cases):
        products.append(product())
        started = time.process_time()
        solver.sample(np.random.default_rng(seed))
        seconds.append(time.process_time() - started)
    refinement, seeds, difference = REFINED[name]
    errors = "; ".join(difference(seed) for seed in seeds)
    times = f"{np.mean(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
    return [name, times, f"{1e3 * min(products):.0f}", refinement, errors]


def statistics() -> list[str]:
    """Rows of the table that compares with the official files, of the sets that are there."""
    made = {name: path for name in OFFICIAL if (path := CATALOGUE[name].path()).exists()}
    rows = []
    for name, path in made.items():
        u = np.stack([fields(case)[..., 0] for case in Dataset(path, "train")])
        rows += [
            f"| {name} ({len(u)} cases): {what} | {of(u)} | {there} |\n" for what, of, there in OFFICIAL[name]
        ]
    return rows


def ring(u: np.ndarray) -> np.ndarray:
    side = math.isqrt(u.shape[1])
    outside = np.ones((side, side), bool)
    outside[1:-1, 1:-1] = False
    return u[:, outside.ravel()]


def interior(u: np.ndarray) -> np.ndarray:
    side = math.isqrt(u.shape[1])
    return u.reshape(-1, side, side)[:, 1:-1, 1:-1]


def spread(values: np.ndarray) -> str:
    return " / ".join(f"{v:.0f}" for v in (values.min(), np.median(values), values.max()))


def spread_at_end(w: np.ndarray) -> str:
    last = w[:, -1]
    return f"{np.median(last.min(1)):.2f} and {np.median(last.max(1)):.2f}"


def product() -> float:
    a = torch.rand(1024, 1024)
    started = time.process_time()
    _ = a @ a
    return time.process_time() - started


def relative(value: np.ndarray, truth: np.ndarray) -> str:
    value, truth = value.astype(float), truth.astype(float)
    return f"{np.linalg.norm(value - truth) / np.linalg.norm(truth):.1e}"


def fields(case: PointSet) -> np.ndarray:
    assert case.u is not None
    return case.u


def darcy(seed: int) -> str:
    """The same cells, each divided into 3 x 3."""
    one = Darcy()
    field = cosine_field(np.random.default_rng(seed), one.resolution, one.tau, one.alpha)
    a = np.where(field >= 0, one.high, one.low)
    fine = solve_darcy(a.repeat(3, 0).repeat(3, 1), 1.0)[1::3, 1::3]
    kept = slice(None, None, one.stride)
    return relative(solve_darcy(a, 1.0)[kept, kept], fine[kept, kept])


def navier_stokes(seed: int) -> str:
    one = NavierStokes()
    pair = [
        fields(solver.sample(np.random.default_rng(seed)))
        for solver in (one, replace(one, resolution=2 * one.resolution, stride=2 * one.stride))
    ]
    return " / ".join(relative(pair[0][t - 1], pair[1][t - 1]) for t in (10, 15, 20))


def elasticity(seed: int) -> str:
    coarse, fine = (fields(Elasticity(refinement=r).sample(np.random.default_rng(seed))) for r in (4, 8))
    return relative(coarse, fine)


def pipe(seed: int) -> str:
    coarse, fine = (fields(Pipe(elements=n).sample(np.random.default_rng(seed))) for n in (64, 128))
    return relative(coarse[:, 0], fine[:, 0].reshape(257, 257)[::2, ::2].ravel())


def airfoil(seed: int) -> str:
    """Cells of half the size, their Mach number at the nodes of the benchmark by linear interpolation."""
    one = Airfoil()
    fine_grid = Airfoil(
        1e-4, around=2 * one.around, behind=2 * one.behind, layers=2 * one.layers, first=one.first / 2
    )
    coarse, fine = (solver.sample(np.random.default_rng(seed)) for solver in (one, fine_grid))
    points, first = np.unique(fine.x, axis=0, return_index=True)
    there = LinearNDInterpolator(points, fields(fine)[first, 0])(coarse.x)
    inside = np.isfinite(there)  # the far field is a polygon, a little smaller where it has fewer corners
    return relative(fields(coarse)[inside, 0], there[inside])


def heat_transfer(seed: int) -> str:
    """The random field of the face at the nodes of a finer one, which is its mean given that of the face."""
    one, coarse, fine = HeatTransfer(), gear(), gear(2)
    shares = [
        np.exp(-np.square(m.face[:, None] - coarse.face).sum(-1) / (2 * one.length**2))
        for m in (coarse, fine)
    ]
    values, modes = np.linalg.eigh(shares[0])
    modes = (modes / np.sqrt(values))[:, values > 1e-6 * values.max()]  # what is smaller is rounding
    drawn = np.random.default_rng(seed).standard_normal(modes.shape[1])
    faces = [one.mean + one.deviation * (share @ modes @ drawn) for share in shares]
    reach = one.diffusivity * one.duration / (2 * one.steps)
    found = Conduction(fine, len(fine.face), reach).advance(faces[1] - one.initial, 2 * one.steps)
    distance, there = map(np.asarray, KDTree(fine.points).query(coarse.points))
    same = distance < 1e-9  # all but the middles of tetrahedra
    return relative(one.solve(faces[0])[same], one.initial + found[there[same]])


def irregular_darcy(seed: int) -> str:
    coarse, fine = (fields(IrregularDarcy(refinement=r).sample(np.random.default_rng(seed))) for r in (2, 3))
    return relative(coarse, fine)


def composite(seed: int) -> str:
    coarse, fine = (fields(Composite(finer=k).sample(np.random.default_rng(seed))) for k in (2, 3))
    return relative(coarse, fine)


def obstacle_flow(seed: int) -> str:
    """The three fidelities, each to cells of a quarter of the default's size: 64², 128², 256² to 512²."""
    ellipses = ObstacleFlow().draw(np.random.default_rng(seed))
    *coarse, fine = (fields(ObstacleFlow(n, n // 32).solve(ellipses)) for n in (64, 128, 256, 512))
    return " / ".join(relative(u, fine) for u in coarse)


REFINED: dict[str, tuple[str, range, Difference]] = {
    "darcy": ("3 x 3 cells for each", range(3), darcy),
    "navier-stokes": ("512², t = 10 / 15 / 20", range(1), navier_stokes),
    "elasticity": ("half the elements' size", range(3), elasticity),
    "pipe": ("half the elements' size", range(2), pipe),
    "airfoil": ("half the cells' size, settled to 1e-4", range(2), airfoil),
    "heat-transfer": ("half the elements' size and steps", range(3), heat_transfer),
    "irregular-darcy": ("half the elements' size", range(3), irregular_darcy),
    "composite": ("two thirds of the elements' size", range(3), composite),
    "obstacle-flow": ("512², of 64² / 128² / 256²", range(8), obstacle_flow),
}
HEAD = """\
# The solvers

Made by `{command}`: mean (least to most) CPU seconds of a case on one thread, the milliseconds of a 1024³
float32 product in the same run, and the relative L2 difference at the points of the benchmark to the same
cases on a finer grid: the error of the data itself, below which the errors of models mean nothing.

| benchmark | CPU s a case | product, ms | finer grid | difference, case by case |
|---|---|---|---|---|
"""

LIKE = """
## Beside the official files

| | generated | official, read off published figures |
|---|---|---|
"""
OFFICIAL: dict[str, list[tuple[str, Callable[[np.ndarray], str], str]]] = {
    "darcy": [
        ("mean of u on the outermost ring", lambda u: f"{np.abs(ring(u)).mean():.2e}", "5.17e-05"),
        ("its deviation", lambda u: f"{ring(u).std():.2e}", "2.80e-05"),
        (
            "root mean square of u inside",
            lambda u: f"{np.sqrt(np.square(interior(u)).mean()):.2e}",
            "6.95e-03",
        ),
    ],
    "navier-stokes": [
        ("least and largest w at t = 20, medians", spread_at_end, "about -3 and 3"),
    ],
    "elasticity": [
        ("mean stress of a case, least / median / largest", lambda u: spread(u.mean(1)), "150 / 185 / 260"),
        ("largest stress of a case", lambda u: spread(u.max(1)), "475 / 870 / 1440"),
    ],
}

if __name__ == "__main__":
    main()
