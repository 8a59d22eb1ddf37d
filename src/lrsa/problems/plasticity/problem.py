"""Forging with a random die: its shape and a time -> places and displacements, 101 x 31 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.plasticity.solver import Plasticity

    return Plasticity(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.plasticity.official import read_plasticity

    return read_plasticity(folder, stride)


SYMMETRY = "mirror-x@-24.65:u_x:@x_t"
"""About the middle of the block."""

PROBLEM = Problem(
    name="plasticity",
    about="Forging with a random die: its shape and a time -> places and displacements, 101 x 31 points",
    solver=_solver,
    fidelities={
        "default": {},
        "fast": {"young": 12.5e3},
        "coarse": {"young": 12.5e3, "columns": 50, "rows": 14},
    },
    samples=900,
    test=80,
    paper_error=0.0005,
    symmetry=SYMMETRY,
    protocol="time-conditioned",
    scales={
        "demo": Scale(
            about="80 cases of 26 x 8 points, solved on 51 x 15, E/16; width 64, depth 4, rank 32, depthwise",
            samples=80,
            test=20,
            fidelity="coarse",
            stride={"generated": 2, "official": 4},
            model=LOCAL,
            train={**SHORT, "epochs": 6, "weights": False, "symmetry": SYMMETRY},
        ),
        "cpu": Scale(
            about="200 cases of 51 x 16 points, solved on 101 x 31 with E/16; model as in demo",
            samples=200,
            test=40,
            fidelity="fast",
            stride={"generated": 2, "official": 2},
            model=LOCAL,
            train={**SHORT, "epochs": 8, "weights": False, "symmetry": SYMMETRY},
        ),
        "paper": Scale(
            about="900 cases of 101 x 31 points, the published configuration",
            samples=900,
            test=80,
            preset="plasticity",
            train={"clip": 0.1, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("plas_N987_T20.mat",), _read),
)
