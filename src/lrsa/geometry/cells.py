"""VTK's cells: of each type its dimension, edges, faces and simplices, by the numbers of its points.

Whoever needs edges, faces or simplices of a mesh takes them from here, by the types that its cells carry. A
quadratic cell has the midpoints of its edges after its corners, in the order of `EDGES`; centres come last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from lrsa.errors import LrsaError

Ring = tuple[int, ...]
Edge = tuple[int, int]

TETRA = ((0, 1, 3), (1, 2, 3), (2, 0, 3), (0, 2, 1))
HEXAHEDRON = ((0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (3, 7, 6, 2), (0, 3, 2, 1), (4, 5, 6, 7))
WEDGE = ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (2, 5, 3, 0))
PYRAMID = ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4))
VOXEL = tuple(tuple((0, 1, 3, 2, 4, 5, 7, 6)[v] for v in face) for face in HEXAHEDRON)
EDGES = {
    10: ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)),
    12: ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)),
    13: ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)),
    14: ((0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)),
}


@dataclass(frozen=True)
class Shape:
    """What a cell of one type is made of."""

    name: str
    dimension: int
    points: int
    edges: tuple[Edge, ...] = ()
    faces: tuple[Ring, ...] = ()
    """The points around each face, outward; a flat cell is one face itself."""
    quadratic: bool = False
    """Whether every second point around a face is the midpoint of an edge."""
    simplices: tuple[Ring, ...] = ()
    pieces: tuple[tuple[Ring, ...], ...] = ()
    """Where neighbours have to agree on how to cut: convex solids by their faces, which `_pulled` cuts."""


def kinds(cells: np.ndarray, types: np.ndarray) -> Iterator[tuple[Shape, np.ndarray, np.ndarray]]:
    """Of each shape among the cells (C, k) of these types: itself, which cells (n,), their points (n, p)."""
    counts, width = (cells >= 0).sum(1), cells.shape[1] + 1
    codes = types.astype(np.int64) * width + counts
    for code in np.unique(codes).tolist():
        kind, count = divmod(code, width)
        mine = np.flatnonzero(codes == code)
        yield shape_of(kind, count), mine, cells[mine, :count]


def cell_edges(cells: np.ndarray, types: np.ndarray) -> np.ndarray:
    """(2, n) every edge of every cell once per cell, in one direction; of quadratic cells their halves."""
    parts = [np.zeros((2, 0), np.int64)]
    for shape, _, nodes in kinds(cells, types):
        parts.append(nodes[:, np.array(shape.edges, int).reshape(-1, 2)].reshape(-1, 2).T)
    return np.concatenate(parts, axis=1)


def simplices(cells: np.ndarray, types: np.ndarray) -> np.ndarray:
    """(n, d + 1) segments, triangles or tetrahedra that fill the cells of the highest dimension d.

    Cells of lower dimension are dropped: beside a volume, surfaces are its patches, not more of the domain.
    """
    dimension = dimensions(types)
    top = dimension == dimension.max(initial=0)
    parts = [np.zeros((0, 1 + dimension.max(initial=0)), np.int64)]
    for shape, _, nodes in kinds(cells[top], types[top]):
        parts += [nodes[:, list(simplex)] for simplex in shape.simplices]
        parts += [tetrahedra for faces in shape.pieces for tetrahedra in _pulled(nodes, faces)]
    return np.concatenate(parts)


def dimensions(types: np.ndarray) -> np.ndarray:
    """(C,) 0 to 3, and -1 where nothing is known of a type."""
    table = np.full(1 + max(255, int(types.max(initial=0))), -1)
    table[list(DIMENSIONS)] = list(DIMENSIONS.values())
    return table[types]


def type_names(types: np.ndarray) -> list[str]:
    """What the types are called, each once."""
    return [NAMES.get(kind, f"cells of VTK type {kind}") for kind in np.unique(types).tolist()]


def unknown(types: np.ndarray) -> str:
    """What the types are called of which nothing is known here; empty where all are known."""
    return ", ".join(type_names(types[dimensions(types) < 0]))


def cut(ring: Sequence[int], quadratic: bool) -> tuple[Ring, ...]:
    """A polygon as triangles: from its first point, or at each corner and between the midpoints."""
    corners: tuple[Ring, ...] = ()
    if quadratic:
        middles = ring[1::2]
        corners = tuple((middles[i - 1], ring[2 * i], middles[i]) for i in range(len(middles)))
        ring = middles
    return (*corners, *((ring[0], ring[j], ring[j + 1]) for j in range(1, len(ring) - 1)))


@cache
def shape_of(kind: int, count: int) -> Shape:
    """The shape of a VTK type with so many points."""
    chain = tuple((i, i + 1) for i in range(count - 1))
    if kind == 2:
        return Shape(NAMES[2], 0, count)
    if kind == 4:
        return Shape(NAMES[4], 1, count, chain, simplices=chain)
    if kind == 7:
        polygon = _flat(NAMES[7], tuple(range(count)))
        return polygon if count > 2 else replace(polygon, edges=chain)
    if kind not in SHAPES:
        raise LrsaError(f"{NAMES.get(kind, f'VTK type {kind}')}: nothing is known of such cells")
    if SHAPES[kind].points != count:
        shape = SHAPES[kind]
        raise LrsaError(f"{shape.name} (VTK type {kind}) have {shape.points} points, but one has {count}")
    return SHAPES[kind]


def _pulled(nodes: np.ndarray, faces: Sequence[Ring]) -> Iterator[np.ndarray]:
    """Tetrahedra of convex solids: from the point of the lowest number to the faces without it.

    These are cut from their own lowest points. So two neighbours cut the face between them the same way,
    and linear elements on the tetrahedra are continuous.
    """
    points = sorted({v for face in faces for v in face})
    lowest = nodes[:, points].argmin(1)
    for i, apex in enumerate(points):
        mine = nodes[lowest == i]
        for face in faces:
            if apex not in face:
                ring = mine[:, list(face)]
                turn = ring.argmin(1)[:, None] + np.arange(len(face))
                ring = np.take_along_axis(ring, turn % len(face), axis=1)
                for triangle in cut(range(len(face)), False):
                    yield np.column_stack([mine[:, apex], ring[:, list(triangle)]])


def _pairs(ring: Sequence[int]) -> tuple[Edge, ...]:
    return tuple(zip(ring, (*ring[1:], *ring[:1]), strict=True))


def _flat(name: str, ring: Ring, quadratic: bool = False, centre: int | None = None) -> Shape:
    if centre is None:
        return Shape(name, 2, len(ring), _pairs(ring), (ring,), quadratic, cut(ring, quadratic))
    edges = (*_pairs(ring), *((centre, v) for v in ring[1::2]))
    around = tuple((*pair, centre) for pair in _pairs(ring))
    return Shape(name, 2, len(ring) + 1, edges, (ring,), quadratic, around)


def _solid(name: str, faces: tuple[Ring, ...]) -> Shape:
    edges = tuple(dict.fromkeys((min(e), max(e)) for face in faces for e in _pairs(face)))
    return Shape(name, 3, 1 + max(map(max, faces)), edges, faces, pieces=(faces,))


def _quadratic(name: str, linear: Shape, order: Sequence[Edge]) -> Shape:
    """The solid with midpoints: of its pieces, one is at each corner, and one is that of the midpoints."""
    middle = {frozenset(edge): linear.points + i for i, edge in enumerate(order)}
    faces = tuple(
        tuple(v for a, b in _pairs(face) for v in (a, middle[frozenset((a, b))])) for face in linear.faces
    )
    halves = tuple((v, m) for edge, m in middle.items() for v in sorted(edge))
    figures = [_figure(corner, faces) for corner in range(linear.points)]
    tips = [(ring, *((*pair, corner) for pair in _pairs(ring))) for corner, ring in enumerate(figures)]
    core = (*figures, *(face[1::2] for face in faces))
    return Shape(name, 3, linear.points + len(order), halves, faces, True, pieces=(*tips, core))


def _figure(corner: int, faces: Sequence[Ring]) -> Ring:
    """The points next to a corner, in order around it: in each face one goes before it and one after."""
    at = [(face, face.index(corner)) for face in faces if corner in face]
    after = {face[i - 1]: face[(i + 1) % len(face)] for face, i in at}
    ring = [next(iter(after))]
    while len(ring) < len(after):
        ring.append(after[ring[-1]])
    return tuple(ring)


def _triquadratic(name: str, quadratic: Shape) -> Shape:
    """The quadratic hexahedron with a centre in each face, and one inside."""
    centres = [(quadratic.points + i, face) for i, face in enumerate(quadratic.faces)]
    inside = quadratic.points + len(centres)
    edges = [(c, v) for c, face in centres for v in face[1::2]] + [(inside, c) for c, _ in centres]
    parts = tuple((*pair, c, inside) for c, face in centres for pair in _pairs(face))
    return Shape(name, 3, inside + 1, (*quadratic.edges, *edges), quadratic.faces, True, parts)


SHAPES = {
    0: Shape("empty cells", 0, 0),
    1: Shape("vertices", 0, 1),
    3: Shape("lines", 1, 2, ((0, 1),), simplices=((0, 1),)),
    5: _flat("triangles", (0, 1, 2)),
    8: _flat("pixels", (0, 1, 3, 2)),
    9: _flat("quadrilaterals", (0, 1, 2, 3)),
    10: Shape("tetrahedra", 3, 4, EDGES[10], TETRA, simplices=((0, 1, 2, 3),)),
    11: _solid("voxels", VOXEL),
    12: _solid("hexahedra", HEXAHEDRON),
    13: _solid("wedges", WEDGE),
    14: _solid("pyramids", PYRAMID),
    21: Shape("quadratic lines", 1, 3, ((0, 2), (2, 1)), simplices=((0, 2), (2, 1))),
    22: _flat("quadratic triangles", (0, 3, 1, 4, 2, 5), True),
    23: _flat("quadratic quadrilaterals", (0, 4, 1, 5, 2, 6, 3, 7), True),
    28: _flat("biquadratic quadrilaterals", (0, 4, 1, 5, 2, 6, 3, 7), True, centre=8),
    34: _flat("biquadratic triangles", (0, 3, 1, 4, 2, 5), True, centre=6),
}
SHAPES |= {
    new: _quadratic(f"quadratic {SHAPES[old].name}", SHAPES[old], EDGES[old])
    for new, old in ((24, 10), (25, 12), (26, 13), (27, 14))
}
SHAPES |= {29: _triquadratic("triquadratic hexahedra", SHAPES[25])}
"""Of VTK's types, those that have always as many points."""
NAMES = {kind: shape.name for kind, shape in SHAPES.items()}
NAMES |= {2: "sets of points", 4: "polylines", 7: "polygons", 42: "polyhedra", 255: "cells without a type"}
DIMENSIONS = {kind: shape.dimension for kind, shape in SHAPES.items()} | {2: 0, 4: 1, 7: 2}
