"""Plane meshes as OpenFOAM takes them: one layer of prisms whose front and back are `empty`.

A polyMesh is a list of faces: those inside by their cell of the smaller number and then by the other, then
those of every patch. The area vector of a face points out of its owner.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.numerics.openfoam import HEADER

DEPTH = 1.0
"""Of the layer, along z."""
Patches = Mapping[str, tuple[str, np.ndarray]]
"""Name -> type in OpenFOAM's words (patch, wall) and (E, 2) the points of its sides."""


def write_plane_mesh(folder: Path, points: np.ndarray, cells: np.ndarray, patches: Patches) -> None:
    """constant/polyMesh of cells (C, k), counter-clockwise, of points (N, 2); every outer side in a patch.

    Values on a patch are in the order in which its sides are given here.
    """
    sides, owner, neighbour = plane_sides(cells, patches)
    n, place = len(points), folder / "constant" / "polyMesh"
    walls = np.column_stack([sides, sides[:, ::-1] + n])  # out of the owner: (b - a) × z
    rows = [_numbers(walls), _numbers(cells[:, ::-1]), _numbers(cells + n)]
    owner = np.concatenate([owner, np.tile(np.arange(len(cells)), 2)])
    heights = np.repeat([0.0, DEPTH], n)
    space = [f"({x:.15g} {y:.15g} {z:g})" for (x, y), z in zip(np.tile(points, (2, 1)), heights, strict=True)]
    place.mkdir(parents=True, exist_ok=True)
    _write(place / "points", "vectorField", space)
    _write(place / "faces", "faceList", [f"{row.count(' ') + 1}({row})" for part in rows for row in part])
    _write(place / "owner", "labelList", list(map(str, owner)))
    _write(place / "neighbour", "labelList", list(map(str, neighbour)))
    _write(place / "boundary", "polyBoundaryMesh", _boundary(patches, len(neighbour), 2 * len(cells)))


def plane_sides(cells: np.ndarray, patches: Patches) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(S, 2) sides as their owners go round, (S,) owners, and (inner,) neighbours of the inner ones."""
    edges = np.stack([cells, np.roll(cells, -1, axis=1)], axis=-1).reshape(-1, 2)
    owner = np.repeat(np.arange(len(cells)), cells.shape[1])
    keys = _keys(edges)
    order = np.argsort(keys, kind="stable")  # of the two cells of a side the smaller number comes first
    ranked = keys[order]
    twice = np.flatnonzero(ranked[1:] == ranked[:-1])
    one, two = order[twice], order[twice + 1]
    inner = np.lexsort((owner[two], owner[one]))
    outer = np.concatenate([_keys(sides) for _, sides in patches.values()])
    found = order[np.minimum(np.searchsorted(ranked, outer), len(order) - 1)]
    missed = len(edges) - 2 * len(inner) - len(outer)
    if missed or not np.array_equal(keys[found], outer):
        raise LrsaError(f"the patches of a mesh miss {missed} of its outer sides. Name every side once")
    kept = np.concatenate([one[inner], found])
    return edges[kept], owner[kept], owner[two[inner]]


def _keys(edges: np.ndarray) -> np.ndarray:
    """One number for each pair of points, whatever their order."""
    return edges.min(1).astype(np.int64) << 32 | edges.max(1)


def _numbers(rows: np.ndarray) -> list[str]:
    return [" ".join(map(str, row)) for row in rows.tolist()]


def _boundary(patches: Patches, start: int, empty: int) -> list[str]:
    rows = []
    for name, (kind, count) in {k: (t, len(s)) for k, (t, s) in patches.items()}.items():
        rows.append(f"{name} {{ type {kind}; nFaces {count}; startFace {start}; }}")
        start += count
    return [*rows, f"frontAndBack {{ type empty; nFaces {empty}; startFace {start}; }}"]


def _write(path: Path, kind: str, rows: list[str]) -> None:
    header = HEADER.format(kind=kind, name=path.name)
    path.write_text(f"{header}{len(rows)}\n(\n" + "\n".join(rows) + "\n)\n")
