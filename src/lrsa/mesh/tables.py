"""Cases without a mesh reader: CSV and Parquet tables, NPZ and plain HDF5; and the table of parameters.

A table is a point cloud: columns x, y[, z] (or ParaView's Points:0, Points:1, Points:2) and fields. Columns
`U:0, U:1, U:2` become the vector U. In NPZ and HDF5 the coordinates are one array (N, p) called x, points,
pos or coords, or one array per axis; `cells` (C, k) and VTK's `cell_types` (C,) make a mesh of them, `grid`
says how many points of a structured grid lie along each axis, `times` (T,) makes arrays (T, N[, k]) frames.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from lrsa.data.hdf5 import item_of, items_of
from lrsa.data.store import FORMAT
from lrsa.errors import LrsaError
from lrsa.mesh.arrays import read_npz
from lrsa.mesh.roles import RawCase
from lrsa.pointset import cell_types_of

TABLES = (".csv", ".tsv", ".parquet")
ARRAYS = (".npz", ".h5", ".hdf5")
COORDINATES = ("x", "points", "pos", "coords")
AXES = (("x", "y", "z"), ("points:0", "points:1", "points:2"), ("points_0", "points_1", "points_2"))


def read_table(path: Path) -> dict[str, np.ndarray]:
    """The columns of a CSV or Parquet file: float64 where they are numbers, strings where not."""
    try:
        import pyarrow as pa
        from pyarrow import csv, parquet
    except ImportError as error:
        raise LrsaError(f"{path} needs pyarrow. Install it with `pip install lrsa[mesh]`") from error
    if not path.is_file():
        raise LrsaError(f"{path} does not exist")
    try:
        if path.suffix.lower() == ".parquet":
            table = parquet.read_table(path)
        else:
            table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter(path)))
        names = [str(name).strip() for name in table.column_names]
        columns = [_numbers(column) for column in table.columns]
    except (pa.ArrowException, OSError, ValueError, UnicodeError) as error:
        raise LrsaError(f"{path} is not a readable table: {_brief(error)}") from error
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LrsaError(f'{path} has two columns "{twice}". Rename one')
    if not names or not len(columns[0]):
        raise LrsaError(f"{path} is empty")
    return dict(zip(names, columns, strict=True))


def vectors(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Numeric columns, those called `U:0, U:1, ...` joined to (N, k) arrays."""
    found: dict[str, np.ndarray] = {}
    parts: dict[str, list[np.ndarray]] = {}
    for name, column in columns.items():
        if column.dtype.kind not in "biuf":
            continue
        match = re.fullmatch(r"(.+):(\d+)", name)
        if match and int(match[2]) == len(parts.get(match[1], [])):
            parts.setdefault(match[1], []).append(column)
            found[match[1]] = column
        else:
            found[name] = column
    return found | {name: np.stack(columns, axis=1) for name, columns in parts.items()}


def read_point_table(path: Path) -> RawCase:
    """A table as a point cloud."""
    columns = read_table(path)
    points, used = _coordinates(path, columns)
    return RawCase(path, points, vectors({k: v for k, v in columns.items() if k not in used}))


def read_npz_case(path: Path) -> RawCase:
    return case_of_arrays(path, read_npz(path))


def read_hdf5_case(path: Path) -> RawCase:
    """The arrays of a file, or of one of its groups: `all.h5/case_3`."""
    file, group = hdf5_part(path)
    try:
        with h5py.File(file, "r") as opened:
            if opened.attrs.get("format") == FORMAT:
                raise LrsaError(f"{file} is one of our data sets already: train on it with `lrsa train`")
            here = items_of(item_of(opened, group) if group else opened)
            arrays = {name: np.asarray(v[()]) for name, v in here.items() if isinstance(v, h5py.Dataset)}
    except LrsaError:
        raise
    except Exception as error:
        reason = "does not exist" if not file.exists() else f"is not a readable HDF5 file: {_brief(error)}"
        raise LrsaError(f"{path} {reason}") from error
    return case_of_arrays(path, arrays)


def hdf5_part(path: Path) -> tuple[Path, str]:
    """`all.h5/case_3` -> (`all.h5`, `case_3`); the group is empty where the path is the file."""
    for parent in path.parents:
        if parent.suffix.lower() in (".h5", ".hdf5") and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return path, ""


def hdf5_groups(path: Path) -> list[str]:
    """The groups that are cases, where the file itself is none."""
    with h5py.File(path, "r") as file:
        if _has_coordinates(file) or file.attrs.get("format") == FORMAT:
            return []
        groups = {name: v for name, v in items_of(file).items() if isinstance(v, h5py.Group)}
        return sorted(name for name, group in groups.items() if _has_coordinates(group))


