"""Polyhedra: solids of which VTK keeps the faces beside the cells."""

from collections.abc import Sequence
from typing import Any

import numpy as np

POLYHEDRON = 42


def faces_of(blocks: Sequence[Any], starts: Sequence[int]) -> tuple[np.ndarray, np.ndarray] | None:
    """Rings (F, k) of point numbers, filled up with -1, and the polyhedron (F,) of each, over all blocks.

    Args:
        blocks: The data sets that are merged.
        starts: The number of the first point of each.
    """
    rings, owners, cells = [], [], 0
    for block, start in zip(blocks, starts, strict=True):
        if POLYHEDRON in np.unique(getattr(block, "celltypes", [])):
            flat, offsets = _array(block.GetPolyhedronFaces())
            which, ends = _array(block.GetPolyhedronFaceLocations())
            counts = np.diff(offsets)[which]
            filled = np.arange(counts.max())[None] < counts[:, None]
            ring = np.full(filled.shape, -1)
            places = offsets[which][:, None] + np.arange(counts.max())[None]
            ring[filled] = flat[places[filled]] + start
            rings.append(ring)
            owners.append(cells + np.repeat(np.arange(block.n_cells), np.diff(ends)))
        cells += block.n_cells
    if not rings:
        return None
    width = max(ring.shape[1] for ring in rings)
    wide = [np.pad(r, ((0, 0), (0, width - r.shape[1])), constant_values=-1) for r in rings]
    return np.concatenate(wide), np.concatenate(owners)


def volumes(points: np.ndarray, centres: np.ndarray, rings: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """(C,) of polyhedra that see all of their faces (F, k) from their centres (C, 3): pyramids on the faces.

    The faces need not run around in the same sense: each pyramid counts by its size.
    """
    there = rings >= 0
    counts = np.maximum(there.sum(1), 1)
    corners = points[np.where(there, rings, rings[:, :1])]  # filled up with the first corner
    middle = (corners * there[..., None]).sum(1) / counts[:, None]
    after = np.take_along_axis(rings, (np.arange(rings.shape[1]) + 1) % counts[:, None], axis=1)
    following = points[np.where(there, after, rings[:, :1])]
    apex = centres[owners]
    size = np.einsum(
        "fki,fki->f",
        np.cross(corners - apex[:, None], following - apex[:, None]) * there[..., None],
        np.broadcast_to((middle - apex)[:, None], corners.shape),
    )
    return np.bincount(owners, np.abs(size) / 6, minlength=len(centres))


def _array(cells: Any) -> tuple[np.ndarray, np.ndarray]:
    from vtkmodules.util.numpy_support import vtk_to_numpy

    parts = (cells.GetConnectivityArray(), cells.GetOffsetsArray())
    flat, offsets = (np.asarray(vtk_to_numpy(part), np.int64) for part in parts)
    return flat, offsets
