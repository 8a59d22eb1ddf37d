"""What of a mesh can be seen: its triangles in the plane, or the triangles of its surface in space.

Cells come without types, as rows of points filled up with -1, in VTK's order. The count of points, and where
that is not enough the geometry or the neighbours, tell what a cell is.
"""

from dataclasses import dataclass

import numpy as np

FACES: dict[int, tuple[tuple[int, ...], ...]] = {
    4: ((0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)),
    5: ((0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    6: ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    8: ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
"""Faces of tetrahedron, pyramid, wedge and hexahedron."""
CORNERS = {10: 4, 13: 5, 15: 6, 20: 8, 27: 8}
"""Quadratic volume cells: points -> corners, which come first."""


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


def triangles_of(x: np.ndarray, cells: np.ndarray | None) -> Triangles | None:
    """The triangles to draw of the cells (C, k) on points x (N, 2 or 3); None where there are none."""
    if cells is None or x.shape[1] not in (2, 3):
        return None
    counts = (cells >= 0).sum(1)
    flat, faces = [], []
    for count in np.unique(counts[counts >= 3]):
        rows = cells[counts == count][:, :count]
        if x.shape[1] == 3 and _volume(x, rows):
            rows = rows[:, : CORNERS.get(int(count), int(count))]
            faces += [rows[:, list(face)] for face in FACES[rows.shape[1]]]
        else:
            flat.append(_fan(_ring(x, rows)))
    if faces:
        return Triangles(np.concatenate([_fan(face) for face in _outer(faces)]), True)
    return Triangles(np.concatenate(flat), False) if flat else None


def _volume(x: np.ndarray, rows: np.ndarray) -> bool:
    count = rows.shape[1]
    if count == 4:
        # Neighbours in a mesh of tetrahedra share three points, in a mesh of quadrilaterals two.
        keys = _key(np.concatenate([rows[:, list(face)] for face in FACES[4]]))
        return len(np.unique(keys)) < len(keys)
    if count in (6, 8, 9):
        return not _quadratic(x, rows) and count in FACES
    return count in FACES or count in CORNERS


def _quadratic(x: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the later points of each cell are near the middles of its edges, in order."""
    corners = {6: 3, 8: 4, 9: 4}.get(rows.shape[1])
    if corners is None:
        return False
    p = x[rows[:200]]
    a, b = p[:, :corners], np.roll(p[:, :corners], -1, axis=1)
    away = np.linalg.norm(p[:, corners : 2 * corners] - (a + b) / 2, axis=-1)
    return bool(np.median(away / np.maximum(np.linalg.norm(b - a, axis=-1), 1e-30)) < 0.2)


def _ring(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The points of each plane cell in the order in which one walks around it."""
    if not _quadratic(x, rows):
        return rows
    corners = {6: 3, 8: 4, 9: 4}[rows.shape[1]]
    order = [k for i in range(corners) for k in (corners + i, (i + 1) % corners)]
    return rows[:, order]


def _fan(rows: np.ndarray) -> np.ndarray:
    """(R, k) rings -> (R · (k - 2), 3) triangles."""
    return np.concatenate([rows[:, [0, j, j + 1]] for j in range(1, rows.shape[1] - 1)])


def _outer(faces: list[np.ndarray]) -> list[np.ndarray]:
    """The faces that only one cell has."""
    keys = [_key(face) for face in faces]
    _, inverse, counts = np.unique(np.concatenate(keys), return_inverse=True, return_counts=True)
    single = np.split(counts[inverse] == 1, np.cumsum([len(k) for k in keys])[:-1])
    return [face[one] for face, one in zip(faces, single, strict=True) if one.any()]


def _key(faces: np.ndarray) -> np.ndarray:
    """(F, k) -> (F,): one number for each set of points."""
    key = np.full(len(faces), faces.shape[1], np.uint64)
    for column in np.sort(faces, axis=1).T.astype(np.uint64):
        key = (key ^ column) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key
