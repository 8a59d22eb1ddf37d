"""The mesh of a case as VTK's, and what of it is drawn: warped, cut, thresholded, its surface."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from lrsa.geometry.cells import dimensions
from lrsa.pointset import PointSet
from lrsa.report.axes import upward
from lrsa.report.triangles import seen_axes

VALUE, BY, INDEX, BODY = "value", "by", "index", "body"
"""The drawn array; what the threshold is about; the number of each point; 1 on the body."""
VERTEX = 1
"""VTK's type of a cell that is one point."""
DISCS, CORNERS = 20_000, 8
"""A flat cloud of up to so many points is drawn as discs, of so many corners, that zoom with it."""
FAR = 8
"""A body in a plane is looked at from nearby where the domain is so many times as large."""
CUBE = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
"""Corners of a hexahedron in VTK's order; the first four, or two, of them are those of a cell below."""


@dataclass(frozen=True)
class Clip:
    """Half of a mesh: what lies below a place along an axis, or above it."""

    axis: int
    place: float
    above: bool = False


@dataclass(frozen=True)
class Look:
    """What is done to a mesh before it is drawn."""

    clips: tuple[Clip, ...] = ()
    threshold: tuple[float, float] | None = None
    """Only cells with values between these."""
    body: bool = False
    """Only the faces of the body, neither the volume nor the points around it."""

    def and_clip(self, clip: Clip) -> "Look":
        return replace(self, clips=(*self.clips, clip))


