"""Cases in NPZ files: `x`, and features and targets as arrays of their own names."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lrsa.data.pointset import Names, PointSet
from lrsa.data.store import atomic
from lrsa.errors import LrsaError

RESERVED = ("x", "weights", "globals", "grid", "cells", "time")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of the file."""
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError as error:
        raise LrsaError(f"{path} does not exist") from error
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise LrsaError(f"{path} is not a readable NPZ file (truncated or foreign)") from error


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
    n = len(arrays["x"])
    others = [
        k
        for k, v in arrays.items()
        if k not in (*RESERVED, *names.targets, "f", "u") and len(np.shape(v)) and len(v) == n
    ]
    chosen = list(inputs) or _first_there(arrays, [list(names.inputs), ["f"], others])
    for name in chosen:
        if name not in arrays:
            raise LrsaError(
                f'{path} has no array "{name}" (it has: {", ".join(arrays)}). Name the inputs with --inputs'
            )
    columns = [np.asarray(arrays[name], np.float32).reshape(n, -1) for name in chosen]
    f = np.concatenate(columns, axis=1) if columns else None
    given = 0 if f is None else f.shape[1]
    if given != features:
        example = (
            f". Pick {features} with --inputs {','.join(chosen[:features])}" if given > features > 0 else ""
        )
        listed = f" ({', '.join(chosen)})" if chosen else ""
        plural = "feature" if features == 1 else "features"
        raise LrsaError(
            f"{who} was trained with {features} input {plural}, but {path.name} has {given}{listed}{example}"
        )
    optional = {k: np.asarray(arrays[k], np.float32) for k in ("weights", "globals", "time") if k in arrays}
    grid = tuple(int(v) for v in arrays["grid"]) if "grid" in arrays else None
    case = PointSet(np.asarray(arrays["x"], np.float32), f, grid=grid, names=names, **optional)
    case.check_finite(str(path))
    return case


def _first_there(arrays: Mapping[str, np.ndarray], choices: Sequence[list[str]]) -> list[str]:
    return next((choice for choice in choices if choice and all(name in arrays for name in choice)), [])
