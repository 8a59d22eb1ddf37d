"""The published cars, small ones in the same format: read back equal, or refused in one line."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import pyvista

from lrsa.errors import LrsaError
from lrsa.problems.official import import_official, recognise
from lrsa.problems.shapenet_car.features import NAMES, assemble
from lrsa.problems.shapenet_car.forces import drag
from lrsa.problems.shapenet_car.official import PRESSURE, VELOCITY, read_car, read_shapenet_car
from lrsa.problems.shapenet_car.problem import PROBLEM

COUNTS = [100, 99, 97, 100, 100, 96, 100, 98, 99]
SHIFT = np.array([0.25, 0.5, -1.0])
ON, AROUND, SMALL = 8, 56, 64
"""Points of a cube, those of 4³ around it that are not its own, and both together."""
QUADS = np.array(
    [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]]
)  # some of them counter-clockwise from outside, some not


def points() -> tuple[np.ndarray, np.ndarray]:
    """Of a unit cube, and of 4 x 4 x 4 points around it, in which its own are."""
    cube = np.array(list(itertools.product((0.0, 1.0), repeat=3))) + SHIFT
    space = np.array(list(itertools.product((-1.0, 0.0, 1.0, 2.0), repeat=3))) + SHIFT
    return cube.astype(np.float32), space.astype(np.float32)


def fields() -> tuple[np.ndarray, np.ndarray]:
    """Pressure of the cube, and velocity of the space."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(8).astype(np.float32), rng.standard_normal((64, 3)).astype(np.float32)


def grid(points: np.ndarray, cells: np.ndarray, kind: int) -> pyvista.UnstructuredGrid:
    rows = np.column_stack([np.full(len(cells), cells.shape[1]), cells])
    return pyvista.UnstructuredGrid(rows.ravel(), np.full(len(cells), kind, np.uint8), points)


def files() -> tuple[pyvista.UnstructuredGrid, pyvista.UnstructuredGrid]:
    """Quadrilaterals (VTK's type 9) with scalars and hexahedra (12) with vectors, at points."""
    (cube, space), (pressure, velocity) = points(), fields()
    number = np.arange(64).reshape(4, 4, 4)
    lowest = number[:-1, :-1, :-1].ravel()
    hexahedra = lowest[:, None] + np.array([0, 16, 20, 4, 1, 17, 21, 5])
    body, around = grid(cube, QUADS, 9), grid(space, hexahedra, 12)
    body.point_data.set_scalars(pressure, "point_scalars")
    around.point_data.set_vectors(velocity, "point_vectors")
    return body, around


def publish(folder: Path, counts: Sequence[int] = COUNTS) -> list[Path]:
    """Nine folds, all cars of which are links to the files of one."""
    cars = [
        folder / "training_data" / f"param{fold}" / f"{fold}{number:03d}abc"
        for fold, count in enumerate(counts)
        for number in range(count)
    ]
    cars[0].mkdir(parents=True)
    body, around = files()
    body.save(cars[0] / "quadpress_smpl.vtk")
    around.save(cars[0] / "hexvelo_smpl.vtk")
    for car in cars[1:]:
        car.mkdir(parents=True)
        for name in ("quadpress_smpl.vtk", "hexvelo_smpl.vtk"):
            os.link(cars[0] / name, car / name)
    (folder / "training_data" / "param0" / "notes.txt").write_text("no car")
    return cars


@pytest.fixture(autouse=True)
def few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrsa.problems.shapenet_car.official.POINTS", SMALL)


def test_the_first_fold_is_the_test_and_the_others_are_for_training(tmp_path: Path) -> None:
    cars = publish(tmp_path)
    splits = read_shapenet_car(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 789, "test": 100}
    assert (PROBLEM.samples, PROBLEM.test) == (789, 100)
    assert splits["test"].folders == tuple(cars[:100])  # pyright: ignore
    assert splits["train"].folders == tuple(cars[100:])  # pyright: ignore
    within = tmp_path / "training_data"
    for place in (tmp_path, within, cars[0] / PRESSURE, cars[0] / VELOCITY):
        assert len(read_shapenet_car(place)["test"]) == 100
    assert recognise(tmp_path) == recognise(within) == recognise(cars[0] / PRESSURE) == "shapenet-car"


def test_a_car_is_what_the_files_say(tmp_path: Path) -> None:
    case = read_car(publish(tmp_path, [1])[0])
    (cube, space), (pressure, velocity) = points(), fields()
    on = np.array([(point == cube).all(1).any() for point in space])
    assert on.sum() == ON
    assert case.names == NAMES
    assert case.f is not None
    assert case.u is not None
    assert case.surface is not None
    assert case.u_mask is not None
    assert np.array_equal(case.x, np.concatenate([space[~on], cube]))
    assert np.array_equal(case.surface, np.arange(SMALL) >= AROUND)
    assert np.array_equal(case.u[:AROUND, :3], velocity[~on])
    mine = [int(np.flatnonzero((space == point).all(1))[0]) for point in cube]
    assert np.array_equal(case.u[AROUND:, :3], velocity[mine])
    assert np.array_equal(case.u[AROUND:, 3], pressure)
    assert (case.u[:AROUND, 3] == 0).all()
    assert np.array_equal(case.u_mask[:, 3], case.surface)
    assert case.u_mask[:, :3].all()


