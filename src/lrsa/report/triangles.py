"""What of a mesh can be seen: its triangles in the plane, or the triangles of its surface in space."""

from dataclasses import dataclass

import numpy as np

from lrsa.geometry.cells import cell_edges, cut, dimensions, kinds, simplices
from lrsa.pointset import PointSet


@dataclass(frozen=True)
class Triangles:
    """(K, 3) triangles, and whether they are the boundary of a volume."""

    points: np.ndarray
    boundary: bool


def seen_axes(x: np.ndarray) -> np.ndarray:
    """The axes along which the points of a case extend."""
    extent = np.ptp(x, axis=0)
    axes = np.flatnonzero(extent > 1e-6 * max(float(extent.max()), 1e-30))
    return axes if len(axes) else np.arange(x.shape[1])


def triangles_of(case: PointSet) -> Triangles | None:
    """The triangles to draw of a case: of its surface where it has volumes; None where there are none."""
    if case.cells is None or case.cell_types is None:
        return None
    known = dimensions(case.cell_types) >= 0  # what has no known faces is not drawn
    cells, types = case.cells[known], case.cell_types[known]
    dimension = dimensions(types).max(initial=0)
    if dimension < 2:
        return None
    if dimension == 2:
        return Triangles(simplices(cells, types), False)
    return Triangles(_outer(cells, types), True)


def segments_of(case: PointSet) -> np.ndarray | None:
    """(K, 2) the segments of a case that is nothing but curves; None where it is more, or has no cells."""
    if case.cells is None or case.cell_types is None or not len(case.cells):
        return None
    if (dimensions(case.cell_types) != 1).any():
        return None
    return cell_edges(case.cells, case.cell_types).T


def _outer(cells: np.ndarray, types: np.ndarray) -> np.ndarray:
    """(K, 3) triangles of the faces that only one solid has."""
    solid = dimensions(types) == 3
    faces = [
        (nodes[:, list(face)], shape.quadratic)
        for shape, _, nodes in kinds(cells[solid], types[solid])
        for face in shape.faces
    ]
    keys = [_key(corners) for corners, _ in faces]
    _, inverse, counts = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    single = np.split(counts[inverse] == 1, np.cumsum([len(k) for k in keys])[:-1])
    return np.concatenate(
        [
            corners[one][:, list(triangle)]
            for (corners, quadratic), one in zip(faces, single, strict=True)
            for triangle in cut(range(corners.shape[1]), quadratic)
        ]
    )


def _key(faces: np.ndarray) -> np.ndarray:
    """(F, k) -> (F,): one number for each set of points."""
    key = np.full(len(faces), faces.shape[1], np.uint64)
    for column in np.sort(faces, axis=1).T.astype(np.uint64):
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key
