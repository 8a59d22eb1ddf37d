"""Blocks of a mesh, and frames in time, as one `RawCase`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.polyhedra import faces_of
from lrsa.mesh.roles import RawCase

PIXEL, QUAD, VOXEL, HEXAHEDRON = 8, 9, 11, 12
DISPLACEMENT = "displacement"


def merge(path: Path, blocks: Sequence[Any]) -> RawCase:
    if not blocks:
        raise LrsaError(f"{path} has no points")
    points = [np.asarray(block.points, np.float64) for block in blocks]
    starts = np.cumsum([0, *(len(p) for p in points)])
    connectivity = [_connectivity(block) for block in blocks]
    width = max(cells.shape[1] for cells, _ in connectivity)
    cells = [
        np.pad(np.where(c >= 0, c + start, -1), ((0, 0), (0, width - c.shape[1])), constant_values=-1)
        for (c, _), start in zip(connectivity, starts[:-1], strict=True)
    ]
    return RawCase(
        path,
        np.concatenate(points),
        _joined(path, [_numeric(block.point_data) for block in blocks], [len(p) for p in points]),
        _joined(path, [_numeric(block.cell_data) for block in blocks], [len(c) for c in cells]),
        np.concatenate(cells),
        np.concatenate([types for _, types in connectivity]),
        faces=faces_of(blocks, [int(start) for start in starts[:-1]]),
        grid=_grid(blocks),
    )


def _grid(blocks: Sequence[Any]) -> tuple[int, ...] | None:
    """The index shape of a structured block that is alone; VTK's first axis is the fastest."""
    sizes = [int(size) for size in getattr(blocks[0], "dimensions", ()) if size > 1]
    return tuple(reversed(sizes)) if len(blocks) == 1 and len(sizes) > 1 else None


def _numeric(data: Any) -> dict[str, np.ndarray]:
    arrays = {str(name): np.asarray(data[name]) for name in data.keys()}  # noqa: SIM118
    return {name: value for name, value in arrays.items() if value.dtype.kind in "biuf"}


def _joined(
    path: Path, parts: Sequence[Mapping[str, np.ndarray]], lengths: Sequence[int]
) -> dict[str, np.ndarray]:
    """The arrays of all blocks, one after the other, NaN where a block has none."""
    joined: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        shapes = {part[name].shape[1:] for part in parts if name in part}
        if len(shapes) > 1:
            raise LrsaError(f'{path} has "{name}" with different numbers of components in its blocks')
        (shape,) = shapes
        joined[name] = np.concatenate(
            [part.get(name, np.full((n, *shape), np.nan)) for part, n in zip(parts, lengths, strict=True)]
        )
    return joined


def _connectivity(block: Any) -> tuple[np.ndarray, np.ndarray]:
    """(C, k) points, filled up with -1, and (C,) VTK types; pixels and voxels as quads and hexahedra."""
    grid = block if hasattr(block, "celltypes") else block.cast_to_unstructured_grid()
    types = np.asarray(grid.celltypes, np.int64)
    flat, offsets = np.asarray(grid.cell_connectivity, np.int64), np.asarray(grid.cell_offsets, np.int64)
    counts = np.diff(offsets)
    filled = np.arange(counts.max(initial=1))[None] < counts[:, None]
    cells = np.full(filled.shape, -1, np.int64)
    cells[filled] = flat
    for old, new, order in ((PIXEL, QUAD, [0, 1, 3, 2]), (VOXEL, HEXAHEDRON, [0, 1, 3, 2, 4, 5, 7, 6])):
        mine = np.flatnonzero(types == old)
        if len(mine):
            cells[mine, : len(order)] = cells[mine[:, None], order]
            types = np.where(types == old, new, types)
    return cells, types


def series(path: Path, frames: Sequence[RawCase], times: np.ndarray) -> RawCase:
    """Frames of one mesh as one case: arrays that change are (T, N[, k]), moving points a displacement."""
    first = frames[0]
    for time, frame in zip(times, frames, strict=True):
        assert frame.cells is not None
        assert first.cells is not None
        assert frame.cell_types is not None
        assert first.cell_types is not None
        same = np.array_equal(frame.cells, first.cells) and np.array_equal(frame.cell_types, first.cell_types)
        if frame.points.shape != first.points.shape or not same:
            raise LrsaError(
                f"{path} changes its mesh at time {time:g}. Frames need one mesh: import the times as cases"
            )
    of_points = _stacked([frame.point_data for frame in frames])
    moved = np.stack([frame.points - first.points for frame in frames])
    if moved.any() and DISPLACEMENT not in of_points:
        of_points[DISPLACEMENT] = moved
    of_cells = _stacked([frame.cell_data for frame in frames])
    return replace(first, point_data=of_points, cell_data=of_cells, times=times)


def _stacked(frames: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Arrays that every frame has, in the same shape; those that never change stay as they are."""
    joint = [k for k, v in frames[0].items() if all(k in f and f[k].shape == v.shape for f in frames)]
    stacked = {name: np.stack([frame[name] for frame in frames]) for name in joint}
    return {
        name: value[0]
        if np.array_equal(value, np.broadcast_to(value[:1], value.shape), equal_nan=True)
        else value
        for name, value in stacked.items()
    }
