"""Reader of the published cars: folders param0 to param8, in each a folder of every car with two VTK files.

`quadpress_smpl.vtk` has the quadrilaterals of the surface with a pressure at their points,
`hexvelo_smpl.vtk` the hexahedra around it with a velocity. Points that are in both have the same coordinates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.reading import read_raw_safely
from lrsa.mesh.roles import RawCase
from lrsa.objectives.integrals import area_vectors
from lrsa.pointset import PointSet
from lrsa.problems.shapenet_car.features import QUADRILATERAL, assemble

PRESSURE, VELOCITY = "quadpress_smpl.vtk", "hexvelo_smpl.vtk"
FOLDS = (100, 99, 97, 100, 100, 96, 100, 98, 99)
"""Cars of param0, which is the test, to param8."""
POINTS = 32186
"""Of every car, on its surface and around it."""
_CURE = "Download it again, as it was published"


def read_shapenet_car(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, read when asked for; the cars of a fold in the order of their names.

    Args:
        folder: The folder of param0 to param8, the one above (which holds `training_data`), or a file of a
            car.
        stride: 1; drag needs all of the surface.
    """
    if stride != 1:
        raise LrsaError(f"the cars of shapenet-car are no grids: they have no stride {stride}. Leave it out")
    folder = folder.parents[2] if folder.is_file() else folder
    folder = folder / "training_data" if (folder / "training_data").is_dir() else folder
    folds = []
    for number, count in enumerate(FOLDS):
        fold = folder / f"param{number}"
        cars = sorted(car for car in fold.iterdir() if car.is_dir()) if fold.is_dir() else []
        if len(cars) != count:
            raise LrsaError(f"{fold} has {len(cars)} cars, not {count}. {_CURE}")
        folds.append(cars)
    test, *train = folds
    return {"train": Cars(tuple(car for fold in train for car in fold)), "test": Cars(tuple(test))}


@dataclass(frozen=True)
class Cars(Sequence[PointSet]):
    """Cars by their folders."""

    folders: tuple[Path, ...]

    def __len__(self) -> int:
        return len(self.folders)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return read_car(self.folders[index])


def read_car(folder: Path) -> PointSet:
    """One car: the volume is what is not on the surface, which stands still where only its file has it."""
    body, around = (read_raw_safely(folder / name) for name in (PRESSURE, VELOCITY))
    pressure, velocity = _array(body, 1), _array(around, 3)
    quads = _quads(body)
    places = {point: i for i, point in enumerate(map(tuple, around.points.tolist()))}
    there = np.array([places.get(point, -1) for point in map(tuple, body.points.tolist())])
    volume = np.ones(len(around.points), bool)
    volume[there[there >= 0]] = False
    if (total := volume.sum() + len(there)) != POINTS:
        raise LrsaError(f"{folder} has {total} points, not {POINTS}. {_CURE}")
    normals = _normals(body.points, quads)
    inward = (area_vectors(body.points[quads]) * normals).sum(1) < 0
    return assemble(
        around.points[volume],
        body.points,
        np.where(inward[:, None], quads[:, ::-1], quads),
        normals,
        np.concatenate([velocity[volume], np.where(there[:, None] >= 0, velocity[there], 0)]),
        pressure,
    )


def _quads(body: RawCase) -> np.ndarray:
    if body.cells is None or body.cell_types is None or set(body.cell_types.tolist()) != {QUADRILATERAL}:
        raise LrsaError(f"{body.path} is no surface of quadrilaterals. {_CURE}")
    return body.cells[:, :4]


def _normals(points: np.ndarray, quads: np.ndarray) -> np.ndarray:
    """(Q, 3) out of the car, as VTK has them, by which the published features are made."""
    import pyvista

    mesh = pyvista.PolyData(points, np.column_stack([np.full(len(quads), 4), quads]).ravel())
    made = mesh.compute_normals(
        cell_normals=True, point_normals=False, consistent_normals=True, auto_orient_normals=True
    )
    return np.asarray(made.cell_data["Normals"], float)


def _array(raw: RawCase, columns: int) -> np.ndarray:
    """The point array of so many columns: the files have one each."""
    shape = (len(raw.points), columns) if columns > 1 else (len(raw.points),)
    found = [values for values in raw.point_data.values() if np.shape(values) == shape]
    if len(found) != 1:
        there = ", ".join(f"{name} {np.shape(v)}" for name, v in raw.point_data.items()) or "none"
        raise LrsaError(f"{raw.path} needs one point array of shape {shape} (it has: {there}). {_CURE}")
    return np.asarray(found[0], float)
