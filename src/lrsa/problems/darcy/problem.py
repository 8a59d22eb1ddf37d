"""Darcy flow on the unit square: permeability -> pressure, 85 x 85 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.darcy.solver import Darcy

    return Darcy(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.darcy.official import read_darcy

    return read_darcy(folder, stride)


SYMMETRY = "square"

PROBLEM = Problem(
    name="darcy",
    about="Darcy flow on the unit square: permeability -> pressure, 85 x 85 points",
    solver=_solver,
    fidelities={
        "default": {"resolution": 421, "stride": 5},
        "fast": {"resolution": 85, "stride": 4},
    },
    samples=1000,
    test=200,
    paper_error=0.0043,
    symmetry=SYMMETRY,
    scales={
        "demo": Scale(
            about="500 cases of 22 x 22 points, solved on 85 x 85; width 64, depth 4, rank 32, depthwise",
            samples=500,
            test=100,
            fidelity="fast",
            model=LOCAL,
            train={**SHORT, "epochs": 16, "gradient_weight": 0.1, "symmetry": SYMMETRY},
            stride={"generated": 1, "official": 4},
        ),
        "cpu": Scale(
            about="1000 cases of 43 x 43 points, solved on 421 x 421; model as in demo",
            samples=1000,
            test=200,
            stride={"generated": 2, "official": 2},
            model=LOCAL,
            train={**SHORT, "epochs": 20, "gradient_weight": 0.1, "symmetry": SYMMETRY},
        ),
        "paper": Scale(
            about="1000 cases of 85 x 85 points, the published configuration",
            samples=1000,
            test=200,
            preset="darcy",
            train={"gradient_weight": 0.1, "clip": 0.1, "validation": 0.0},
        ),
    },
    official=Official(
        ("piececonst_r421_N1024_smooth1.mat", "piececonst_r421_N1024_smooth2.mat"), _read, stride=5
    ),
)
