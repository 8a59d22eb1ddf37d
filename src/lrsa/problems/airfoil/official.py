"""Reader of the published airfoil files: the nodes of the C-grids and the flow there, as numpy arrays."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lrsa.data.grid_files import SPLITS, GridFiles, GridsOfTheirOwn
from lrsa.pointset import PointSet
from lrsa.problems.airfoil.mesh import NAMES

AIRFOIL = {axis: f"NACA_Cylinder_{axis}.npy" for axis in "XYQ"}
"""The files of the abscissae and the ordinates, (cases, 221, 51), and of the fields, (cases, 5, 221, 51)."""
MACH = 4
"""Which of the fields ρ, u, v, p and Mach number is the target."""
BEHIND = 50
"""Cells along the wake; the rest of the innermost row is the airfoil."""


def read_airfoil(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The first 1000 cases and the 200 after them, every `stride`-th node along each axis of the grid.

    Args:
        folder: Where the three files are, or one of the three.
        stride: 1 is the published one: all 221 × 51 nodes.
    """
    files = GridFiles("airfoil", AIRFOIL, fields=5, target=MACH, smallest=(2 * BEHIND + 1, 2))
    x, y, u = files.maps(folder)
    surface = np.zeros(x.shape[1:], bool)
    surface[BEHIND : x.shape[1] - BEHIND, 0] = True
    return {
        split: GridsOfTheirOwn(x[part], y[part], u[part], stride, NAMES, surface)
        for split, part in SPLITS.items()
    }
