"""Darcy flow in a pentagon with an arc and a slit: permeability -> pressure, 2290 points of a fixed mesh."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import SHORT, SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.irregular_darcy.solver import IrregularDarcy

    return IrregularDarcy(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.irregular_darcy.official import read_irregular_darcy

    return read_irregular_darcy(folder, stride)


PROBLEM = Problem(
    name="irregular-darcy",
    about="Darcy flow in a pentagon with an arc and a slit: permeability -> pressure, a mesh of 2290 points",
    solver=_solver,
    fidelities={"default": {"refinement": 2}, "fast": {"refinement": 1}},
    samples=1000,
    test=200,
    paper_error=0.00756,
    scales={
        "demo": Scale(
            about="300 cases of 2290 points; width 64, depth 4, rank 32",
            samples=300,
            test=60,
            fidelity="fast",
            model=SMALL,
            train={**SHORT, "epochs": 12, "batch_size": 2, "weights": False},
        ),
        "cpu": Scale(
            about="1000 cases of 2290 points; model as in demo",
            samples=1000,
            test=200,
            model=SMALL,
            train={**SHORT, "epochs": 10, "batch_size": 2, "weights": False},
        ),
        "paper": Scale(
            about="1000 cases of 2290 points, the published configuration",
            samples=1000,
            test=200,
            preset="irregular-darcy",
            train={"clip": 0.1, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("Darcy.mat",), _read),
)
