"""Transonic flow around deformed NACA-0012 airfoils: C-grid -> Mach number, 221 x 51 points."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.airfoil.solver import Airfoil

    return Airfoil(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.airfoil.official import read_airfoil

    return read_airfoil(folder, stride)


PROFILE = {**SHORT, "batch_size": 1, "weights": False, "coordinates": "log", "deviations": True}
"""Profiles move their nodes by 0.02 in a domain of 80 chords: the network is shown that."""

PROBLEM = Problem(
    name="airfoil",
    about="Transonic flow around deformed NACA-0012 airfoils: C-grid -> Mach number, 221 x 51 points",
    solver=_solver,
    fidelities={"default": {"tolerance": 3e-6}, "fast": {"tolerance": 1e-4}},
    samples=1000,
    test=200,
    paper_error=0.0042,
    # The flow comes along the chord. The law holds one corner of the box: mirrored profiles are new ones.
    symmetry="mirror-y@0",
    scales={
        "demo": Scale(
            about="120 cases of 111 x 26 points; width 64, depth 4, rank 32, depthwise, 4 frequencies",
            samples=120,
            test=40,
            fidelity="fast",
            stride={"generated": 2, "official": 2},
            model={**LOCAL, "frequencies": 4},
            train={**PROFILE, "epochs": 16},
        ),
        "cpu": Scale(
            about="300 cases of 111 x 26 points; width 64, depth 4, rank 32, depthwise, 4 frequencies",
            samples=300,
            test=100,
            stride={"generated": 2, "official": 2},
            model={**LOCAL, "frequencies": 4},
            train={**PROFILE, "epochs": 30},
        ),
        "paper": Scale(
            about="1000 cases of 221 x 51 points, the published configuration",
            samples=1000,
            test=200,
            preset="airfoil",
            train={"clip": 0.1, "validation": 0.0, "weights": False, "coordinates": "raw"},
        ),
    },
    official=Official(("NACA_Cylinder_X.npy", "NACA_Cylinder_Y.npy", "NACA_Cylinder_Q.npy"), _read),
)
