"""What the processes do that may die of a file. They start fast: nothing here needs torch."""

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.reading import open_mesh
from lrsa.mesh.writing import Location, is_table, write_mesh, write_table


def read_within(function: Callable[[Path], Any], path: Path, most: int) -> Any:
    """What the function says of the path, unless that is too large to be sent."""
    too_large = LrsaError(f"{path.name} takes more than {most / 1e6:g} MB in memory")
    if path.suffix == ".npz" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > most:
                raise too_large
    made = function(path)
    if _size(made) > most:
        raise too_large
    return made


def write_beside(
    path: Path, fields: Mapping[str, np.ndarray], location: Location, time: float | None
) -> Path:
    """The file with these fields beside what it has."""
    out = path.with_name(f"predicted{path.suffix}")
    if is_table(path):
        return write_table(path, out, fields)
    return write_mesh(open_mesh(path), out, fields, location, time)


def _size(made: Any) -> int:
    if isinstance(made, np.ndarray):
        return made.nbytes
    if isinstance(made, Mapping):
        return sum(map(_size, made.values()))
    return sum(map(_size, vars(made).values())) if hasattr(made, "point_data") else 0
