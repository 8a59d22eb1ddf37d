"""Turbulent flow in a bent pipe: speed at one time -> speed a second later, 2673 points of a fixed mesh."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.pipe_turbulence.solver import PipeTurbulence

    return PipeTurbulence(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.pipe_turbulence.official import read_pipe_turbulence

    return read_pipe_turbulence(folder, stride)


PLACED = {**SMALL, "frequencies": 4}
"""The mesh is the same in all cases: sinusoids of the coordinates tell the places of the flow apart."""

PROBLEM = Problem(
    name="pipe-turbulence",
    about="Turbulent flow in a bent pipe (needs OpenFOAM): speed -> speed later, a mesh of 2673 points",
    solver=_solver,
    fidelities={"default": {"refinement": 1, "step": 0.02}, "fast": {"refinement": 0, "step": 0.04}},
    seconds={"default": 55.0, "fast": 6.5},
    samples=300,
    test=100,
    paper_error=0.00489,
    scales={
        "demo": Scale(
            about="30 + 10 trajectories of 2673 points; width 64, depth 4, rank 32, 4 frequencies",
            samples=30,
            test=10,
            fidelity="fast",
            model=PLACED,
            train={"epochs": 100, "max_lr": 2e-3, "batch_size": 4, "validation": 0.0, "weights": False},
        ),
        "cpu": Scale(
            about="300 + 100 trajectories of 2673 points, on the coarser mesh; model as in demo",
            samples=300,
            test=100,
            fidelity="fast",
            model=PLACED,
            train={"epochs": 40, "max_lr": 2e-3, "batch_size": 4, "validation": 0.0, "weights": False},
        ),
        "paper": Scale(
            about="300 trajectories of 2673 points, the published configuration",
            samples=300,
            test=100,
            preset="pipe-turbulence",
            train={"clip": 0.1, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("Turbulence.mat",), _read),
)