def test_the_features_are_the_nearest_point_of_the_surface_and_the_normals(tmp_path: Path) -> None:
    case = read_car(publish(tmp_path, [1])[0])
    assert case.f is not None
    assert case.cells is not None
    cube, volume = case.x[AROUND:].astype(float), case.x[:AROUND].astype(float)
    away = volume[:, None] - cube
    length = np.linalg.norm(away, axis=-1)
    nearest = length.argmin(1)
    assert case.f[:AROUND, 0] == pytest.approx(length.min(1), rel=1e-6)
    assert case.f[:AROUND, 1:] == pytest.approx(
        (away / length[..., None])[np.arange(AROUND), nearest], abs=1e-6
    )
    assert (case.f[AROUND:, 0] == 0).all()
    assert case.f[AROUND:, 1:] == pytest.approx((cube - cube.mean(0)) / np.sqrt(0.75), abs=1e-6)
    corners = case.x[case.cells].astype(float)
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (across * (corners.mean(1) - cube.mean(0))).sum(1) == pytest.approx(np.full(6, 0.5), abs=1e-6)


def test_a_point_that_the_volume_does_not_have_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (car,) = publish(tmp_path, [1])
    _, around = files()
    around.points[21] += 0.125  # a corner of the cube
    around.save(car / VELOCITY)
    monkeypatch.setattr("lrsa.problems.shapenet_car.official.POINTS", SMALL + 1)
    case = read_car(car)
    assert case.u is not None
    _, velocity = fields()
    assert (case.u[AROUND + 1, :3] == 0).all()
    assert np.array_equal(case.u[AROUND + 2, :3], velocity[22])


def test_the_drag_is_the_published_sum() -> None:
    """Written once more, cell by cell, with velocities on the surface."""
    rng = np.random.default_rng(1)
    cube = points()[0].astype(float) + 0.1 * rng.standard_normal((8, 1)) * [0, 0, 1]  # seen as a square of 1
    quads = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
    quads = np.concatenate([quads[:, [0, 1, 2, 2]], quads[:, [0, 2, 3, 3]]])  # flat, so that areas are plain
    velocity, pressure = 1e5 * rng.standard_normal((9, 3)), 100 * rng.standard_normal(8)
    volume = np.array([[5.0, 5.0, 5.0]])
    case = assemble(volume, cube, quads, np.ones((12, 3)), velocity, pressure)
    total = 0.0
    for quad in quads:
        p1, p2, p3, p4 = cube[quad]
        u1, u2, u3, u4 = velocity[1:][quad]
        triangle = np.cross(p2 - p1, p3 - p1) / 2 + np.cross(p3 - p1, p4 - p1) / 2
        area, normal = np.linalg.norm(triangle), triangle / np.linalg.norm(triangle)
        slopes = (u2 - u1 + u3 - u4) / (np.linalg.norm(p2 - p1 + p3 - p4) + 1e-8)
        slopes = slopes + (u3 - u1 + u4 - u2) / (np.linalg.norm(p3 - p1 + p4 - p2) + 1e-8)
        slopes = slopes + (u4 - u1 + u2 - u3) / (np.linalg.norm(p4 - p1 + p2 - p3) + 1e-8)
        total -= (pressure[quad].mean() + 1.8e-5 * slopes[2]) * area * normal[2]
    assert drag(case) == pytest.approx(2 * total / (20**2 * 1.0 * 0.3), rel=1e-4)


def test_a_data_set_is_made_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(tmp_path, [1] * 9)
    monkeypatch.setattr("lrsa.problems.shapenet_car.official.FOLDS", (1,) * 9)
    _, counts = import_official(tmp_path, PROBLEM, tmp_path / "a.h5")
    assert counts == {"train": 8, "test": 1}


def damage(car: Path, kind: str) -> None:
    body, around = files()
    for name in (PRESSURE, VELOCITY):
        (car / name).unlink()
    if kind == "scalars":
        body.clear_point_data()
    elif kind == "two":
        body.point_data["more"] = np.zeros(8)
    elif kind == "vectors":
        around.clear_point_data()
    elif kind == "triangles":
        body = grid(np.asarray(body.points), QUADS[:, :3], 5)
        body.point_data.set_scalars(np.zeros(8), "point_scalars")
    elif kind == "points":
        body.points[0] += 0.5
    body.save(car / PRESSURE)
    if kind != "file":
        around.save(car / VELOCITY)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("scalars", r"quadpress_smpl.vtk needs one point array of shape \(8,\) \(it has: none\)"),
        ("two", "more"),
        ("vectors", r"hexvelo_smpl.vtk needs one point array of shape \(64, 3\)"),
        ("triangles", "no surface of quadrilaterals"),
        ("points", "has 65 points, not 64"),
        ("file", "hexvelo_smpl.vtk"),
    ],
)
def test_what_is_damaged_is_named_in_one_line(tmp_path: Path, kind: str, words: str) -> None:
    (car,) = publish(tmp_path, [1])
    damage(car, kind)
    with pytest.raises(LrsaError, match=words) as caught:
        read_car(car)
    assert len(caught.value.lines) == 1


def test_a_fold_that_lacks_a_car_and_a_stride_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match="param0 has 0 cars, not 100"):
        read_shapenet_car(tmp_path)
    cars = publish(tmp_path)
    cars[100].rename(tmp_path / "away")
    with pytest.raises(LrsaError, match="param1 has 98 cars, not 99"):
        read_shapenet_car(tmp_path)
    with pytest.raises(LrsaError, match="no stride 2"):
        read_shapenet_car(tmp_path, 2)
