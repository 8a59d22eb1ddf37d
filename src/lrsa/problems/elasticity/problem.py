"""Stretched rubber cell with a random hole: its shape -> von Mises stress, 972 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import SHORT, SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.elasticity.solver import Elasticity

    return Elasticity(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.elasticity.official import read_elasticity

    return read_elasticity(folder, stride)


SYMMETRY = "mirror-x@0.5"
"""The pull is upwards, the clamp below."""

PROBLEM = Problem(
    name="elasticity",
    about="Stretched rubber cell with a random hole: its shape -> von Mises stress, 972 points",
    solver=_solver,
    fidelities={"default": {"refinement": 4}, "fast": {"refinement": 2}},
    samples=1000,
    test=200,
    paper_error=0.0033,
    symmetry=SYMMETRY,
    scales={
        "demo": Scale(
            about="500 cases of 972 points; width 64, depth 4, rank 32, 8 frequencies",
            samples=500,
            test=100,
            fidelity="fast",
            model={**SMALL, "frequencies": 8},
            train={**SHORT, "epochs": 15, "weights": False, "symmetry": SYMMETRY},
        ),
        "cpu": Scale(
            about="1000 cases of 972 points; width 64, depth 4, rank 32, 8 frequencies",
            samples=1000,
            test=200,
            model={**SMALL, "frequencies": 8},
            train={**SHORT, "epochs": 40, "weights": False, "symmetry": SYMMETRY},
        ),
        "paper": Scale(
            about="1000 cases of 972 points, the published configuration",
            samples=1000,
            test=200,
            preset="elasticity",
            train={"clip": 0.1, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"), _read),
)
