"""Stokes flow past one to four ellipses in a channel: mask and distance -> velocity, 32 x 32 points.

Our own: the paper has no such benchmark, so there are no official files, no printed error and no paper scale.
"""

from typing import Any

from lrsa.problems.problem import LOCAL, SHORT, Problem, Scale, Solver


def _solver(**parameters: Any) -> Solver:
    from lrsa.problems.obstacle_flow.solver import ObstacleFlow

    return ObstacleFlow(**parameters)


SYMMETRY = "mirror-y@0.5:v"

PROBLEM = Problem(
    name="obstacle-flow",
    about="Stokes flow past ellipses (not of the paper): mask and distance -> velocity, 32 x 32 points",
    solver=_solver,
    fidelities={
        "default": {"resolution": 128, "stride": 4},
        "fast": {"resolution": 64, "stride": 2},
        "fine": {"resolution": 256, "stride": 8},
    },
    samples=1000,
    test=200,
    seconds={"default": 0.2, "fast": 0.05, "fine": 1.2},
    symmetry=SYMMETRY,
    scales={
        "demo": Scale(
            about="400 cases of 32 x 32 points, solved on 64 x 64; width 64, depth 4, rank 32, depthwise",
            samples=400,
            test=100,
            fidelity="fast",
            model=LOCAL,
            train={**SHORT, "epochs": 20, "symmetry": SYMMETRY},
        ),
        "cpu": Scale(
            about="1000 cases of 32 x 32 points, solved on 128 x 128; model as in demo",
            samples=1000,
            test=200,
            model=LOCAL,
            train={**SHORT, "epochs": 20, "symmetry": SYMMETRY},
        ),
    },
)
