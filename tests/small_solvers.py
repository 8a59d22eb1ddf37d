"""The solvers of the standard benchmarks on few points."""

from typing import Any

SMALL: dict[str, dict[str, Any]] = {
    "darcy": {"resolution": 17, "stride": 1},
    "elasticity": {"refinement": 1},
    "airfoil": {"tolerance": 3e-2},
    "pipe": {"elements": 8},
    "navier-stokes": {"resolution": 17, "stride": 1, "frames": 11},
    "plasticity": {"young": 12.5e3, "columns": 20, "rows": 6},
}
