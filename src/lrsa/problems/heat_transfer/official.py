"""Reader of the published Heat Transfer files: temperatures of a face and of a part, as MATLAB arrays.

Input and output lie on meshes of their own: 186 nodes of the face z = 0, and the 7199 of the part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.heat_transfer.gear import areas_at
from lrsa.problems.heat_transfer.solver import joined

FIELDS, PART, FACE = "HeatTransfer.mat", "Part_Mesh.mat", "lbe_ev_input.mat"
"""`input` (300, 186) and `output` (300, 7199); `points` (7199, 3) and `elements` (34132, 4), which count from
1; `Points` (186, 3) and `Faces` (300, 3), which count from 0."""
FOLDER = "HeatTransfer_LBO_basis"
"""Where the meshes were published, beside the fields."""
TRAIN, TEST = 100, 100
"""The first cases, and the last ones."""


def read_heat_transfer(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, each case the union of the part and of the face.

    Args:
        folder: Where the fields are, the meshes beside them or in the folder that they were published in.
        stride: 1; there is no grid of which others could be taken.
    """
    folder = folder.parent if folder.is_file() else folder
    if stride != 1:
        raise LrsaError(
            f"the part of heat-transfer is no grid: it has no stride {stride}. Leave --stride out"
        )
    part, face = (
        next((p for p in (folder / n, folder / FOLDER / n) if p.is_file()), folder / n) for n in (PART, FACE)
    )
    sizes = _check(folder / FIELDS, part, face)
    points, elements = read_part(part, "points"), _indices(part, "elements", 1, sizes[1])
    nodes, triangles = read_part(face, "Points"), _indices(face, "Faces", 0, sizes[0])
    imposed, field = (read_part(folder / FIELDS, key) for key in ("input", "output"))
    mesh = (points, elements, nodes, areas_at(nodes.astype(float), triangles))
    return {
        "train": Parts(*mesh, imposed[:TRAIN], field[:TRAIN]),
        "test": Parts(*mesh, imposed[-TEST:], field[-TEST:]),
    }


@dataclass(frozen=True)
class Parts(Sequence[PointSet]):
    """Cases on one part and one face, made when asked for."""

    points: np.ndarray
    tetrahedra: np.ndarray
    face: np.ndarray
    areas: np.ndarray
    imposed: np.ndarray
    """(S, n) T of the face."""
    field: np.ndarray
    """(S, N) T of the part."""

    def __len__(self) -> int:
        return len(self.field)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        mesh = (self.points, self.tetrahedra, self.face, self.areas)
        return joined(*mesh, self.imposed[index], self.field[index])


def _check(fields: Path, part: Path, face: Path) -> tuple[int, int]:
    """The nodes of the face and of the part, of which all files must have as many."""
    shapes = {
        **shapes_in(fields, "input", "output"),
        **shapes_in(part, "points", "elements"),
        **shapes_in(face, "Points", "Faces"),
    }
    n, m = shapes["points"][0], shapes["Points"][0]
    cases = shapes["input"][0]
    wanted = {"input": (cases, m), "output": (cases, n), "points": (n, 3), "Points": (m, 3)}
    wanted |= {key: (shapes[key][0], count) for key, count in (("elements", 4), ("Faces", 3))}
    where = {"points": part, "elements": part, "Points": face, "Faces": face}
    for key, shape in wanted.items():
        if shapes[key] != shape or 0 in shape:
            raise LrsaError(
                f'{where.get(key, fields)} has "{key}" of shape {shapes[key]}, not {shape}. {CURE}'
            )
    if cases < TRAIN + TEST:
        raise LrsaError(
            f"{fields} has {cases} cases, not the 300 published: the first {TRAIN} are for training, the last"
            f" {TEST} for the test. {CURE}"
        )
    return m, n


def _indices(path: Path, key: str, start: int, count: int) -> np.ndarray:
    """Cells as nodes that count from 0."""
    cells = read_part(path, key).astype(np.int64) - start
    if cells.min() < 0 or cells.max() >= count:
        raise LrsaError(f'{path} has "{key}" that name nodes which are not there. {CURE}')
    return cells
