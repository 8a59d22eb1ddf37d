"""Readers of the published files: one function per benchmark, one row each in `OFFICIAL`.

A reader takes the folder that holds the files and returns the splits of the published protocol, in the
schema of the generated set (same points, grid and names).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import scipy.io

from lrsa.data.catalogue import get
from lrsa.data.official_airfoil import AIRFOIL, read_airfoil
from lrsa.data.official_elasticity import read_elasticity
from lrsa.data.official_navier_stokes import NAVIER_STOKES, read_navier_stokes
from lrsa.data.official_pipe import PIPE, read_pipe
from lrsa.data.official_plasticity import PLASTICITY, read_plasticity
from lrsa.data.pointset import Names, PointSet
from lrsa.data.store import Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.solvers.darcy import Darcy

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


class Official(NamedTuple):
    """The published files of a benchmark, relative to one folder, and their reader."""

    files: tuple[str, ...]
    read: Callable[..., Mapping[str, Sequence[PointSet]]]
    """(folder, stride) -> splits; the published stride where none is given."""


OFFICIAL: dict[str, Official] = {
    "darcy": Official(tuple(file for file, _ in DARCY.values()), read_darcy),
    "airfoil": Official(tuple(AIRFOIL.values()), read_airfoil),
    "elasticity": Official(("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"), read_elasticity),
    "pipe": Official(tuple(PIPE.values()), read_pipe),
    "navier-stokes": Official((NAVIER_STOKES,), read_navier_stokes),
    "plasticity": Official((PLASTICITY,), read_plasticity),
}


def recognise(source: Path) -> str | None:
    """The benchmark one of whose files `source` is, or holds; None if there is none.

    One file is enough: the reader then says which one is missing.
    """
    if source.is_dir():
        found = [name for name, (files, _) in OFFICIAL.items() if any((source / f).is_file() for f in files)]
    else:
        found = [
            name for name, (files, _) in OFFICIAL.items() if source.name in {Path(f).name for f in files}
        ]
    if len(found) > 1:
        raise LrsaError(
            f"{source} holds the files of {' and '.join(found)}. Give one benchmark a folder of its own"
        )
    return found[0] if found else None


def import_official(source: Path, out: Path, stride: int | None = None) -> tuple[str, dict[str, int]]:
    """Write the official files in (or at) `source` to a data set; the benchmark, and its cases by split."""
    if not source.exists():
        raise LrsaError(f"{source} does not exist")
    name = recognise(source)
    if name is None:
        files = "; ".join(f"{name}: {', '.join(row.files)}" for name, row in OFFICIAL.items())
        raise LrsaError(f"{source} holds no official files that are known here ({files})")
    row = OFFICIAL[name]
    splits = row.read(source) if stride is None else row.read(source, stride)
    first = next(iter(splits.values()))[0]
    provenance = {"files": row.files, "stride": stride or "published"}
    schema = Schema(name, "official", get(name).protocol, first.names, provenance)
    write_dataset(out, splits, schema)
    return name, {split: len(cases) for split, cases in splits.items()}


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
    shapes = _shapes(path)
    for key in ("coeff", "sol"):
        if key not in shapes:
            raise LrsaError(f'{path} has no array "{key}" (it has: {", ".join(shapes) or "none"}). {_CURE}')
        shape = shapes[key]
        if len(shape) != 3 or shape[1] != shape[2] or 0 in shape or shape != shapes["coeff"]:
            raise LrsaError(f'{path} has "{key}" of shape {shape}, not (cases, s, s) as published. {_CURE}')
    return shapes["coeff"][1]


def _darcy_cases(path: Path, cases: int, solver: Darcy) -> GridCases:
    part = (slice(cases), slice(None, None, solver.stride), slice(None, None, solver.stride))
    a, u = (_array(path, key, part)[..., None] for key in ("coeff", "sol"))
    return GridCases(solver.points(), a, u, Darcy.names)


_CURE = "Download it again, as it was published"


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shape in MATLAB's order of every array in a file; nothing else is read."""
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it into {path.parent}, under its published name")
    try:
        if not h5py.is_hdf5(path):
            return {str(name): shape for name, shape, _ in scipy.io.whosmat(path)}
        with h5py.File(path, "r") as file:
            arrays = {str(name): item for name, item in file.items() if isinstance(item, h5py.Dataset)}
            return {name: item.shape[::-1] for name, item in arrays.items() if item.shape is not None}
    except Exception as error:  # a damaged file fails in every way that its parser has
        raise _unreadable(path, error) from error


def _array(path: Path, key: str, part: tuple[slice, ...]) -> np.ndarray:
    """Some of one array of a MATLAB file, float32; one array at a time, since the whole is gigabytes.

    Version 7.3 is HDF5, and MATLAB counts axes from the fastest: they come reversed.
    """
    try:
        if h5py.is_hdf5(path):
            with h5py.File(path, "r") as file:
                item = file[key]
                assert isinstance(item, h5py.Dataset)
                array = item[part[::-1]].T
        else:
            array = scipy.io.loadmat(path, variable_names=[key])[key][part]
        return np.ascontiguousarray(array, dtype=np.float32)
    except Exception as error:  # as above
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> LrsaError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return LrsaError(f"{path} is no readable MATLAB file, truncated or foreign ({reason}). Download it again")
