"""Flow around cars: places around a car -> velocity there, and pressure on its surface."""

from pathlib import Path
from typing import Any

import numpy as np

from lrsa.pointset import PointSet
from lrsa.problems.problem import SHORT, SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.shapenet_car.solver import ShapeNetCar

    return ShapeNetCar(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.shapenet_car.official import read_shapenet_car

    return read_shapenet_car(folder, stride)


def _drag(case: PointSet, u: np.ndarray) -> float:
    from lrsa.problems.shapenet_car.forces import drag

    return drag(case, u)


SYMMETRY = "mirror-x@0:n_x:u"
"""Left and right of a car change places."""

PROBLEM = Problem(
    name="shapenet-car",
    about="Flow around cars (needs OpenFOAM; parametric ones of our own): shape -> u, v, w, and p on it",
    solver=_solver,
    fidelities={
        "default": {},
        "fast": {"cell": 0.5, "volume": 12318},
    },
    seconds={"default": 65.0, "fast": 35.0},
    samples=789,
    test=100,
    loss="mse:u:v:w + 0.5*mse:p@surface",
    metrics="relative-l2:u:v:w@volume,relative-l2:p@surface,relative-error:drag,spearman:drag",
    quantities={"drag": _drag},
    symmetry=SYMMETRY,
    scales={
        "demo": Scale(
            about="24 cars of 16,000 points, about 21,000 cells; width 64, depth 4, rank 32",
            samples=24,
            test=8,
            fidelity="fast",
            model=SMALL,
            train={**SHORT, "epochs": 80, "batch_size": 1, "points": 4000, "symmetry": SYMMETRY},
        ),
        "cpu": Scale(
            about="100 cars of 32,186 points, about 36,000 cells; model as in demo",
            samples=100,
            test=25,
            model=SMALL,
            train={**SHORT, "epochs": 40, "batch_size": 1, "points": 6000, "symmetry": SYMMETRY},
        ),
        "paper": Scale(
            about="789 cars of 32,186 points, the published configuration",
            samples=789,
            test=100,
            preset="shapenet-car",
            train={"clip": 1e3, "validation": 0.0, "coordinates": "axis"},
        ),
    },
    official=Official(("param0/*/quadpress_smpl.vtk", "training_data/param0/*/quadpress_smpl.vtk"), _read),
)
