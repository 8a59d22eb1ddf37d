"""Geometry that follows from the cells: measures, the surface, outward normals, the distance to the surface.

The domain is what the cells of the highest dimension fill. Its surface is made of the cells one dimension
lower where the file has some (a body's patch beside a volume), else of the facets that belong to one cell
only; a mesh of surfaces in space is all surface. Faces that are not flat are cut around their centre, the
same from both sides, so that cell measures add up to the measure of the domain. Points that coincide are
one point here: blocks that meet have no surface between them.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.cells import Shape, cell_edges, dimensions, kinds, unknown
from lrsa.geometry.distances import distance_to
from lrsa.mesh.polyhedra import POLYHEDRON, volumes
from lrsa.mesh.roles import RawCase
from lrsa.pointset import PointSet, cell_types_of

FLAT = 1e-9


class Geometry:
    """What the cells of a case say about its points (`at="point"`) or about its cells (`at="cell"`)."""

    def __init__(self, raw: RawCase, at: str = "point") -> None:
        if raw.cells is None or raw.cell_types is None or not len(raw.cells):
            raise LrsaError(f"{raw.path} has no cells, so nothing can be derived. Leave out --derive")
        polyhedra = (raw.cell_types == POLYHEDRON) & (raw.faces is not None)
        if names := unknown(raw.cell_types[~polyhedra]):
            raise LrsaError(f"{raw.path} has {names}, of which nothing can be derived. Leave out --derive")
        self.raw, self.at = raw, at
        self.axes = raw.points.shape[1]
        self.points = np.pad(raw.points, ((0, 0), (0, 3 - self.axes)))
        self.cells, self.types = raw.cells, raw.cell_types
        self.dimensions = np.where(polyhedra, 3, dimensions(self.types))
        self._polyhedra = polyhedra
        self.dimension = int(self.dimensions.max())
        if not self.dimension:
            raise LrsaError(f"{raw.path} has points for cells, so nothing can be derived. Leave out --derive")

    def measure(self) -> np.ndarray:
        """(n,) length, area or volume of each cell, or of each point: its share of its cells."""
        sizes = np.zeros(len(self.cells))
        solid = np.flatnonzero((self.dimensions == self.dimension) & ~self._polyhedra)
        for shape, mine, nodes in kinds(self.cells[solid], self.types[solid]):
            sizes[solid[mine]] = self._sizes(shape, nodes)
        if self.raw.faces is not None:
            sizes += volumes(self.points, self._centres, *self.raw.faces)
        if self.at == "cell":
            return sizes
        there = self.cells >= 0
        shares = np.broadcast_to((sizes / np.maximum(there.sum(1), 1))[:, None], there.shape)
        return np.bincount(self.cells[there], weights=shares[there], minlength=len(self.points))

    def surface(self) -> np.ndarray:
        """(n,) bool: points of the surface, or cells that have a facet on it."""
        if self.at == "cell":
            flags = np.zeros(len(self.cells), bool)
            flags[self.facets.owners[self.facets.owners >= 0]] = True
            return flags
        return np.isin(self._same, self._same[self.facets.corners[self.facets.corners >= 0]])

    def normals(self) -> np.ndarray:
        """(n, p) mean outward normal of the facets at each point (cell), of length 1; 0 off the surface."""
        facets = self.facets
        if self.at == "cell":
            index, normals = facets.owners[:, None], facets.normals[:, None]
            there = index >= 0
        else:
            there = facets.corners >= 0
            index = np.where(there, self._same[facets.corners], 0)
            normals = np.broadcast_to(facets.normals[:, None], (*index.shape, 3))
        n = len(self.cells) if self.at == "cell" else len(self.points)
        summed = np.stack([np.bincount(index[there], normals[there][:, a], n) for a in range(3)], axis=1)
        summed = summed if self.at == "cell" else summed[self._same]
        length = np.linalg.norm(summed, axis=1, keepdims=True)
        largest = np.linalg.norm(facets.normals, axis=1).max(initial=0.0)
        return np.divide(summed, length, out=np.zeros_like(summed), where=length > 1e-12 * largest)[
            :, : self.axes
        ]

    def distance(self) -> np.ndarray:
        """(n,) exact distance to the nearest facet of the surface."""
        here = self._centres if self.at == "cell" else self.points
        flags = self.surface() if self.at == "point" else np.zeros(len(here), bool)
        if self.facets.everything:
            return np.zeros(len(here))
        away = np.zeros(len(here))
        away[~flags] = distance_to(here[~flags], self.facets.pieces(self.points))
        return away

    @cached_property
    def facets(self) -> "Facets":
        """The surface."""
        if self.dimension == 1:
            raise LrsaError(f"{self.raw.path} has lines only, which have no surface. Leave out --derive")
        solid = np.flatnonzero(self.dimensions == self.dimension)
        if self.dimension == 2 and not self._flat:
            corners = self._rings(solid)
            normals = _area_vectors(self.points, corners)
            away = _means(self.points, corners) - self.points.mean(0)
            outward = np.sign((normals * away).sum()) or 1.0
            return Facets(corners, normals * outward, solid, everything=True)
        corners, owners = self._edges(solid) if self.dimension == 2 else self._faces(solid)
        keys = _keys(self._same, corners)
        given = np.flatnonzero(self.dimensions == self.dimension - 1)
        _, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
        if len(given):
            lines = self.dimension == 2
            mine = cell_edges(self.cells[given], self.types[given]).T if lines else self._rings(given)
            width = max(corners.shape[1], mine.shape[1])
            wanted = {tuple(k) for k in _keys(self._same, _widened(mine, width)).tolist()}
            keys = _keys(self._same, _widened(corners, width))
            known = np.array([tuple(k) in wanted for k in keys.tolist()])
            chosen = np.flatnonzero(known)
            if len(chosen) < len(mine):  # a patch whose points are not those of the volume has no owner
                nobody = np.full(len(mine), -1)
                return Facets(mine, self._outward(mine, nobody), nobody)
        else:
            chosen = first[counts == 1]
        corners, owners = corners[np.sort(chosen)], owners[np.sort(chosen)]
        return Facets(corners, self._outward(corners, owners), owners)

    @cached_property
    def _same(self) -> np.ndarray:
        """(N,) the first of the points that coincide with each."""
        _, first, inverse = np.unique(self.points, axis=0, return_index=True, return_inverse=True)
        return first[inverse.ravel()]

    @cached_property
    def _centres(self) -> np.ndarray:
        return _means(self.points, self.cells)

    @cached_property
    def _plane(self) -> tuple[np.ndarray, np.ndarray]:
        """Singular values of the centred points, and the direction in which they spread least."""
        _, spread, axes = np.linalg.svd(self.points - self.points.mean(0), full_matrices=False)
        return spread, axes[-1]

    @property
    def _flat(self) -> bool:
        spread, _ = self._plane
        return bool(spread[-1] <= FLAT * spread[0])

    def _sizes(self, shape: Shape, nodes: np.ndarray) -> np.ndarray:
        if shape.dimension == 1:
            ends = self.points[nodes[:, list(shape.edges)]]  # (n, edges, 2, 3)
            return np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=-1).sum(1)
        if shape.dimension == 2:
            return np.linalg.norm(_area_vectors(self.points, nodes[:, list(shape.faces[0])]), axis=1)
        inside = _means(self.points, nodes)
        volume = np.zeros(len(nodes))
        for face in shape.faces:
            ring = self.points[nodes[:, list(face)]] - inside[:, None]
            middle = ring.mean(1)
            volume += (np.cross(ring, np.roll(ring, -1, axis=1)).sum(1) * middle).sum(1) / 6
        return np.abs(volume)

    def _rings(self, chosen: np.ndarray) -> np.ndarray:
        """(n, k) corners in order of flat cells, filled up with -1."""
        rings = np.full((len(chosen), self.cells.shape[1]), -1)
        for shape, mine, nodes in kinds(self.cells[chosen], self.types[chosen]):
            (ring,) = shape.faces
            rings[mine, : len(ring)] = nodes[:, list(ring)]
        return rings[:, : max(3, int((rings >= 0).sum(1).max()))]

    def _edges(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rings = self._rings(chosen)
        count = (rings >= 0).sum(1, keepdims=True)
        after = np.take_along_axis(rings, (np.arange(rings.shape[1]) + 1) % count, axis=1)
        there = rings >= 0
        owners = np.broadcast_to(chosen[:, None], rings.shape)
        return np.stack([rings[there], after[there]], axis=1), owners[there]

    def _faces(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        corners, owners = [], []
        if self.raw.faces is not None:
            corners.append(self.raw.faces[0])
            owners.append(self.raw.faces[1])
        chosen = chosen[~self._polyhedra[chosen]]
        for shape, mine, nodes in kinds(self.cells[chosen], self.types[chosen]):
            for face in shape.faces:
                corners.append(nodes[:, list(face)])
                owners.append(chosen[mine])
        width = max(part.shape[1] for part in corners)
        return np.concatenate([_widened(part, width) for part in corners]), np.concatenate(owners)

    def _outward(self, corners: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """(F, 3) normals as long as the facets are large, away from their owners."""
        if self.dimension == 2:
            along = self.points[corners[:, 1]] - self.points[corners[:, 0]]
            normals = np.cross(along, self._plane[1])
        else:
            normals = _area_vectors(self.points, corners)
        inside = np.where((owners >= 0)[:, None], self._centres[owners], self.points.mean(0))
        away = ((_means(self.points, corners) - inside) * normals).sum(1)
        return np.where((away < 0)[:, None], -normals, normals)


def point_measures(case: PointSet) -> np.ndarray:
    """(N,) float32: the measure of every point of a case with cells, its quadrature weight."""
    raw = _raw_of(case)
    assert raw is not None
    return Geometry(raw).measure().astype(np.float32)


def _raw_of(case: PointSet) -> RawCase | None:
    """A case as if read from a file: with its cells, or those between the points of its grid."""
    cells, types = case.cells, case.cell_types
    if cells is None:
        cells = _grid_cells(case.grid)
        types = None if cells is None else cell_types_of(case.x, cells)
    return None if cells is None else RawCase(Path("the case"), case.x.astype(float), {}, {}, cells, types)


def body_facets(case: PointSet) -> tuple[np.ndarray, np.ndarray] | None:
    """Corners (F, k) and area vectors (F, p), out of the body, of the surface of a case; None without cells.

    The body is beside a domain of cells, and inside of a surface in space or a curve in the plane. Cases at
    the centres of cells have neither; there every point is a piece, by its normal (an input) and its measure.
    """
    raw = _raw_of(case)
    if raw is None:
        return _pieces_at_points(case)
    geometry = Geometry(raw)
    if geometry.dimension == 1:
        return _curve(geometry)
    facets = geometry.facets
    if facets.everything:
        return facets.corners, facets.normals[:, : geometry.axes]
    return _own_corners(geometry, facets), -facets.normals[:, : geometry.axes]


def _own_corners(geometry: Geometry, facets: "Facets") -> np.ndarray:
    """The corners of facets; where cells of a patch lie on them, its own, where its fields are known."""
    given = np.flatnonzero(geometry.dimensions == geometry.dimension - 1)
    if not len(given):
        return facets.corners
    cells, types = geometry.cells[given], geometry.types[given]
    mine = cell_edges(cells, types).T if geometry.dimension == 2 else geometry._rings(given)
    width = max(mine.shape[1], facets.corners.shape[1])
    mine, corners = _widened(mine, width), _widened(facets.corners, width)
    rings = dict(zip(map(tuple, _keys(geometry._same, mine).tolist()), mine, strict=True))
    keys = map(tuple, _keys(geometry._same, corners).tolist())
    return np.stack([rings.get(key, ring) for key, ring in zip(keys, corners, strict=True)])


def _curve(geometry: Geometry) -> tuple[np.ndarray, np.ndarray]:
    """The segments of a curve in the plane, seen from its inside."""
    if geometry.axes > 2 and np.ptp(geometry.points[:, 2]) > 0:
        raise LrsaError("a curve in space bounds no body: forces need a surface")
    corners = cell_edges(geometry.cells, geometry.types).T
    along = geometry.points[corners[:, 1]] - geometry.points[corners[:, 0]]
    vectors = np.stack([-along[:, 1], along[:, 0], np.zeros(len(along))], axis=1)[:, : geometry.axes]
    away = _means(geometry.points, corners)[:, : geometry.axes] - geometry.points.mean(0)[: geometry.axes]
    return corners, vectors * (np.sign((vectors * away).sum()) or 1.0)


def _grid_cells(grid: tuple[int, ...] | None) -> np.ndarray | None:
    """(C, 4) or (C, 8) the cells between the points of a structured grid of two or three axes."""
    if grid is None or len(grid) not in (2, 3) or min(grid) < 2:
        return None
    index = np.arange(int(np.prod(grid))).reshape(grid)
    corner = ((0, 0), (1, 0), (1, 1), (0, 1))
    ends = [slice(None, -1), slice(1, None)]
    flat = [[index[ends[a], ends[b]] for a, b in corner]]
    if len(grid) == 3:
        flat = [[index[ends[a], ends[b], ends[c]] for a, b in corner] for c in (0, 1)]
    return np.stack([part.ravel() for layer in flat for part in layer], axis=1)


def _pieces_at_points(case: PointSet) -> tuple[np.ndarray, np.ndarray] | None:
    names = [f"normal_{axis}" for axis in "xyz"[: case.x.shape[1]]]
    if case.weights is None or case.f is None or any(name not in case.names.inputs for name in names):
        return None
    normals = case.f[:, [case.names.inputs.index(name) for name in names]].astype(float)
    if not normals.any(1).all():  # a volume, whose measures are no areas
        return None
    return np.arange(len(case))[:, None], normals * case.weights[:, None]


@dataclass(frozen=True)
class Facets:
    """The facets of a surface."""

    corners: np.ndarray
    """(F, k) points in order around each, filled up with -1; k = 2: edges."""
    normals: np.ndarray
    """(F, 3) outward, as long as the facet is large."""
    owners: np.ndarray
    """(F,) the cell behind each, -1 where there is none."""
    everything: bool = False
    """Whether the domain is nothing but this surface."""

    def pieces(self, points: np.ndarray) -> np.ndarray:
        """(n, 2, 3) segments or (n, 3, 3) triangles; a facet of more corners is cut around its centre."""
        if self.corners.shape[1] == 2:
            return points[self.corners]
        counts = (self.corners >= 0).sum(1)
        cut = [points[self.corners[counts == 3, :3]]]
        for count in np.unique(counts[counts > 3]):
            ring = points[self.corners[counts == count, :count]]
            middle = np.broadcast_to(ring.mean(1, keepdims=True), ring.shape)
            cut.append(np.stack([ring, np.roll(ring, -1, axis=1), middle], axis=2).reshape(-1, 3, 3))
        return np.concatenate(cut)


def _area_vectors(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(n, 3) half the sum of cross products around each polygon: exact for flat ones, convex or not."""
    first = corners[:, :1]
    if corners.shape[1] == 3:
        a, b, c = (points[corners[:, i]] for i in range(3))
        return 0.5 * np.cross(b - a, c - a)
    ring = points[np.where(corners >= 0, corners, first)] - points[first]
    return 0.5 * np.cross(ring, np.roll(ring, -1, axis=1)).sum(1)


def _means(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    there = corners >= 0
    return (points[corners] * there[..., None]).sum(1) / np.maximum(there.sum(1, keepdims=True), 1)


def _keys(same: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(F, k) the corners of each facet in ascending order: the same from both sides."""
    return np.sort(np.where(corners >= 0, same[corners], -1), axis=1)


def _widened(corners: np.ndarray, width: int) -> np.ndarray:
    return np.pad(corners, ((0, 0), (0, width - corners.shape[1])), constant_values=-1)
