"""Reader of the published Pipe files: the nodes of the grids and the flow there, as numpy arrays."""

from collections.abc import Sequence
from pathlib import Path

from lrsa.data.grid_files import SPLITS, GridFiles, GridsOfTheirOwn
from lrsa.pointset import PointSet
from lrsa.problems.pipe.solver import Pipe

PIPE = {axis: f"Pipe_{axis}.npy" for axis in "XYQ"}
"""The files of the abscissae and the ordinates, (2310, 129, 129), and of u_x, u_y, p, (2310, 3, 129, 129)."""


def read_pipe(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The first 1000 cases and the 200 after them, every `stride`-th node along each axis of the grid.

    Args:
        folder: Where the three files are, or one of the three.
        stride: 1 is the published one: all 129 × 129 nodes.
    """
    x, y, u = GridFiles("pipe", PIPE, fields=3, target=0, smallest=(2, 2)).maps(folder)
    return {
        split: GridsOfTheirOwn(x[part], y[part], u[part], stride, Pipe.names)
        for split, part in SPLITS.items()
    }
