"""The edges of a case: its mesh, a radius graph or a nearest-neighbour graph, built once and kept on disk.

Edges are (2, E): row 0 the source, row 1 the target, which gathers from its sources; sorted by target. Files
live in $LRSA_HOME/graphs under a hash of all that the graph depends on.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic, data_home
from lrsa.geometry.cells import cell_edges, unknown
from lrsa.geometry.neighbours import near_edges
from lrsa.pointset import PointSet

VERSION = 3
"""Part of every key: raised when a graph of the same case would come out different."""


class Connection(Protocol):
    """A rule that joins the points of a case."""

    def edges(self, points: PointSet) -> np.ndarray:
        """(2, E)."""
        ...

    def depends_on(self, points: PointSet) -> tuple[object, ...]:
        """What the edges follow from, besides the fields of the rule."""
        ...


@dataclass(frozen=True)
class MeshEdges:
    """The edges of all cells, or the index neighbours of a structured grid, in both directions."""

    self_loops: bool = True

    def edges(self, points: PointSet) -> np.ndarray:
        if points.cells is not None and points.cell_types is not None:
            if names := unknown(points.cell_types):
                raise LrsaError(
                    f"{names} have no known edges. Use --model gno --model.radius R, or a model without edges"
                )
            pairs = cell_edges(points.cells, points.cell_types)
        elif points.grid is not None:
            pairs = grid_edges(points.grid)
        else:
            raise LrsaError("the data has neither cells nor a grid to take edges from")
        loops = np.tile(np.arange(len(points)), (2, 1)) if self.self_loops else np.zeros((2, 0), np.int64)
        source, target = np.concatenate([pairs, pairs[::-1], loops], axis=1).astype(np.int64)
        key = np.unique(target * len(points) + source)
        return np.stack([key % len(points), key // len(points)])

    def depends_on(self, points: PointSet) -> tuple[object, ...]:
        mesh = (points.grid,) if points.cells is None else (points.cells, points.cell_types)
        return (points.x.shape, *mesh)


@dataclass(frozen=True)
class RadiusGraph:
    """From all points within the radius, the nearest ones if there are more than `neighbours`."""

    radius: float
    neighbours: int = 32
    self_loops: bool = True

    def edges(self, points: PointSet) -> np.ndarray:
        return near_edges(points.x, self.neighbours, self.radius, self.self_loops)

    def depends_on(self, points: PointSet) -> tuple[object, ...]:
        return (points.x,)


@dataclass(frozen=True)
class NearestGraph:
    """From the nearest points."""

    neighbours: int = 16
    self_loops: bool = True

    def edges(self, points: PointSet) -> np.ndarray:
        return near_edges(points.x, self.neighbours, self_loops=self.self_loops)

    def depends_on(self, points: PointSet) -> tuple[object, ...]:
        return (points.x,)


def connection(points: PointSet, radius: float | None = None, self_loops: bool = True) -> Connection:
    """All points within the radius if one is given, else the mesh where there is one, else the 16 nearest."""
    if radius is not None:
        return RadiusGraph(radius, self_loops=self_loops)
    if points.cells is None and points.grid is None:
        return NearestGraph(16, self_loops)
    return MeshEdges(self_loops)


def case_edges(points: PointSet, connection: Connection) -> np.ndarray:
    """(2, E) edges of one case, from disk if it was asked for before."""
    path = data_home().parent / "graphs" / f"{_digest((connection, *connection.depends_on(points)))}.npy"
    if not path.exists():
        edges = connection.edges(points).astype(np.int32)
        with atomic(path, edges.nbytes) as temporary, temporary.open("wb") as file:
            np.save(file, edges)
    return np.load(path, allow_pickle=False).astype(np.int64)


def batch_edges(cases: Sequence[np.ndarray], padded: int) -> np.ndarray:
    """(2, E) of all cases as one disjoint graph, point i of case b at b · padded + i: `Context.edges`."""
    return np.concatenate([edges + b * padded for b, edges in enumerate(cases)], axis=1)


def grid_edges(grid: tuple[int, ...]) -> np.ndarray:
    """(2, n) neighbours along every axis of an index grid, in one direction."""
    index = np.arange(int(np.prod(grid))).reshape(grid)
    along = [
        np.stack([np.delete(index, -1, axis).ravel(), np.delete(index, 0, axis).ravel()])
        for axis in range(len(grid))
    ]
    return np.concatenate(along, axis=1)


def _digest(key: tuple[object, ...]) -> str:
    digest = hashlib.blake2b(str(VERSION).encode(), digest_size=20)
    for part in key:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(f"{part!r} ".encode())
    return digest.hexdigest()
