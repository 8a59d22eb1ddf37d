"""What is looked at as files: the mesh with the fields as VTU, the points as CSV."""

import csv
from pathlib import Path

import numpy as np

from lrsa.files import atomic
from lrsa.mesh.writing import is_table, write_mesh
from lrsa.studio.exploring import Exploration, Opened, Prediction


def write_prediction(
    exploration: Exploration, opened: Opened, made: Prediction, frame: int, out: Path
) -> Path:
    """The mesh of the case with `<target>_predicted` and, where the truth is known, `<target>_error`.

    A mesh of the user's comes back as it was, with the fields added. The name may get another suffix, where
    a mesh of this kind has none such.
    """
    times = opened.case.times
    if opened.loaded is not None and opened.reader is not None and not is_table(opened.loaded.path):
        reader, several = opened.reader, times is not None
        time = float(times[frame]) if times is not None else None
        fields = reader.fields(made.u, opened.loaded, frame if several else None)
        return write_mesh(reader.mesh_at(opened.loaded, time), out, fields, reader.roles.location, time)
    mesh = opened.shape.mesh.copy()
    mesh.clear_data()
    return write_mesh(mesh, out, _columns(exploration, made), "point", _time(exploration, frame))


def write_points(exploration: Exploration, opened: Opened, made: Prediction, out: Path) -> Path:
    """A row for every point: its coordinates, then the fields."""
    coords = exploration.config.schema.names.coords or tuple("xyz"[: opened.case.x.shape[1]])
    columns = {name: opened.case.x[:, i] for i, name in enumerate(coords)} | _columns(exploration, made)
    with atomic(out) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return out


def _columns(exploration: Exploration, made: Prediction) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    for i, name in enumerate(exploration.fields):
        columns[f"{name}_predicted"] = np.ascontiguousarray(made.u[:, i])
        if made.truth is not None and np.isfinite(made.truth[:, i]).any():
            columns[name] = np.ascontiguousarray(made.truth[:, i])
            columns[f"{name}_error"] = made.u[:, i] - made.truth[:, i]
    return columns


def _time(exploration: Exploration, frame: int) -> float | None:
    opened = exploration.opened
    return None if opened is None or opened.case.times is None else exploration.frames()[frame]
