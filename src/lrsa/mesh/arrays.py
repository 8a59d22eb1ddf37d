"""Cases in NPZ files: `x`, and features and targets as arrays of their own names."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.machine import check_fits
from lrsa.pointset import Names, PointSet

RESERVED = ("x", "weights", "globals", "grid", "cells", "cell_types", "time")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the file."""
    try:
        with open(path, "rb") as raw, np.load(raw) as file:  # numpy leaves a damaged file open
            _check_size(path, raw)
            return {name: np.asarray(file[name]) for name in file.files}
    except FileNotFoundError as error:
        raise LrsaError(f"{path} does not exist") from error
    except LrsaError:
        raise
    except Exception as error:  # what a damaged member raises has no common base, and may be MemoryError
        raise LrsaError(f"{path} is not a readable NPZ file (truncated or foreign)") from error


def _check_size(path: Path, raw: BinaryIO) -> None:
    """Refuse what would fill the memory: zeros compress a thousandfold."""
    with zipfile.ZipFile(raw) as archive:
        declared = sum(entry.file_size for entry in archive.infolist())
    check_fits(2 * declared, f"{path}, unpacked and at work,")


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays to a file, whole or not at all."""
    size = sum(array.nbytes for array in arrays.values())
    with atomic(path, size) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]


def case_of(
    path: Path, arrays: Mapping[str, np.ndarray], names: Names, features: int, inputs: Sequence[str], who: str
) -> PointSet:
    """The case in an NPZ file, with the `features` input channels that `who` was trained with.

    They are the arrays called `inputs`, else those called as in training, else `f`, else all that are left.
    """
    if "x" not in arrays:
        raise LrsaError(f'{path} has no coordinates "x" (it has: {", ".join(arrays)})')
    x = _numbers(path, arrays, "x")
    if x.ndim != 2 or not len(x):
        raise LrsaError(f'{path} has "x" of shape {x.shape}; it should be (points, coordinates)')
    chosen = list(inputs) or _default_inputs(arrays, names, len(x)) if inputs or features else []
    columns = [_column(path, arrays, name, len(x)) for name in chosen]
    given = sum(column.shape[1] for column in columns)
    if given != features:
        example = (
            f". Pick {features} with --inputs {','.join(chosen[:features])}" if given > features > 0 else ""
        )
        listed = f" ({', '.join(chosen)})" if chosen else ""
        plural = "feature" if features == 1 else "features"
        raise LrsaError(
            f"{who} was trained with {features} input {plural}, but {path.name} has {given}{listed}{example}"
        )
    optional = {k: _numbers(path, arrays, k) for k in ("weights", "globals", "time") if k in arrays}
    mesh = {k: _integers(path, arrays, k) for k in ("cells", "cell_types") if k in arrays}
    grid = tuple(_numbers(path, arrays, "grid").astype(int).ravel()) if "grid" in arrays else None
    f = np.concatenate(columns, axis=1) if columns else None
    try:
        case = PointSet(x, f, grid=grid, names=names, **optional, **mesh)
    except LrsaError as error:
        raise LrsaError(f"{path}: {error}") from error
    case.check_finite(str(path))
    return case


def _default_inputs(arrays: Mapping[str, np.ndarray], names: Names, points: int) -> list[str]:
    taken = (*RESERVED, *names.targets, "f", "u")
    others = [k for k, v in arrays.items() if k not in taken and np.shape(v)[:1] == (points,)]
    choices = (list(names.inputs), ["f"], others)
    return next((choice for choice in choices if choice and all(name in arrays for name in choice)), [])


def _column(path: Path, arrays: Mapping[str, np.ndarray], name: str, points: int) -> np.ndarray:
    """(N, k) the channels of one array."""
    if name not in arrays:
        raise LrsaError(
            f'{path} has no array "{name}" (it has: {", ".join(arrays)}). Name the inputs with --inputs'
        )
    array = _numbers(path, arrays, name)
    if array.shape[:1] != (points,):
        raise LrsaError(f'{path} has "{name}" of shape {array.shape}, but {points} points in x')
    return array.reshape(points, -1)


def _integers(path: Path, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if arrays[name].dtype.kind not in "iu":
        raise LrsaError(f'{path} has "{name}" of type {arrays[name].dtype}; it should be integers')
    return arrays[name]


def _numbers(path: Path, arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if arrays[name].dtype.kind not in "biuf":
        raise LrsaError(f'{path} has "{name}" of type {arrays[name].dtype}; it should be numbers')
    with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such
        return arrays[name].astype(np.float32)
