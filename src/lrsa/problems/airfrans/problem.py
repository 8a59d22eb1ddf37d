"""Turbulent flow around NACA airfoils: shape and stream -> velocity, pressure, eddy viscosity."""

from pathlib import Path
from typing import Any

import numpy as np

from lrsa.pointset import PointSet
from lrsa.problems.problem import SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.airfrans.solver import AirfRANS

    return AirfRANS(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.airfrans.official import read_airfrans

    return read_airfrans(folder, stride)


def _drag(case: PointSet, u: np.ndarray) -> float:
    from lrsa.problems.airfrans.forces import lift_and_drag

    return lift_and_drag(case, u).drag


def _lift(case: PointSet, u: np.ndarray) -> float:
    from lrsa.problems.airfrans.forces import lift_and_drag

    return lift_and_drag(case, u).lift


MEASURED = [f"mse:{field}@{where}" for where in ("volume", "surface") for field in ("u", "v", "p", "nu_t")]
"""The published ones are those of p."""

PROBLEM = Problem(
    name="airfrans",
    about="Turbulent flow around NACA airfoils (needs OpenFOAM): stream and shape -> u, v, p, nu_t",
    solver=_solver,
    fidelities={
        "default": {},
        "fast": {"side": 34, "wake": 17, "layers": 40, "y_plus": 2.0, "iterations": 1200},
    },
    seconds={"default": 20.0, "fast": 4.0},
    samples=800,
    test=200,
    loss="mse@volume + mse@surface",
    metrics=",".join(
        [*MEASURED, "relative-error:drag", "relative-error:lift", "spearman:drag", "spearman:lift"]
    ),
    quantities={"drag": _drag, "lift": _lift},
    symmetry="mirror-y@0:v_inlet:n_y:v",
    scales={
        "demo": Scale(
            about="60 cases of about 3,200 points, 4,080 cells; width 64, depth 4, rank 32",
            samples=60,
            test=20,
            fidelity="fast",
            model=SMALL,
            train={"epochs": 40, "max_lr": 2e-3, "batch_size": 1, "weights": False, "points": 2000},
        ),
        "cpu": Scale(
            about="200 cases of about 9,500 points, 12,240 cells; model as in demo",
            samples=200,
            test=50,
            model=SMALL,
            train={"epochs": 30, "max_lr": 2e-3, "batch_size": 1, "weights": False, "points": 4000},
        ),
        "paper": Scale(
            about="720 cases, 32,000 random points of each per epoch, the published configuration",
            samples=720,
            test=200,
            preset="airfrans",
            train={
                "clip": 1e3,
                "validation": 0.0,
                "weights": False,
                "points": 32000,
                "coordinates": "axis",
            },
        ),
    },
    official=Official(("Dataset/manifest.json",), _read),
)
