"""Reader of the published Navier-Stokes file: the vorticity of 1200 cases in 20 frames, as MATLAB array."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_frames, shapes_in
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.navier_stokes.solver import NavierStokes

NAVIER_STOKES = "NavierStokes_V1e-5_N1200_T20.mat"
"""Holds `u` (1200, 64, 64, 20) at the times 1 to 20, beside the initial condition `a` and the times `t`."""
KEY = "u"
TRAIN, TEST = 1000, 200
"""The first cases, and the last ones."""


def read_navier_stokes(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, every `stride`-th point along each axis of the grid.

    Args:
        folder: Where the file is, or the file.
        stride: 1 is the published one: 64 × 64 points.
    """
    path = folder if folder.is_file() else folder / NAVIER_STOKES
    n, every = _check(path), slice(None, None, stride)
    u = read_frames(path, KEY, axis=3, part=(slice(None), every, every))
    solver = NavierStokes(resolution=n, stride=stride, frames=u.shape[1])
    return {"train": FrameCases(solver, u[:TRAIN]), "test": FrameCases(solver, u[-TEST:])}


@dataclass(frozen=True)
class FrameCases(Sequence[PointSet]):
    """Cases on the grid of a solver, made when asked for; their frames are views of the array."""

    solver: NavierStokes
    u: np.ndarray
    """(S, T, n, n) vorticities."""

    def __len__(self) -> int:
        return len(self.u)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.solver.case(self.u[index])


def _check(path: Path) -> int:
    """The points n along an axis of `u` (S, n, n, T)."""
    shape = shapes_in(path, KEY)[KEY]
    if len(shape) != 4 or shape[1] != shape[2] or 0 in shape:
        raise LrsaError(
            f'{path} has "{KEY}" of shape {shape}, not (cases, n, n, frames) as published. {CURE}'
        )
    if shape[0] < TRAIN + TEST:
        raise LrsaError(
            f"{path} has {shape[0]} cases, not the {TRAIN + TEST} published: the first {TRAIN} are for"
            f" training, the last {TEST} for the test. {CURE}"
        )
    return shape[1]
