"""Reader of the published irregular Darcy file: one mesh, coefficients and solutions at its nodes."""

from collections.abc import Sequence
from pathlib import Path

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.data.mesh_files import FixedMesh, MeshCases, cells_from_one, read_fields
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.irregular_darcy.solver import TRIANGLE, IrregularDarcy

FILE = "Darcy.mat"
"""`c_field` and `u_field` (1200, 2290), `MeshNodes` (2, 2290), `MeshElements` (3, ne) counted from 1."""
TRAIN, TEST = 1000, 200
"""The first cases, and the last ones."""


def read_irregular_darcy(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits. The file holds no quadrature weights, and so the cases have none.

    Args:
        folder: Where the file is, or the file.
        stride: Every `stride`-th node is kept, without the cells; 1 is the published one.
    """
    path = folder if folder.is_file() else folder / FILE
    mesh = _mesh(path)
    fields = read_fields(path, ("c_field", "u_field"), len(mesh.x), TRAIN, TEST)
    return {split: MeshCases(mesh, f, u, IrregularDarcy.names, stride) for split, (f, u) in fields.items()}


def _mesh(path: Path) -> FixedMesh:
    shapes = shapes_in(path, "MeshNodes", "MeshElements")
    for key, rows, what in (("MeshNodes", 2, "nodes"), ("MeshElements", 3, "triangles")):
        if len(shapes[key]) != 2 or shapes[key][0] != rows:
            raise LrsaError(
                f'{path} has "{key}" of shape {shapes[key]}, not ({rows}, {what}) as published. {CURE}'
            )
    x = read_part(path, "MeshNodes").T.copy()
    return FixedMesh(
        x, cells_from_one(path, "MeshElements", read_part(path, "MeshElements").T, len(x)), TRIANGLE
    )
