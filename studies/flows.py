"""The flows by OpenFOAM: the forces on airfoils and on a car on several grids, by its sums and by ours.

    python studies/flows.py [--only car-default ...] [--out results/flows.md]

Rows that are not computed anew are kept from flows.json beside it. CPU seconds are those of all programs of
OpenFOAM that a flow takes, on one thread.
"""

import argparse
import json
import resource
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from lrsa.console import bar
from lrsa.files import atomic
from lrsa.problems.airfrans.forces import lift_and_drag
from lrsa.problems.airfrans.profile import Flow
from lrsa.problems.airfrans.solver import AirfRANS, case_of
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.shapenet_car import solver as cars
from lrsa.problems.shapenet_car.forces import drag
from lrsa.problems.shapenet_car.shape import Car

NACA0012 = Flow((0.0, 0.0, 12.0), 3e6, 4.0)
CAR = Car.draw(np.random.default_rng(0))
FIDELITY = {name: CATALOGUE[name].fidelities for name in ("airfrans", "shapenet-car")}


def airfoil(solver: AirfRANS, flow: Flow = NACA0012) -> list[str]:
    grid = solver.grid(flow)
    found = solver.solve(flow, grid)
    ours = lift_and_drag(case_of(flow, grid, found))
    lifts, drags = (found.lift, ours.lift), (found.drag, ours.drag)
    words = [*(f"{lift:.4f}" for lift in lifts), *(f"{drag:.5f}" for drag in drags)]
    return [f"{len(grid.cells):,}", f"{found.iterations}", *words]


def car(solver: cars.ShapeNetCar) -> list[str]:
    found = solver.solve(CAR)
    ours = drag(cars.case_of(CAR, found, solver.volume, np.random.default_rng(0)))
    values = (found.drag, found.pressure_drag, ours)
    steps = f"{found.iterations}, {solver.averaged}"
    return [f"{len(found.centres):,}", steps, *(f"{value:.4f}" for value in values), f"{found.drift:.1%}"]


GRIDS = {
    "fast": AirfRANS(**FIDELITY["airfrans"]["fast"]),
    "default": AirfRANS(),
    "fine": AirfRANS(side=102, wake=51, layers=80, y_plus=0.5, iterations=3000),
}
ROWS: dict[str, Callable[[], list[str]]] = {
    **{f"airfoil-{name}": partial(airfoil, solver) for name, solver in GRIDS.items()},
    "car-fast": lambda: car(cars.ShapeNetCar(**FIDELITY["shapenet-car"]["fast"])),
    "car-default": lambda: car(cars.ShapeNetCar()),
    "car-fine": lambda: car(replace(cars.ShapeNetCar(), cell=1 / 3)),
    **{
        f"drawn-{seed}, {name}": partial(airfoil, solver, Flow.draw(np.random.default_rng(seed)))
        for seed in range(3)
        for name, solver in GRIDS.items()
    },
}
FORCES = ("cells", "iterations", "C_L OpenFOAM", "C_L ours", "C_D OpenFOAM", "C_D ours")
TABLES = {
    "airfoil": (
        "NACA 0012 at Re 3e6 and 4 degrees. Experiment: C_L 0.4316, C_D 0.00823 at Re 6e6, 4.04 degrees and"
        " Mach 0.15, transition tripped by 80-grit (Ladson, NASA TM 4074, 1988); at half the Reynolds number"
        " turbulent friction is a tenth larger.",
        FORCES,
    ),
    "drawn": (
        "Three airfoils as in AirfRANS, `Flow.draw(np.random.default_rng(i))` with i = 0, 1, 2.",
        FORCES,
    ),
    "car": (
        "The car of `Car.draw(np.random.default_rng(0))`, half of which is in the mesh. Ours is the published"
        " drag, which has no friction.",
        ("cells", "iterations, averaged", "C_D OpenFOAM", "of it pressure", "C_D ours", "drift"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--only", nargs="*", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--out", type=Path, default=Path("results/flows.md"))
    options = parser.parse_args()
    kept = options.out.with_suffix(".json")
    with bar("Solving") as report:
        for done, name in enumerate(options.only):
            report(done, len(options.only), name)
            before = _seconds()
            row = ROWS[name]()
            rows: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
            rows[name] = [*row, f"{_seconds() - before:.0f}"]
            with atomic(kept) as temporary:
                temporary.write_text(json.dumps(rows, indent=1) + "\n")
            with atomic(options.out) as temporary:
                temporary.write_text(page(rows))
    print(options.out.read_text())


def page(rows: dict[str, list[str]]) -> str:
    """The tables of what is there."""
    parts = ["# The flows by OpenFOAM\n\nMade by `python studies/flows.py`.\n"]
    for kind, (words, heads) in TABLES.items():
        mine = {name: row for name, row in rows.items() if name.startswith(kind)}
        ordered = [name for name in ROWS if name in mine]
        head = ("grid", *heads, "CPU s")
        lines = [
            head,
            ("---",) * len(head),
            *((name.removeprefix(f"{kind}-"), *mine[name]) for name in ordered),
        ]
        parts.append(f"\n{words}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines))
    return "".join(parts)


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
