"""Reader of the published Navier-Stokes file: the vorticity of 1200 cases in 20 frames, as MATLAB array."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import scipy.io

from lrsa.data.pointset import PointSet
from lrsa.errors import LrsaError
from lrsa.solvers.navier_stokes import NavierStokes

NAVIER_STOKES = "NavierStokes_V1e-5_N1200_T20.mat"
"""Holds `u` (1200, 64, 64, 20) at the times 1 to 20, beside the initial condition `a` and the times `t`."""
KEY = "u"
TRAIN, TEST = 1000, 200
"""The first cases, and the last ones."""
_CURE = "Download it again, as it was published"


def read_navier_stokes(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, every `stride`-th point along each axis of the grid.

    Args:
        folder: Where the file is, or the file.
        stride: 1 is the published one: 64 × 64 points.
    """
    path = folder if folder.is_file() else folder / NAVIER_STOKES
    cases, n, _, frames = _shape(path)
    solver = NavierStokes(resolution=n, stride=stride, frames=frames)
    u = np.empty((cases, frames, *solver.grid), np.float32)
    _read(path, u, stride)
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


def _shape(path: Path) -> tuple[int, ...]:
    """(S, n, n, T), without reading the array."""
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                arrays = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
                there = {name: (item.shape or ())[::-1] for name, item in arrays.items()}
        else:
            there = {name: shape for name, shape, _ in scipy.io.whosmat(path)}
    except Exception as error:  # a damaged file fails in every way that its parser has
        raise _unreadable(path, error) from error
    if KEY not in there:
        raise LrsaError(f'{path} has no array "{KEY}" (it has: {", ".join(there) or "none"}). {_CURE}')
    shape = there[KEY]
    if len(shape) != 4 or shape[1] != shape[2] or 0 in shape:
        raise LrsaError(
            f'{path} has "{KEY}" of shape {shape}, not (cases, n, n, frames) as published. {_CURE}'
        )
    if shape[0] < TRAIN + TEST:
        raise LrsaError(
            f"{path} has {shape[0]} cases, not the {TRAIN + TEST} published: the first {TRAIN} are for"
            f" training, the last {TEST} for the test. {_CURE}"
        )
    return shape


def _read(path: Path, u: np.ndarray, stride: int) -> None:
    """Fill u (S, T, n, n) from either kind of MATLAB file.

    Version 7.3 is HDF5 with the axes reversed: cases are the fastest axis, so that no case can be read alone,
    but frames can, and the array need not be in memory twice.
    """
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                item = file[KEY]
                assert isinstance(item, h5py.Dataset)
                for t in range(u.shape[1]):
                    u[:, t] = item[t].T[:, ::stride, ::stride]
        else:
            whole = scipy.io.loadmat(path, variable_names=[KEY])[KEY]
            np.copyto(u, np.moveaxis(whole, -1, 1)[..., ::stride, ::stride], casting="same_kind")
    except Exception as error:  # as above
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> LrsaError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return LrsaError(f"{path} is no readable MATLAB file, truncated or foreign ({reason}). {_CURE}")
