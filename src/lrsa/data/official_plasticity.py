"""Reader of the published Plasticity file: the die and the block under it in 20 frames, as MATLAB arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import scipy.io

from lrsa.data.pointset import PointSet
from lrsa.errors import LrsaError
from lrsa.solvers.plasticity_die import FRAMES, NAMES, nodes, shares, times

PLASTICITY = "plas_N987_T20.mat"
"""Holds `input` (987, 101), the die above the nodes from right to left, and `output` (987, 101, 31, 20, 4),
x, y, u_x, u_y of every node at every time."""
TRAIN, TEST = 900, 80
"""The first cases, and the last ones."""
_CURE = "Download it again, as it was published"


def read_plasticity(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, every `stride`-th node along each axis of the grid.

    Args:
        folder: Where the file is, or the file.
        stride: 1 is the published one: 101 × 31 nodes.
    """
    path = folder if folder.is_file() else folder / PLASTICITY
    shapes = _shapes(path)
    _check(path, shapes)
    die, u = np.empty(shapes["input"], np.float32), np.empty(_turned(shapes["output"]), np.float32)
    _read(path, die, u)
    return {
        "train": Forgings(die[:TRAIN], u[:TRAIN], stride),
        "test": Forgings(die[-TEST:], u[-TEST:], stride),
    }


@dataclass(frozen=True)
class Forgings(Sequence[PointSet]):
    """Cases on the grid at rest, made when asked for; their frames are views of the array."""

    die: np.ndarray
    """(S, I) heights."""
    u: np.ndarray
    """(S, T, I, J, 4) places and displacements."""
    stride: int

    def __len__(self) -> int:
        return len(self.u)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        u = self.u[index]
        frames, columns, rows, channels = u.shape
        x = nodes(columns - 1, rows - 1)
        case = PointSet(
            x=x.reshape(-1, 2).astype(np.float32),
            f=np.repeat(self.die[index], rows)[:, None],
            u=u.reshape(frames, -1, channels),
            weights=shares(columns - 1, rows - 1).ravel().astype(np.float32),
            times=times().astype(np.float32),
            grid=(columns, rows),
            names=NAMES,
        )
        return case.strided(self.stride)


def _turned(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(S, I, J, T, 4) -> (S, T, I, J, 4)."""
    return shape[0], shape[3], shape[1], shape[2], shape[4]


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Of every array in MATLAB's order; nothing else is read."""
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    try:
        if not h5py.is_hdf5(path):
            return {name: shape for name, shape, _ in scipy.io.whosmat(path)}
        with h5py.File(path, "r") as file:
            arrays = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
            return {name: (item.shape or ())[::-1] for name, item in arrays.items()}
    except Exception as error:  # a damaged file fails in every way that its parser has
        raise _unreadable(path, error) from error


def _check(path: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    for key in ("input", "output"):
        if key not in shapes:
            raise LrsaError(f'{path} has no array "{key}" (it has: {", ".join(shapes) or "none"}). {_CURE}')
    die, u = shapes["input"], shapes["output"]
    if len(u) != 5 or u[3:] != (FRAMES, 4) or min(u) < 1 or u[1] < 2 or u[2] < 2:
        raise LrsaError(
            f'{path} has "output" of shape {u}, not (cases, i, j, {FRAMES}, 4) as published. {_CURE}'
        )
    if die != u[:2]:
        raise LrsaError(f'{path} has "input" of shape {die}, not {u[:2]}: (cases, i). {_CURE}')
    if u[0] < TRAIN + TEST:
        raise LrsaError(
            f"{path} has {u[0]} cases, not the 987 published: the first {TRAIN} are for training, the last"
            f" {TEST} for the test. {_CURE}"
        )


def _read(path: Path, die: np.ndarray, u: np.ndarray) -> None:
    """Fill die (S, I) and u (S, T, I, J, 4) from either kind of MATLAB file.

    Version 7.3 is HDF5 with the axes reversed. It is read frame by frame, since the whole is a gigabyte.
    """
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                first, second = file["input"], file["output"]
                assert isinstance(first, h5py.Dataset)
                assert isinstance(second, h5py.Dataset)
                die[:] = first[...].T
                for t in range(u.shape[1]):
                    u[:, t] = second[:, t].T  # (4, J, I, S), reversed
        else:
            whole = scipy.io.loadmat(path, variable_names=["input", "output"])
            np.copyto(die, whole["input"], casting="same_kind")
            np.copyto(u, np.moveaxis(whole["output"], 3, 1), casting="same_kind")
    except Exception as error:  # as above
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> LrsaError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return LrsaError(f"{path} is no readable MATLAB file, truncated or foreign ({reason}). {_CURE}")
