"""Heat in a twisted gear: temperature imposed at 186 nodes of a face -> that of 7199 nodes after 3 s."""

from pathlib import Path
from typing import Any

from lrsa.problems.problem import SHORT, SMALL, Official, Problem, Scale, Solver, Splits


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.heat_transfer.solver import HeatTransfer

    return HeatTransfer(**parameters)


def _read(folder: Path, stride: int) -> Splits:
    from lrsa.problems.heat_transfer.official import read_heat_transfer

    return read_heat_transfer(folder, stride)


PLACED = {**SMALL, "frequencies": 4}
"""The part reads what the face wrote: sinusoids of the coordinates tell from where."""

PROBLEM = Problem(
    name="heat-transfer",
    about="Heat in a twisted gear: imposed at 186 nodes of a face -> at 7199 nodes after 3 s",
    solver=_solver,
    fidelities={"default": {"steps": 60}, "fast": {"steps": 15}},
    samples=100,
    test=100,
    paper_error=1.49e-4,
    scales={
        "demo": Scale(
            about="100 cases of 186 + 7199 points; width 64, depth 4, rank 32, 4 frequencies",
            samples=100,
            test=100,
            model=PLACED,
            train={**SHORT, "epochs": 30, "batch_size": 1, "points": 1500},
        ),
        "cpu": Scale(
            about="100 cases of 186 + 7199 points; model as in demo",
            samples=100,
            test=100,
            model=PLACED,
            train={**SHORT, "epochs": 120, "batch_size": 1, "points": 1500},
        ),
        "paper": Scale(
            about="100 cases of 186 + 7199 points, the published configuration",
            samples=100,
            test=100,
            preset="heat-transfer",
            train={"clip": 0.1, "validation": 0.0},
        ),
    },
    official=Official(("HeatTransfer.mat", "Part_Mesh.mat", "lbe_ev_input.mat"), _read),
)
