"""A twisted gear of six teeth as tetrahedra, of our own making, in the size of the published part.

Its cross-section is six rings of nodes around a bore, 186 nodes and 300 triangles like the published face;
the outermost ring follows the teeth. 38 turned copies of it, nearer to each other towards z = 0, are joined
by prisms, each cut into three tetrahedra. A node in the middle of 131 of them brings the gear to 7199.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

RINGS = (12, 18, 24, 30, 42, 60)
"""Nodes of each ring, from the bore outwards."""
BORE, OUTSIDE, TEETH, TOOTH = 5.0, 19.32, 6, 4.3
"""Radius of the bore and of the tips, number of teeth and their depth, mm."""
HEIGHT, TWIST, LAYERS, NODES = 50.0, np.pi / 6, 38, 7199
FINER = 0.5
"""How much thinner the layer at z = 0 is than a mean one; the last one is as much thicker."""


@dataclass(frozen=True)
class Mesh:
    """Tetrahedra whose first nodes are the face z = 0."""

    points: np.ndarray
    """(N, 3) mm."""
    tetrahedra: np.ndarray
    """(E, 4)."""
    triangles: np.ndarray
    """(F, 3) of the face."""

    @property
    def face(self) -> np.ndarray:
        """(n, 3) the nodes of the face."""
        return self.points[: self.triangles.max() + 1]

    def face_areas(self) -> np.ndarray:
        """(n,) the share of every node of the face in its area, mm²."""
        return areas_at(self.face, self.triangles)


@cache
def gear(finer: int = 1) -> Mesh:
    """The gear; with rings and layers divided into `finer` parts it has as many times smaller elements."""
    face, triangles = cross_section(finer)
    heights = HEIGHT * _graded(np.linspace(0, 1, finer * (LAYERS - 1) + 1))
    points, tetrahedra = extruded(face, triangles, heights, TWIST * heights / HEIGHT)
    if finer == 1:
        points, tetrahedra = _with_centres(points, tetrahedra, NODES - len(points))
    return Mesh(points, tetrahedra, triangles)


def cross_section(finer: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) nodes and (F, 3) triangles, counterclockwise."""
    steps = np.arange(finer * (len(RINGS) - 1) + 1) / finer
    counts = [round(float(v)) * finer for v in np.interp(steps, np.arange(len(RINGS)), RINGS)]
    radii = steps / (len(RINGS) - 1)
    rings = [_ring(share, count) for share, count in zip(radii, counts, strict=True)]
    first = np.cumsum([0, *counts])
    joined = [_between(*counts[i : i + 2], *first[i : i + 2]) for i in range(len(counts) - 1)]
    return np.concatenate(rings), np.concatenate(joined)


def extruded(
    face: np.ndarray, triangles: np.ndarray, heights: np.ndarray, angles: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(N, 3) nodes and (E, 4) tetrahedra of a cross-section at these heights, turned by these angles.

    The prism of a triangle a < b < c and of A, B, C above it is cut into abcC, abBC and aABC: on each side
    the diagonal goes up from the smaller node, so that neighbours agree on it.
    """
    turned = (face[:, 0] + 1j * face[:, 1]) * np.exp(1j * angles)[:, None]
    z = np.broadcast_to(heights[:, None], turned.shape)
    points = np.stack([turned.real, turned.imag, z], axis=-1).reshape(-1, 3)
    a, b, c = np.sort(triangles, axis=1).T
    above = len(face)
    slab = np.stack(
        [
            np.stack([a, b, c, c + above], axis=1),
            np.stack([a, b, b + above, c + above], axis=1),
            np.stack([a, a + above, b + above, c + above], axis=1),
        ],
        axis=1,
    ).reshape(-1, 4)
    layers = above * np.arange(len(heights) - 1)
    return points, _right_handed(points, (layers[:, None, None] + slab).reshape(-1, 4))


def areas_at(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """(n,) a third of the area of the triangles around every node."""
    a, b, c = (points[corner] for corner in triangles.T)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
    return np.bincount(triangles.ravel(), np.repeat(area / 3, 3), len(points))


def _ring(share: float, count: int) -> np.ndarray:
    """(count, 2) nodes so far between the bore and the teeth."""
    angle = 2 * np.pi * np.arange(count) / count
    wave = np.tanh(2 * np.cos(TEETH * angle)) / np.tanh(2.0)
    rim = OUTSIDE - TOOTH * (1 - wave) / 2
    radius = BORE + share * (rim - BORE)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _between(inner: int, outer: int, first: int, second: int) -> np.ndarray:
    """(inner + outer, 3) triangles between two rings: the one whose next node comes first goes on."""
    made, i, j = [], 0, 0
    while i < inner or j < outer:
        here, there = first + i % inner, second + j % outer
        # In whole numbers, so that equal angles are equal: the outer ring goes first.
        if j < outer and (i == inner or (2 * j + 1) * inner <= (2 * i + 1) * outer):
            j += 1
            made.append((here, there, second + j % outer))
        else:
            i += 1
            made.append((here, there, first + i % inner))
    return np.array(made)


def _graded(s: np.ndarray) -> np.ndarray:
    return s * (1 - FINER + FINER * s)


def _with_centres(points: np.ndarray, tetrahedra: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A node in the middle of so many tetrahedra, evenly spread over their list; each becomes four."""
    split = np.arange(count) * len(tetrahedra) // count
    whole = np.delete(tetrahedra, split, axis=0)
    corners, centres = tetrahedra[split], len(points) + np.arange(count)
    parts = [corners.copy() for _ in range(4)]
    for k, part in enumerate(parts):
        part[:, k] = centres
    return np.concatenate([points, points[corners].mean(1)]), np.concatenate([whole, *parts])


def _right_handed(points: np.ndarray, tetrahedra: np.ndarray) -> np.ndarray:
    a, *others = (points[corner] for corner in tetrahedra.T)
    negative = np.linalg.det(np.stack([p - a for p in others], axis=1)) < 0
    tetrahedra[negative] = tetrahedra[negative][:, [0, 2, 1, 3]]
    return tetrahedra
