"""Reader of the published AirfRANS files: a manifest of cases, and of each case a mesh and its airfoil.

`<name>/<name>_internal.vtu` has U, p, nut and implicit_distance at its nodes, `<name>/<name>_aerofoil.vtp`
has Normals, which point into the airfoil. The name tells the stream: airFoil2D_SST_<speed>_<angle>_<digits>.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.mesh.reading import read_raw_safely
from lrsa.mesh.roles import RawCase
from lrsa.pointset import PointSet
from lrsa.problems.airfrans.solver import NAMES

MANIFEST = "manifest.json"
SPLITS = {"train": ("full_train", 800), "test": ("full_test", 200)}
"""The task "full" of the manifest. The reference trains on the first 720 and keeps 80 for validation."""
FIELDS = {"U": 3, "p": 1, "nut": 1, "implicit_distance": 1}
_CURE = "Download it again, as it was published"


def read_airfrans(folder: Path, stride: int = 1) -> dict[str, Sequence[PointSet]]:
    """The published splits, read when asked for.

    Args:
        folder: The folder of the manifest, the one above (which holds `Dataset`), or the manifest.
        stride: Every `stride`-th node is kept; 1 is the published one.
    """
    folder = folder.parent if folder.is_file() else folder
    folder = folder / "Dataset" if (folder / "Dataset" / MANIFEST).is_file() else folder
    manifest = _manifest(folder / MANIFEST)
    cases: dict[str, Sequence[PointSet]] = {}
    for split, (task, count) in SPLITS.items():
        names = manifest.get(task, ())
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise LrsaError(f'{folder / MANIFEST} has no list of names "{task}". {_CURE}')
        if len(names) != count:
            raise LrsaError(f"{folder / MANIFEST} has {len(names)} cases of {task}, not {count}. {_CURE}")
        cases[split] = PublishedCases(folder, tuple(names), stride)
    return cases


@dataclass(frozen=True)
class PublishedCases(Sequence[PointSet]):
    """Cases by their names."""

    folder: Path
    names: tuple[str, ...]
    stride: int

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return read_case(self.folder, self.names[index]).strided(self.stride)


def read_case(folder: Path, name: str) -> PointSet:
    """One case: surface where U_x = 0, the distance positive in the fluid, normals out of the airfoil."""
    mesh = read_raw_safely(folder / name / f"{name}_internal.vtu")
    airfoil = read_raw_safely(folder / name / f"{name}_aerofoil.vtp")
    velocity, pressure, viscosity, distance = (_array(mesh, key, FIELDS[key]) for key in FIELDS)
    surface = velocity[:, 0] == 0
    normals = np.zeros((len(mesh.points), 2))
    normals[surface] = -_array(airfoil, "Normals", 3)[_places(airfoil, mesh.points[surface]), :2]
    stream = np.tile(_stream(name), (len(normals), 1))
    return PointSet(
        x=mesh.points[:, :2].astype(np.float32),
        f=np.column_stack([stream, -distance, normals]).astype(np.float32),
        u=np.column_stack([velocity[:, :2], pressure, viscosity]).astype(np.float32),
        cells=mesh.cells,
        cell_types=mesh.cell_types,
        surface=surface,
        names=NAMES,
    )


def _stream(name: str) -> tuple[float, float]:
    """The velocity far away."""
    try:
        speed, angle = (float(word) for word in name.split("_")[2:4])
    except ValueError:
        raise LrsaError(f"{name} does not name speed and angle, as in airFoil2D_SST_58.8_-3.6_...") from None
    return speed * np.cos(np.radians(angle)), speed * np.sin(np.radians(angle))


def _places(airfoil: RawCase, points: np.ndarray) -> list[int]:
    """Where in the airfoil file these points are: they have the same coordinates there."""
    known = {tuple(place): i for i, place in enumerate(airfoil.points[:, :2].tolist())}
    try:
        return [known[tuple(place)] for place in points[:, :2].tolist()]
    except KeyError as error:
        raise LrsaError(f"{airfoil.path} has no point at {error}, where its mesh has one. {_CURE}") from error


def _array(raw: RawCase, key: str, columns: int) -> np.ndarray:
    if key not in raw.point_data:
        there = ", ".join(raw.point_data) or "none"
        raise LrsaError(f'{raw.path} has no point array "{key}" (it has: {there}). {_CURE}')
    array = np.asarray(raw.point_data[key])
    if array.shape[1:] != ((columns,) if columns > 1 else ()):
        raise LrsaError(f'{raw.path} has "{key}" of shape {array.shape}, not of {columns} columns. {_CURE}')
    return array


def _manifest(path: Path) -> dict[str, object]:
    if not path.is_file():
        raise LrsaError(f"{path} does not exist. Put it beside the folders of the cases")
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise LrsaError(f"{path} is no readable JSON ({error}). {_CURE}") from error
    if not isinstance(values, dict):
        raise LrsaError(f"{path} is no list of tasks. {_CURE}")
    return values
