"""VTK's cells: which points make their faces and edges, and which of them lie flat."""

from collections.abc import Sequence

import numpy as np

FLAT = 0.05
"""Cells of four points in space are quadrilaterals where 6 V / L³ is below this (regular tetrahedra: 0.7)."""

TETRA = ((0, 1, 3), (1, 2, 3), (2, 0, 3), (0, 2, 1))
HEXAHEDRON = ((0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (3, 7, 6, 2), (0, 3, 2, 1), (4, 5, 6, 7))
WEDGE = ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0))
PYRAMID = ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4))
EDGES = {
    10: ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
    12: ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)),
    13: ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
    14: ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
}
"""Edges of the solids in the order in which quadratic cells list their midpoints."""


def _quadratic(
    faces: Sequence[tuple[int, ...]], edges: Sequence[tuple[int, int]]
) -> tuple[tuple[int, ...], ...]:
    """The faces with the midpoint after each corner."""
    corners = 1 + max(max(edge) for edge in edges)
    middle = {frozenset(edge): corners + i for i, edge in enumerate(edges)}
    return tuple(
        tuple(
            v for a, b in zip(face, (*face[1:], face[0]), strict=True) for v in (a, middle[frozenset((a, b))])
        )
        for face in faces
    )


FACES = {10: TETRA, 12: HEXAHEDRON, 13: WEDGE, 14: PYRAMID}
FACES |= {new: _quadratic(FACES[old], EDGES[old]) for new, old in ((24, 10), (25, 12), (26, 13), (27, 14))}
"""Faces of VTK's solids, outward: tetrahedron, hexahedron, wedge, pyramid, and their quadratic kin."""
RINGS = {5: (0, 1, 2), 9: (0, 1, 2, 3), 22: (0, 3, 1, 4, 2, 5), 23: (0, 4, 1, 5, 2, 6, 3, 7)}
RINGS |= {28: RINGS[23], 34: RINGS[22]}
"""Boundary of VTK's flat cells; a polygon (7) has its points in order."""
LINES = {3: (0, 1), 21: (0, 1)}
DIMENSIONS = {**dict.fromkeys((1, 2), 0), **dict.fromkeys(LINES, 1), **dict.fromkeys((*RINGS, 7), 2)}
DIMENSIONS |= dict.fromkeys(FACES, 3)


def around(cells: np.ndarray, types: np.ndarray) -> np.ndarray:
    """The cells (C, k) of these VTK types, the points of flat ones along their boundary, without centres."""
    ordered = np.array(cells)
    for kind in set(RINGS) & set(np.unique(types).tolist()):
        mine, ring = types == kind, list(RINGS[kind])
        ordered[mine] = -1
        ordered[mine, : len(ring)] = cells[mine][:, ring]
    return ordered


def are_flat(corners: np.ndarray) -> bool:
    """Whether most of these cells of four points (C, 4, 3) are quadrilaterals, not tetrahedra."""
    edges = corners[:, 1:] - corners[:, :1]
    longest = np.linalg.norm(edges, axis=-1).max(axis=1)
    return bool(np.median(np.abs(np.linalg.det(edges)) / np.maximum(longest, 1e-300) ** 3) < FLAT)
