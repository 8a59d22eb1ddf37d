"""Numbers of a whole field: mean, smallest, largest, and the force of a pressure on a surface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.cells import dimensions
from lrsa.mesh.derive import Geometry, point_measures
from lrsa.mesh.roles import RawCase
from lrsa.objectives.integrals import area_vectors, at_faces, force
from lrsa.objectives.named import Quantity
from lrsa.pointset import PointSet
from lrsa.report.triangles import seen_axes
from lrsa.studio.exploring import Exploration, Opened, Prediction
from lrsa.studio.shapes import cells_of
from lrsa.studio.words import named, short
from lrsa.surrogate.quantities import all_quantities

NOTHING = 1e-12
PRESSURES = ("p", "cp", "c_p", "pressure")
PASCALS = ("Pa", "kPa", "MPa", "GPa", "bar")
Faces = list[np.ndarray]
"""(F, k) corners, oriented so that the normals point from the body into the fluid; one array for each k."""


@dataclass(frozen=True)
class Numbers:
    """What is counted of a case, whatever is drawn of it."""

    exploration: Exploration
    weights: np.ndarray
    """(N,) the measure of every point."""
    faces: Faces
    wanted: Mapping[str, Quantity]
    """Those of the problem, and those that the run names."""

    @staticmethod
    def of(exploration: Exploration, opened: Opened) -> "Numbers":
        config = exploration.config
        wanted = all_quantities(config.schema.name, config.train.quantities)
        return Numbers(exploration, measures(opened.case), body_faces(opened.case), wanted)

    def has_force(self, field: str) -> bool:
        return bool(self.faces) and is_pressure(field, self.exploration.units.get(field, ""))

    def rows(self, field: str, values: Sequence[float], made: Prediction) -> list[dict[str, Any]]:
        """The table: numbers of a field, then those of all fields."""
        channel, case = self.exploration.fields.index(field), self.exploration.asked(values)
        known = None if made.truth is None else made.truth[:, channel]
        known = known if known is not None and np.isfinite(known).any() else None
        units, coords = self.exploration.units, self.exploration.config.schema.names.coords
        unit = force_unit(
            units.get(field, ""), units.get(coords[0], "") if coords else "", len(seen_axes(case.x))
        )
        faces = self.faces if self.has_force(field) else []
        rows = summary(case, made.u[:, channel], known, self.weights, faces, unit)
        return rows + quantities(self.wanted, case, made.u, made.truth)


def measures(case: PointSet) -> np.ndarray:
    """(N,) what part of the domain each point stands for; the same for all where nothing says."""
    if case.weights is not None:
        return np.asarray(case.weights, float)
    cells, types = cells_of(case)
    if dimensions(types).max(initial=0) < 1:
        return np.ones(len(case))
    made = PointSet(case.x, cells=cells, cell_types=types)
    try:
        found = point_measures(made).astype(float)
    except LrsaError:  # cells of which nothing is known
        return np.ones(len(case))
    return found if found.any() else np.ones(len(case))


def body_faces(case: PointSet) -> Faces:
    """The faces of the surface that a flow presses on: those of the body, or a mesh that is all surface."""
    cells, types = cells_of(case)
    if dimensions(types).max(initial=0) < 2 or (dimensions(types) < 0).any():
        return []
    geometry = Geometry(RawCase(Path("the case"), case.x.astype(float), cells=cells, cell_types=types))
    facets = geometry.facets
    corners, into_fluid = facets.corners, facets.normals if facets.everything else -facets.normals
    if case.surface is not None:
        there = corners >= 0
        on = (case.surface[corners] | ~there).all(axis=1)
        corners, into_fluid = corners[on], into_fluid[on]
    elif not facets.everything:
        return []
    counts = (corners >= 0).sum(axis=1)
    groups = [(k, corners[counts == k][:, :k], into_fluid[counts == k]) for k in np.unique(counts)]
    axes = seen_axes(case.x)
    return [_oriented(case.x[:, axes], ring, normal[:, axes]) for k, ring, normal in groups if k in (2, 3, 4)]


def is_pressure(name: str, unit: str) -> bool:
    """Whether the force of a field on a surface means something."""
    return name.lower() in PRESSURES or name.lower().startswith(("p_", "pressure")) or unit in PASCALS


def force_unit(pressure: str, length: str, axes: int) -> str:
    """That of ∫ p dA: `Pa m²` is N; in the plane it is a force by length."""
    if not pressure or not length:
        return ""
    if (pressure, length) == ("Pa", "m"):
        return "N" if axes == 3 else "N/m"
    return f"{pressure} {length}{'²' if axes == 3 else ''}"


def summary(
    case: PointSet,
    values: np.ndarray,
    truth: np.ndarray | None,
    weights: np.ndarray,
    faces: Faces,
    unit: str = "",
) -> list[dict[str, Any]]:
    """Rows of the table: each number of the prediction (N,), beside that of the truth where it is known.

    The force, in this unit, is that of the field taken as a pressure.
    """
    rows = [
        _row(name, fold(values), None if truth is None else fold(truth))
        for name, fold in (
            ("mean", lambda v: _mean(v, weights)),
            ("smallest", lambda v: float(np.nanmin(v))),
            ("largest", lambda v: float(np.nanmax(v))),
        )
    ]
    if faces:
        axes = seen_axes(case.x)
        ours, theirs = (None if v is None else _force(case.x[:, axes], v, faces) for v in (values, truth))
        assert ours is not None
        for i, name in enumerate("xyz"[axis] for axis in axes):
            rows.append(_row(named(f"force {name}", unit), ours[i], None if theirs is None else theirs[i]))
    if truth is not None:
        rows.append({"name": "relative L2 error", "prediction": short(_relative(values, truth)), "truth": ""})
    return rows


def quantities(
    wanted: Mapping[str, Quantity], case: PointSet, u: np.ndarray, truth: np.ndarray | None
) -> list[dict[str, Any]]:
    """Rows of the same kind: the quantities that the problem or the run names, of all fields (N, o)."""
    rows = []
    for name, quantity in wanted.items():
        try:
            rows.append(_row(name, quantity(case, u), None if truth is None else quantity(case, truth)))
        except Exception:  # a file of the user's need not have what it takes
            continue
    return rows


def _row(name: str, ours: float, theirs: float | None) -> dict[str, Any]:
    known = "" if theirs is None or not np.isfinite(theirs) else short(theirs, 5)
    return {"name": name, "prediction": short(ours, 5), "truth": known}


def _relative(values: np.ndarray, truth: np.ndarray) -> float:
    """‖û - u‖₂ / ‖u‖₂ where the truth is known."""
    known = np.isfinite(truth)
    size = float(np.linalg.norm(truth[known]))
    return float(np.linalg.norm(values[known] - truth[known])) / size if size else np.nan


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    known = np.isfinite(values) & (weights > 0)
    return float(values[known] @ weights[known] / weights[known].sum()) if known.any() else np.nan


def _force(x: np.ndarray, values: np.ndarray, faces: Faces) -> np.ndarray:
    """(d,) ∫ -p n dA; what is left of a sum that is nothing is 0."""
    found = sum(
        (force(x[ring].astype(float), at_faces(values.astype(float), ring)) for ring in faces),
        start=np.zeros(x.shape[1]),
    )
    size = sum(float(np.linalg.norm(area_vectors(x[ring].astype(float)), axis=1).sum()) for ring in faces)
    return np.where(np.abs(found) > NOTHING * size * np.nanmax(np.abs(values)), found, 0.0)


def _oriented(x: np.ndarray, corners: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The corners, turned round where their own normal points against the given one (F, d)."""
    own = area_vectors(x[corners].astype(float))
    against = (own * normals).sum(axis=1) < 0
    return np.where(against[:, None], corners[:, ::-1], corners)
