"""Reader of the published Pipe Turbulence file: one mesh, and the velocity at its nodes at two times."""

from collections.abc import Sequence
from pathlib import Path

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.data.mesh_files import FixedMesh, MeshCases, cells_from_one, read_fields
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.pipe_turbulence.solver import NAMES, TRIANGLE

FILE = "Turbulence.mat"
"""`Input` and `Output` (400, 2673), `nodes` (2673, 2), `elements` (3, ne) counted from 1."""
TRAIN, TEST = 300, 100
"""The first cases, and the last ones."""


def read_pipe_turbulence(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits. The file holds no quadrature weights, and so the cases have none.

    Args:
        folder: Where the file is, or the file.
        stride: Every `stride`-th node is kept, without the cells; 1 is the published one.
    """
    path = folder if folder.is_file() else folder / FILE
    mesh = _mesh(path)
    fields = read_fields(path, ("Input", "Output"), len(mesh.x), TRAIN, TEST)
    return {split: MeshCases(mesh, f, u, NAMES, stride) for split, (f, u) in fields.items()}


def _mesh(path: Path) -> FixedMesh:
    shapes = shapes_in(path, "nodes", "elements")
    for key, axis, size in (("nodes", 1, 2), ("elements", 0, 3)):
        if len(shapes[key]) != 2 or shapes[key][axis] != size:
            wanted = "(nodes, 2)" if key == "nodes" else "(3, triangles)"
            raise LrsaError(f'{path} has "{key}" of shape {shapes[key]}, not {wanted} as published. {CURE}')
    x = read_part(path, "nodes")
    return FixedMesh(x, cells_from_one(path, "elements", read_part(path, "elements").T, len(x)), TRIANGLE)
