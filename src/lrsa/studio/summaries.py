"""Numbers of a whole field: mean, smallest, largest, and the force of a pressure on a surface."""

from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.cells import dimensions
from lrsa.mesh.derive import Geometry, point_measures
from lrsa.mesh.roles import RawCase
from lrsa.objectives.integrals import area_vectors, at_faces, force
from lrsa.pointset import PointSet
from lrsa.report.triangles import seen_axes
from lrsa.studio.shapes import cells_of

Faces = list[np.ndarray]
"""(F, k) corners, oriented so that the normals point from the body into the fluid; one array for each k."""


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


def summary(
    case: PointSet, values: np.ndarray, truth: np.ndarray | None, weights: np.ndarray, faces: Faces
) -> list[dict[str, Any]]:
    """Rows of the table: each number of the prediction (N,), beside that of the truth where it is known.

    The force is that of the field taken as a pressure.
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
            rows.append(_row(f"force {name}", ours[i], None if theirs is None else theirs[i]))
    return rows


def _row(name: str, ours: float, theirs: float | None) -> dict[str, Any]:
    known = theirs is not None and np.isfinite(theirs)
    return {"name": name, "prediction": f"{ours:.5g}", "truth": f"{theirs:.5g}" if known else ""}


def _mean(values: np.ndarray, weights: np.ndarray) -> float:
    known = np.isfinite(values) & (weights > 0)
    return float(values[known] @ weights[known] / weights[known].sum()) if known.any() else np.nan


def _force(x: np.ndarray, values: np.ndarray, faces: Faces) -> np.ndarray:
    """(d,) ∫ -p n dA."""
    return sum(
        (force(x[ring].astype(float), at_faces(values.astype(float), ring)) for ring in faces),
        start=np.zeros(x.shape[1]),
    )


def _oriented(x: np.ndarray, corners: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """The corners, turned round where their own normal points against the given one (F, d)."""
    own = area_vectors(x[corners].astype(float))
    against = (own * normals).sum(axis=1) < 0
    return np.where(against[:, None], corners[:, ::-1], corners)
