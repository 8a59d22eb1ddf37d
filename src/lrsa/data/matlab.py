"""MATLAB files of either kind, as published data comes: the old one, and version 7.3, which is HDF5.

MATLAB counts axes from the fastest, so those of HDF5 come reversed; here they are always in MATLAB's order.
Files are gigabytes: shapes are looked at first, and arrays are read in parts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import scipy.io

from lrsa.data.hdf5 import item_of, items_of
from lrsa.errors import LrsaError

CURE = "Download it again, as it was published"


def shapes_in(path: Path, *needed: str) -> dict[str, tuple[int, ...]]:
    """The shape of every array in a file, those that are needed among them; nothing else is read."""
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    with _readable(path):
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                arrays = {name: v for name, v in items_of(file).items() if isinstance(v, h5py.Dataset)}
                there = {name: item.shape[::-1] for name, item in arrays.items() if item.shape is not None}
        else:
            there = {str(name): shape for name, shape, _ in scipy.io.whosmat(path)}
    for key in needed:
        if key not in there:
            raise LrsaError(f'{path} has no array "{key}" (it has: {", ".join(there) or "none"}). {CURE}')
    return there


def read_part(path: Path, key: str, part: tuple[slice, ...] = ()) -> np.ndarray:
    """Some of one array, float32."""
    with _readable(path):
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                array = _item(file, key)[part[::-1]].T
        else:
            array = scipy.io.loadmat(path, variable_names=[key])[key][part]
        return np.ascontiguousarray(array, dtype=np.float32)


def read_frames(path: Path, key: str, axis: int, part: tuple[slice, ...] = ()) -> np.ndarray:
    """One array (S, ...), float32, with its `axis` of frames in time moved behind the cases: (S, T, ...).

    In HDF5 the cases are the fastest axis, so that no case can be read alone; frames can, and the array need
    not be in memory twice. `part` is taken of what is left of each frame, (S, ...).
    """
    with _readable(path):
        if not h5py.is_hdf5(path):
            whole = np.moveaxis(scipy.io.loadmat(path, variable_names=[key])[key], axis, 0)
            return np.stack([frame[part].astype(np.float32) for frame in whole], axis=1)
        with h5py.File(path, "r") as file:
            item = _item(file, key)
            last = item.ndim - 1 - axis
            frames = (item[(slice(None),) * last + (t,)].T[part] for t in range(item.shape[last]))
            first = next(frames)
            u = np.empty((len(first), item.shape[last], *first.shape[1:]), np.float32)
            u[:, 0] = first
            for t, frame in enumerate(frames, 1):
                u[:, t] = frame
            return u


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a damaged file fails in every way that its parser has
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LrsaError(
            f"{path} is no readable MATLAB file, truncated or foreign ({reason}). {CURE}"
        ) from error


def _item(file: h5py.File, key: str) -> h5py.Dataset:
    item = item_of(file, key)
    assert isinstance(item, h5py.Dataset)
    return item
