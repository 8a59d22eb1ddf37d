"""Forced flow on a torus, viscosity 1e-5: ten frames of vorticity -> ten more, 64 x 64 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.navier_stokes.solver import NavierStokes

    return NavierStokes(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.navier_stokes.official import read_navier_stokes

    return read_navier_stokes(folder, stride)


SYMMETRY = "torus-wave:w"
FRAMES = {**SHORT, "windows": True, "change": True, "noise": 0.05, "weights": False, "symmetry": SYMMETRY}
"""Frames of one case are alike, and so is a frame to the next: steps see single changes of several cases.
Waves on the inputs keep the errors of a roll-out from growing."""
TORUS = {**LOCAL, "width": 48, "depth": 8, "ffn_hidden": 96, "periodic": True}
"""A flow carries far from frame to frame: narrow and as deep as published learns more in the same time."""

PROBLEM = Problem(
    name="navier-stokes",
    about="Forced flow on a torus, viscosity 1e-5: ten frames of vorticity -> ten more, 64 x 64 points",
    solver=_solver,
    fidelities={
        "default": {"resolution": 256, "stride": 4},
        "fast": {"resolution": 128, "stride": 2},
    },
    samples=1000,
    test=200,
    paper_error=0.0484,
    symmetry=SYMMETRY,
    protocol="autoregressive",
    scales={
        "demo": Scale(
            about="200 cases of 32 x 32 points, solved on 128²; width 48, depth 8, rank 32, 3x3 on a torus",
            samples=200,
            test=20,
            fidelity="fast",
            stride={"generated": 2, "official": 2},
            model=TORUS,
            train={**FRAMES, "epochs": 5},
        ),
        "cpu": Scale(
            about="1000 cases of 32 x 32 points, solved on 128²; model as in demo",
            samples=1000,
            test=40,
            fidelity="fast",
            stride={"generated": 2, "official": 2},
            model=TORUS,
            train={**FRAMES, "epochs": 4},
        ),
        "paper": Scale(
            about="1000 cases of 64 x 64 points, the published configuration",
            samples=1000,
            test=200,
            preset="navier-stokes",
            train={"clip": 1e3, "validation": 0.0, "weights": False},
        ),
    },
    official=Official(("NavierStokes_V1e-5_N1200_T20.mat",), _read),
)