def case_of_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> RawCase:
    """Named arrays as a case; those as long as there are cells, and not points, belong to the cells."""
    numeric = {k: v for k, v in arrays.items() if v.dtype.kind in "biuf"}
    points, used = _coordinates(path, numeric)
    times = numeric.get("times")
    times = np.asarray(times, np.float64) if times is not None and times.ndim == 1 else None
    cells = numeric.get("cells")
    if cells is not None and (cells.ndim != 2 or cells.dtype.kind not in "iu"):
        raise LrsaError(
            f"{path} has cells of shape {cells.shape}; they should be integers (cells, points of each)"
        )
    if cells is not None and len(cells) and not -1 <= cells.min() <= cells.max() < len(points):
        raise LrsaError(
            f"{path} has cells that name points from {cells.min()} to {cells.max()}, of {len(points)}"
        )
    reserved = {*used, "times", "cells", "cell_types", "grid"}
    fields = {k: v for k, v in numeric.items() if k not in reserved and v.ndim}
    axis = 0 if times is None else 1
    of_cells = {
        k: v
        for k, v in fields.items()
        if cells is not None
        and len(points) not in v.shape[:2]
        and len(cells) in (v.shape[0], *v.shape[axis:2])
    }
    of_points = {k: v for k, v in fields.items() if k not in of_cells}
    types = None if cells is None else _cell_types(path, points, cells, numeric.get("cell_types"))
    mesh = None if cells is None else cells.astype(np.int64)
    grid = _grid(path, len(points), numeric.get("grid"))
    return RawCase(path, points, of_points, of_cells, mesh, types, times, grid=grid)


@dataclass(frozen=True)
class Parameters:
    """The table of per-case parameters: one row per case, found by its name in the first column."""

    path: Path
    names: tuple[str, ...]
    rows: Mapping[str, np.ndarray]

    def of(self, labels: Sequence[str]) -> np.ndarray | None:
        """(g,) the row of a case that may be called any of `labels`."""
        return next((self.rows[label] for label in labels if label in self.rows), None)


def read_globals(path: Path, without: Sequence[str] = ()) -> Parameters:
    """First column: the case (its file with or without suffix); all others, but those left out: numbers."""
    columns = {name: column for name, column in read_table(path).items() if name not in without}
    key, *names = columns
    if not names and not without:
        raise LrsaError(
            f"{path} has one column only. It needs the case in the first and its parameters after it"
        )
    for name in names:
        if columns[name].dtype.kind not in "biuf":
            raise LrsaError(
                f'{path} has words in column "{name}". Parameters are numbers: encode or remove it'
            )
    cases = [label_of(value) for value in columns[key]]
    twice = (
        next((case for case in cases if cases.count(case) > 1), None)
        if len(set(cases)) < len(cases)
        else None
    )
    if twice is not None:
        raise LrsaError(f'{path} has several rows for the case "{twice}". Keep one')
    values = np.array([columns[name] for name in names], np.float64).reshape(len(names), len(cases)).T
    return Parameters(path, tuple(names), dict(zip(cases, values, strict=True)))


def label_of(value: Any) -> str:
    """What stands in a cell of a table, in words."""
    return str(int(value)) if isinstance(value, np.floating) and float(value).is_integer() else str(value)


def _coordinates(path: Path, arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, set[str]]:
    """(N, p) float64, and the names of the arrays that they came from."""
    by_lower = {name.lower(): name for name in arrays}
    for name in COORDINATES:
        found = arrays.get(by_lower.get(name, ""))
        if found is not None and found.ndim == 2 and 1 <= found.shape[1] <= 3:
            return np.asarray(found, np.float64), {by_lower[name]}
    for axes in AXES:
        used = [by_lower[axis] for axis in axes if axis in by_lower]
        columns = [arrays[name] for name in used]
        if (
            len(used) > 1
            and by_lower.get(axes[0]) in used
            and all(c.ndim == 1 and c.dtype.kind in "biuf" for c in columns)
        ):
            if len({len(c) for c in columns}) > 1:
                raise LrsaError(f"{path} has coordinates of different lengths ({', '.join(used)})")
            return np.stack(columns, axis=1).astype(np.float64), set(used)
    there = ", ".join(arrays) or "nothing"
    raise LrsaError(
        f"{path} has no coordinates: columns x, y[, z], or an array x or points (it has: {there})"
    )


def _has_coordinates(group: Any) -> bool:
    """Of links to other files the name is enough: they are refused where the case is read."""
    links = {str(name): group.get(name, getlink=True) for name in group if str(name).lower() in COORDINATES}
    return any(
        isinstance(link, h5py.ExternalLink) or isinstance(group.get(name), h5py.Dataset)
        for name, link in links.items()
    )


def _cell_types(path: Path, points: np.ndarray, cells: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    if given is not None:
        if given.shape != (len(cells),):
            raise LrsaError(f"{path} has {len(cells)} cells, but cell_types of shape {given.shape}")
        if given.dtype.kind not in "iu" or not 0 <= given.min(initial=0) <= given.max(initial=0) <= 255:
            raise LrsaError(
                f"{path} has cell_types that are not VTK's: whole numbers, such as 5 for triangles"
            )
        return given.astype(np.int64)
    return cell_types_of(points, cells)


def _grid(path: Path, points: int, given: np.ndarray | None) -> tuple[int, ...] | None:
    """The index shape, where the file names one."""
    if given is None:
        return None
    shape = tuple(int(n) for n in given.ravel())
    if given.dtype.kind not in "iu" or min(shape, default=0) < 1 or math.prod(shape) != points:
        raise LrsaError(
            f"{path} has a grid that is not that of its {points} points: it should be the number of points"
            " along each axis, the last one fastest, such as 20,30"
        )
    return shape


def _numbers(column: Any) -> np.ndarray:
    import pyarrow as pa

    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return np.asarray([str(value) for value in column.to_pylist()])


def delimiter(path: Path) -> str:
    """What separates the columns: the comma, semicolon or tab that the header has most of."""
    with open(path, encoding="utf-8", errors="replace") as file:
        first = file.readline()
    return max((",", ";", "\t"), key=first.count)


def _brief(error: BaseException) -> str:
    """An error of a library in one short line."""
    return " ".join((str(error) or type(error).__name__).split())[:160]
