"""Published sets on one fixed mesh: MATLAB arrays of fields, one row for each case."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet


@dataclass(frozen=True)
class FixedMesh:
    """The nodes that all cases share, and the cells between them."""

    x: np.ndarray
    """(N, p) float32."""
    cells: np.ndarray
    """(C, k) counted from 0."""
    cell_type: int
    """VTK's, of all cells."""


@dataclass(frozen=True)
class MeshCases(Sequence[PointSet]):
    """Cases on one mesh, made when asked for; they share it, and their fields are views of the arrays."""

    mesh: FixedMesh
    f: np.ndarray
    """(S, N) the input."""
    u: np.ndarray
    """(S, N) the target."""
    names: Names
    stride: int = 1

    def __len__(self) -> int:
        return len(self.f)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return PointSet(
            self.mesh.x,
            self.f[index][:, None],
            self.u[index][:, None],
            cells=self.mesh.cells,
            cell_types=np.full(len(self.mesh.cells), self.mesh.cell_type, np.uint8),
            names=self.names,
        ).strided(self.stride)


def read_fields(
    path: Path, keys: tuple[str, str], nodes: int, train: int, test: int
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Input and target (S, N), float32, of the first `train` and the last `test` cases of a file."""
    shapes = shapes_in(path, *keys)
    for key in keys:
        if len(shapes[key]) != 2 or shapes[key][1] != nodes or shapes[key] != shapes[keys[0]]:
            raise LrsaError(
                f'{path} has "{key}" of shape {shapes[key]}, not (cases, {nodes}) like the mesh. {CURE}'
            )
    cases = shapes[keys[0]][0]
    if cases < train + test:
        raise LrsaError(
            f"{path} has {cases} cases: the first {train} are for training, the last {test} for the test."
            f" {CURE}"
        )
    parts = {"train": slice(train), "test": slice(cases - test, cases)}
    return {
        split: (read_part(path, keys[0], (part, slice(None))), read_part(path, keys[1], (part, slice(None))))
        for split, part in parts.items()
    }


def cells_from_one(path: Path, key: str, numbers: np.ndarray, nodes: int) -> np.ndarray:
    """(C, k) cells counted from 0, of MATLAB's, which counts from 1; or what is wrong with them."""
    cells = numbers.astype(np.int64)
    if not np.array_equal(cells, numbers) or not cells.size or cells.min() < 1 or cells.max() > nodes:
        raise LrsaError(f'{path} has "{key}" that are no nodes from 1 to {nodes}. {CURE}')
    return cells - 1
