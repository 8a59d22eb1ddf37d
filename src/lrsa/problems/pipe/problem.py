"""Steady flow through bent pipes: grid -> velocity along x, 129 x 129 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.pipe.solver import Pipe

    return Pipe(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.pipe.official import read_pipe

    return read_pipe(folder, stride)


SYMMETRY = "mirror-y@0"
"""Of u_x, which keeps its sign."""
BENT = {**SHORT, "weights": False, "coordinates": "axis", "symmetry": SYMMETRY}

PROBLEM = Problem(
    name="pipe",
    about="Steady flow through bent pipes: grid -> velocity along x, 129 x 129 points",
    solver=_solver,
    fidelities={"default": {"elements": 64}, "fast": {"elements": 32}},
    samples=1000,
    test=200,
    paper_error=0.0023,
    symmetry=SYMMETRY,
    scales={
        "demo": Scale(
            about="200 cases of 17 x 17 points, solved on 65 x 65; width 64, depth 4, rank 32, depthwise",
            samples=200,
            test=40,
            fidelity="fast",
            stride={"generated": 4, "official": 8},
            model=LOCAL,
            train={**BENT, "epochs": 40},
        ),
        "cpu": Scale(
            about="500 cases of 33 x 33 points, solved on 129 x 129; model as in demo",
            samples=500,
            test=100,
            stride={"generated": 4, "official": 4},
            model=LOCAL,
            train={**BENT, "epochs": 40},
        ),
        "paper": Scale(
            about="1000 cases of 129 x 129 points, the published configuration",
            samples=1000,
            test=200,
            preset="pipe",
            train={"clip": 0.1, "validation": 0.0, "weights": False, "coordinates": "axis"},
        ),
    },
    official=Official(("Pipe_X.npy", "Pipe_Y.npy", "Pipe_Q.npy"), _read),
)
