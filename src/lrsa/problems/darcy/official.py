"""Reader of the published Darcy files: coefficients and solutions on 421 × 421 cells, as MATLAB arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.problems.darcy.solver import Darcy

DARCY = {
    "train": ("piececonst_r421_N1024_smooth1.mat", 1000),
    "test": ("piececonst_r421_N1024_smooth2.mat", 200),
}
"""The file of each split, and how many of its first cases belong to it."""


def read_darcy(folder: Path, stride: int = 5) -> dict[str, Sequence[PointSet]]:
    """`coeff` and `sol` (S, s, s) on cell centres, every `stride`-th of them along each axis.

    Args:
        folder: Where both files are, or one of the two.
        stride: 5 is the published one: 85 × 85 of 421 × 421.
    """
    folder = folder.parent if folder.is_file() else folder
    # Both files are looked at before the first is read, which takes long.
    resolutions = {file: _darcy_resolution(folder / file) for file, _ in DARCY.values()}
    if len(set(resolutions.values())) > 1:
        sizes = ", ".join(f"{file} {s} × {s}" for file, s in resolutions.items())
        raise LrsaError(f"the Darcy files in {folder} are on different grids ({sizes}). Download them again")
    solver = Darcy(resolution=min(resolutions.values()), stride=stride)
    return {split: _darcy_cases(folder / file, cases, solver) for split, (file, cases) in DARCY.items()}


@dataclass(frozen=True)
class GridCases(Sequence[PointSet]):
    """Cases on one grid, made when asked for; they share their points and are views of the arrays."""

    x: np.ndarray
    """(N, p) the points of every case."""
    f: np.ndarray
    """(S, *grid, c) input features."""
    u: np.ndarray
    """(S, *grid, o) target fields."""
    names: Names

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        f, u = self.f[index], self.u[index]
        n = len(self.x)
        return PointSet(
            self.x, f.reshape(n, f.shape[-1]), u.reshape(n, u.shape[-1]), grid=f.shape[:-1], names=self.names
        )


def _darcy_resolution(path: Path) -> int:
    shapes = shapes_in(path, "coeff", "sol")
    for key in ("coeff", "sol"):
        shape = shapes[key]
        if len(shape) != 3 or shape[1] != shape[2] or 0 in shape or shape != shapes["coeff"]:
            raise LrsaError(f'{path} has "{key}" of shape {shape}, not (cases, s, s) as published. {CURE}')
    return shapes["coeff"][1]


def _darcy_cases(path: Path, cases: int, solver: Darcy) -> GridCases:
    part = (slice(cases), slice(None, None, solver.stride), slice(None, None, solver.stride))
    a, u = (read_part(path, key, part)[..., None] for key in ("coeff", "sol"))
    return GridCases(solver.points(), a, u, Darcy.names)
