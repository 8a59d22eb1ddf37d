"""Deformation of a composite air intake by heat: temperature -> deformation, 8232 points of a fixed mesh."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.composite.solver import Composite

    return Composite(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.composite.official import read_composite

    return read_composite(folder, stride)


PROBLEM = Problem(
    name="composite",
    about="Deformation of a composite air intake by heat: temperature -> deformation, a mesh of 8232 points",
    solver=_solver,
    fidelities={"default": {"finer": 2}, "fast": {"finer": 1}},
    samples=400,
    test=100,
    symmetry="mirror-y@0",
    paper_error=0.00871,
    scales={
        "demo": Scale(
            about="100 cases of 8232 points; width 64, depth 4, rank 32",
            samples=100,
            test=40,
            model=SMALL,
            train={"epochs": 12, "max_lr": 2e-3, "batch_size": 2, "validation": 0.0, "weights": False},
        ),
        "cpu": Scale(
            about="400 cases of 8232 points; model as in demo",
            samples=400,
            test=100,
            model=SMALL,
            train={"epochs": 12, "max_lr": 2e-3, "batch_size": 2, "validation": 0.0, "weights": False},
        ),
        "paper": Scale(
            about="400 cases of 8232 points, the published configuration",
            samples=400,
            test=100,
            preset="composite",
            train={"clip": 0.1, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("Composites.mat", "Composites_LBO_basis.mat"), _read),
)