@dataclass(frozen=True)
class Shape:
    """The geometry of a case."""

    case: PointSet
    _cut: dict[Any, tuple[Any, np.ndarray]] = field(default_factory=dict)

    @property
    def axes(self) -> np.ndarray:
        """Those along which the points extend."""
        return seen_axes(self.case.x)

    @property
    def flat(self) -> bool:
        """Whether it is seen as a picture, not as a body."""
        return len(self.axes) < 3

    @cached_property
    def points(self) -> np.ndarray:
        """(N, 3) float32; a plane lies in x and y, whichever its axes were."""
        return placed(self.case.x, self.axes)

    @cached_property
    def mesh(self) -> Any:
        """The cells between the points, and the points that are in none by themselves."""
        import pyvista

        cells, types = cells_of(self.case)
        counted = np.column_stack([(cells >= 0).sum(1), cells])
        loose = np.flatnonzero(self.loose)
        alone = np.column_stack([np.ones_like(loose), loose])
        flat = np.concatenate([counted[counted >= 0], alone.ravel()])
        types = np.concatenate([types, np.full(len(loose), VERTEX, types.dtype)])
        return pyvista.UnstructuredGrid(flat, types, self.points)

    @cached_property
    def loose(self) -> np.ndarray:
        """(N,) bool: the points that are in no cell, around a body of which only the surface is a mesh."""
        cells, _ = cells_of(self.case)
        loose = np.ones(len(self.case), bool)
        loose[cells[cells >= 0]] = False
        return loose

    @cached_property
    def up(self) -> int:
        """The axis that points upwards: named by the data, or found by symmetry."""
        names = self.case.names
        if self.flat or names.up in names.coords:
            return 2 if self.flat else names.coords.index(names.up)
        return upward(self.points[~self.loose])

    @property
    def has_cells(self) -> bool:
        return self.mesh.GetCellType(0) != VERTEX

    @property
    def volume(self) -> bool:
        return bool(dimensions(self.mesh.celltypes).max(initial=0) == 3)

    @property
    def has_body(self) -> bool:
        """Whether the body can be told from the domain around it."""
        known = self.case.surface is not None and bool(self.case.surface.any())
        return self.has_cells and (bool(self.loose.any()) or (self.volume and known))

    def bounds(self, body: bool = False) -> np.ndarray:
        """(3, 2) of what is worth looking at: a body that is a speck in its domain, and what is around it."""
        if body and self.has_body:
            return _box(self.points[self.index(True)])
        whole = _box(self.points)
        if not self.flat or self.case.surface is None or not self.case.surface.any():
            return whole
        speck = self.points[self.case.surface]
        size = float(np.ptp(speck, axis=0).max())
        if not 0 < size < np.ptp(whole, axis=1).max() / FAR:
            return whole
        middle = (speck.min(0) + speck.max(0)) / 2
        return np.stack([middle - 1.5 * size, middle + 1.5 * size], axis=1)

    def index(self, body: bool) -> np.ndarray:
        """The points that are on the surface to draw; some of them several times."""
        return self._surface(body)[1]

    def drawn(
        self, values: np.ndarray, look: Look, points: np.ndarray | None = None, by: np.ndarray | None = None
    ) -> Any:
        """The surface to draw, with values (N,) on it; unknown ones are NaN and not drawn.

        `points` (N, 3) are other places of the points; a threshold is about `by` (N,), or the values.
        """
        plain = not look.clips and look.threshold is None and np.isfinite(values).all()
        if plain and points is None:
            surface, index = self._surface(look.body)
        else:
            surface, index = self._made(values, look, points, values if by is None else by)
        made = surface.copy(deep=False)  # arrays that the browser has already are not sent again
        if index is not None:
            made.point_data[VALUE] = np.ascontiguousarray(values[index], np.float32)
        if made.n_points:
            made.set_active_scalars(VALUE)
        return made

    def _surface(self, body: bool) -> tuple[Any, np.ndarray]:
        """That of the whole mesh, and which of the points are on it."""
        if body not in self._cut:
            surface = self._faces(self._grid(None), body)
            index = np.asarray(surface.point_data[INDEX])
            surface.clear_data()
            self._cut[body] = surface, index
        return self._cut[body]

    def _made(
        self, values: np.ndarray, look: Look, points: np.ndarray | None, by: np.ndarray
    ) -> tuple[Any, None]:
        grid = self._grid(points)
        grid.point_data[VALUE] = values.astype(np.float32)
        largest = float(np.finfo(np.float32).max)
        if not np.isfinite(values).all():
            grid = grid.threshold((-largest, largest), scalars=VALUE, all_scalars=True)
        if look.threshold is not None and grid.n_points:
            grid.point_data[BY] = by.astype(np.float32)[grid.point_data[INDEX]]
            grid = grid.threshold(look.threshold, scalars=BY, all_scalars=True)
        for clip in look.clips:
            if grid.n_points:
                normal, origin = np.eye(3)[clip.axis], np.eye(3)[clip.axis] * clip.place
                grid = grid.clip(normal, origin=origin, invert=not clip.above)
        return self._faces(grid, look.body), None

    def _grid(self, points: np.ndarray | None) -> Any:
        """The mesh with the number of each point, and whether it is on the body."""
        grid = self.mesh.copy(deep=False)
        if points is not None:
            grid.points = points
        grid.point_data[INDEX] = np.arange(len(self.case))
        if self.case.surface is not None:
            grid.point_data[BODY] = self.case.surface.astype(np.float32)  # a plane cuts between 0 and 1
        return grid

    def _faces(self, grid: Any, body: bool) -> Any:
        if not grid.n_points:
            return _outside(grid)
        body = body and self.has_body
        if body and self.loose.any():
            grid = grid.extract_cells(grid.celltypes != VERTEX)
        surface = _outside(grid)
        if body and self.volume and BODY in surface.point_data:
            kept = surface.extract_points(surface.point_data[BODY] > 1 - 1e-6, adjacent_cells=False)
            surface = _outside(kept) if kept.n_cells else surface
        alone = surface.n_verts == surface.n_cells
        return self._discs(surface) if alone and self.flat and len(self.case) <= DISCS else surface

    def _discs(self, dots: Any) -> Any:
        """Every point as a disc that reaches half the way to its neighbours."""
        import pyvista

        turn = 2 * np.pi * np.arange(CORNERS) / CORNERS
        ring = np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        reach = self._reach[dots.point_data[INDEX]]
        corners = np.asarray(dots.points)[:, None] + reach[:, None, None] * ring  # (n, CORNERS, 3)
        faces = np.arange(corners.size // 3).reshape(-1, CORNERS)
        counted = np.column_stack([np.full(len(faces), CORNERS), faces])
        made = pyvista.PolyData(corners.reshape(-1, 3).astype(np.float32), faces=counted.ravel())
        for name in dots.point_data:
            made.point_data[name] = np.repeat(np.asarray(dots.point_data[name]), CORNERS)
        return made

    @cached_property
    def _reach(self) -> np.ndarray:
        """(N,) half the mean distance to the three nearest points."""
        near = min(4, len(self.points))
        distance = KDTree(self.points).query(self.points, near)[0].reshape(len(self.points), near)
        mean = distance[:, 1:].mean(axis=1) if near > 1 else np.zeros(len(self.points))
        return np.maximum(mean, 1e-6 * float(np.ptp(self.points))) / 2


def _box(points: np.ndarray) -> np.ndarray:
    """(3, 2) from where to where points (n, 3) go along each axis."""
    return np.stack([points.min(0), points.max(0)], axis=1).astype(float)


def placed(x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(N, p) coordinates as (N, 3) float32."""
    columns = x if x.shape[1] == 3 and len(axes) == 3 else x[:, axes[:3]]
    return np.pad(columns.astype(np.float32), ((0, 0), (0, 3 - columns.shape[1])))


def cells_of(case: PointSet) -> tuple[np.ndarray, np.ndarray]:
    """(C, k) connectivity and (C,) types: those of the case, those of its grid, or its points one by one."""
    if case.cells is not None and case.cell_types is not None:
        known = dimensions(case.cell_types) > 0
        if known.any():
            return case.cells[known], case.cell_types[known]
    if case.grid is not None and 1 <= len(case.grid) <= 3 and min(case.grid) > 1:
        return _grid_cells(case.grid)
    return np.arange(len(case))[:, None], np.ones(len(case), np.uint8)


def _grid_cells(grid: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Lines, quadrilaterals or hexahedra between the points of a grid."""
    index, axes = np.arange(np.prod(grid)).reshape(grid), len(grid)
    corners = [
        index[tuple(slice(corner[a], size - 1 + corner[a]) for a, size in enumerate(grid))].ravel()
        for corner in CUBE[: 2**axes]
    ]
    cells = np.stack(corners, axis=1)
    return cells, np.full(len(cells), {1: 3, 2: 9, 3: 12}[axes], np.uint8)


def _outside(grid: Any) -> Any:
    return grid.extract_surface(pass_pointid=True, pass_cellid=False, algorithm="dataset_surface")


def vector_groups(names: tuple[str, ...], axes: int) -> dict[str, tuple[int, ...]]:
    """Fields that are the components of a vector, by its name: U_x and U_y, u and v, d0 and d1."""
    found: dict[str, tuple[int, ...]] = {}
    for i in range(len(names) - axes + 1):
        channels = tuple(range(i, i + axes))
        name = _vector_of(names[i : i + axes])
        if name is not None:
            found[name] = channels
    return found


def _vector_of(names: tuple[str, ...]) -> str | None:
    """What a vector of components of these names is called."""
    if names == tuple("uvw"[: len(names)]):
        return "".join(names)
    for mark, letters in product(("_", ":", ""), ("xyz", "XYZ", "012", "123")):
        stem = names[0].removesuffix(mark + letters[0])
        if stem and names == tuple(f"{stem}{mark}{end}" for end in letters[: len(names)]):
            return stem
    return None
