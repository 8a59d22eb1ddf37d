"""Reader of the published Composite files: fields at the nodes of one surface mesh, as MATLAB arrays."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lrsa.data.matlab import CURE, read_part, shapes_in
from lrsa.data.mesh_files import FixedMesh, MeshCases, read_fields
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.composite.solver import NAMES

FIELDS, MESH = "Composites.mat", "Composites_LBO_basis.mat"
"""`T_field` and `D_field` (500 or more, 8232); `Points` (8232, 3) and `Faces` (F, 4): of each triangle its
number of corners and these, which count from 0."""
FOLDER = "Composites_LBO_basis"
"""Where the mesh was published, beside the fields."""
TRAIN, TEST = 400, 100
"""The first cases, and the last ones."""
TRIANGLE = 5
"""VTK's type."""


def read_composite(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits. The files hold no quadrature weights, and so the cases have none.

    Args:
        folder: Where the fields are (or they), the mesh beside them or in the folder it was published in.
        stride: Every `stride`-th node is kept, without the cells; 1 is the published one.
    """
    folder = folder.parent if folder.is_file() else folder
    places = (folder / MESH, folder / FOLDER / MESH)
    mesh = _mesh(next((path for path in places if path.is_file()), places[0]))
    fields = read_fields(folder / FIELDS, ("T_field", "D_field"), len(mesh.x), TRAIN, TEST)
    return {split: MeshCases(mesh, f, u, NAMES, stride) for split, (f, u) in fields.items()}


def _mesh(path: Path) -> FixedMesh:
    shapes = shapes_in(path, "Points", "Faces")
    for key, columns in (("Points", 3), ("Faces", 4)):
        if len(shapes[key]) != 2 or shapes[key][1] != columns or not shapes[key][0]:
            raise LrsaError(
                f'{path} has "{key}" of shape {shapes[key]}, not (any, {columns}) as published. {CURE}'
            )
    x, faces = read_part(path, "Points"), read_part(path, "Faces").astype(np.int64)
    if (faces[:, 0] != 3).any() or faces[:, 1:].min() < 0 or faces[:, 1:].max() >= len(x):
        raise LrsaError(f'{path} has "Faces" that are no triangles of nodes 0 to {len(x) - 1}. {CURE}')
    return FixedMesh(x, faces[:, 1:], TRIANGLE)
