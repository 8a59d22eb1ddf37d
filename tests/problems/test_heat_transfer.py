"""Heat Transfer: the gear is a gear, and its solver solves the equation."""

import numpy as np
import pytest
from scipy.special import erfc

from lrsa.data.store import Dataset
from lrsa.problems.catalogue import get
from lrsa.problems.heat_transfer.gear import Mesh, cross_section, extruded, gear
from lrsa.problems.heat_transfer.solver import Conduction, HeatTransfer, covariance_root, matrices
from lrsa.problems.making import make_dataset

SOLVER = HeatTransfer()


def faces(tetrahedra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different triangles of tetrahedra, and in how many of these each is."""
    corners = np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
    return np.unique(np.sort(tetrahedra[:, corners].reshape(-1, 3), axis=1), axis=0, return_counts=True)


def volumes(mesh: Mesh) -> np.ndarray:
    corners = mesh.points[mesh.tetrahedra]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6


def test_the_gear_has_the_published_size() -> None:
    mesh = gear()
    assert mesh.points.shape == (7199, 3)
    assert mesh.face.shape == (186, 3)
    assert mesh.triangles.shape == (300, 3)
    assert not mesh.face[:, 2].any()
    assert (mesh.points[186:, 2] > 0).all()
    np.testing.assert_allclose(mesh.points.min(0), [-19.32, -19.32, 0], atol=1e-9)
    np.testing.assert_allclose(mesh.points.max(0), [19.32, 19.32, 50], atol=1e-9)


@pytest.mark.parametrize("finer", [1, 2])
def test_its_tetrahedra_fill_it_once(finer: int) -> None:
    """Right-handed, each face of one or two of them, the outer ones a closed surface; the volume is right."""
    mesh = gear(finer)
    assert volumes(mesh).min() > 0
    triangles, count = faces(mesh.tetrahedra)
    assert set(count) == {1, 2}
    outer = triangles[count == 1]
    edges, meetings = np.unique(outer[:, [[0, 1], [0, 2], [1, 2]]].reshape(-1, 2), axis=0, return_counts=True)
    assert set(meetings) == {2}
    assert len(np.unique(outer)) - len(edges) + len(outer) == 0, "one hole: the bore"
    assert abs(volumes(mesh).sum() / (50 * mesh.face_areas().sum()) - 1) < 2e-3
    assert set(np.unique(mesh.tetrahedra)) == set(range(len(mesh.points)))


def test_the_finer_gear_has_the_nodes_of_the_coarse_one() -> None:
    coarse, fine = (cross_section(k)[0] for k in (1, 2))
    distance = np.linalg.norm(coarse[:, None] - fine, axis=-1).min(1)
    assert distance.max() < 1e-12


def test_constants_have_no_flow_and_the_mass_of_the_volume() -> None:
    mesh = gear()
    mass, stiffness = matrices(mesh.points, mesh.tetrahedra)
    ones = np.ones(len(mesh.points))
    assert np.abs(stiffness @ ones).max() < 1e-12 * abs(stiffness).max()
    assert abs(ones @ mass @ ones / volumes(mesh).sum() - 1) < 1e-12
    x, y, z = mesh.points.T
    assert abs(z @ stiffness @ (z + x) / volumes(mesh).sum() - 1) < 1e-12, "∫∇z·∇(z + x)"
    assert abs(x @ stiffness @ y) < 1e-9


def test_second_order_on_a_slab_that_is_heated_at_once() -> None:
    """θ = erfc(z / 2√(αt)): the face jumps to 1 at t = 0. Layers and steps are halved together."""
    errors = np.array([slab_error(layers) for layers in (25, 50, 100)])
    assert errors[-1] < 4e-4
    assert (np.log2(errors[:-1] / errors[1:]) > 1.9).all()


def test_second_order_in_time_in_the_gear() -> None:
    face = SOLVER.sample(np.random.default_rng(0)).arrays()["f"][7199:, 0].astype(float)
    exact = HeatTransfer(steps=240).solve(face)
    found = [HeatTransfer(steps=steps).solve(face) for steps in (15, 30, 60)]
    errors = np.array([np.linalg.norm(u - exact) / np.linalg.norm(exact) for u in found])
    assert (np.log2(errors[:-1] / errors[1:]) > 1.95).all()
    assert errors[-1] < 1e-4


def slab_error(layers: int) -> float:
    square, triangles = np.array([[0, 0], [1, 0], [0, 1], [1, 1.0]]), np.array([[0, 1, 2], [1, 3, 2]])
    heights = np.linspace(0, 50, layers + 1)
    points, tetrahedra = extruded(square, triangles, heights, 0 * heights)
    reach = 48.0
    theta = Conduction(Mesh(points, tetrahedra, triangles), 4, reach / layers).advance(np.ones(4), layers)
    exact = erfc(points[:, 2] / (2 * np.sqrt(reach)))
    return float(np.linalg.norm(theta - exact) / np.linalg.norm(exact))


def test_nothing_becomes_colder_than_the_coldest_or_hotter_than_the_hottest() -> None:
    """And after long the gear has the temperature of its face."""
    face = np.random.default_rng(0).uniform(50, 150, 186)
    field = SOLVER.solve(face)
    assert np.array_equal(field[:186], face)
    assert 20 <= field.min() < field.max() <= face.max()
    long = HeatTransfer(duration=3000.0).solve(np.full(186, 70.0))
    assert np.abs(long - 70).max() < 0.1


def test_the_map_is_linear_in_the_rise_of_the_face() -> None:
    a, b = np.random.default_rng(0).normal(100, 30, (2, 186))
    rise = [SOLVER.solve(face) - 20 for face in (a, b, a + b - 20)]
    np.testing.assert_allclose(rise[2], rise[0] + rise[1], atol=1e-10)


def test_a_case_is_the_union_of_what_asks_and_what_gives() -> None:
    case = SOLVER.sample(np.random.default_rng(0))
    gives = np.arange(7385) >= 7199
    assert case.f is not None
    assert case.u is not None
    assert case.f_mask is not None
    assert case.u_mask is not None
    assert case.weights is not None
    assert np.array_equal(case.f_mask[:, 0], gives)
    assert case.f_mask[:, 1].all()
    assert np.array_equal(case.f[:, 1], gives)
    assert np.array_equal(case.u_mask[:, 0], ~gives)
    assert np.array_equal(case.weights > 0, gives)
    assert np.array_equal(case.f[gives, 0], case.u[:186, 0]), "the face is part of the gear"
    assert abs(case.weights.sum() / gear().face_areas().sum() - 1) < 1e-5
    assert set(case.arrays()["cell_types"]) == {10}


def test_faces_have_the_covariance_that_they_are_drawn_with() -> None:
    face, root = gear().face, covariance_root(SOLVER.length)
    values = np.random.default_rng(1).standard_normal((4000, 186)) @ root
    expected = np.exp(-np.square(face[:, None] - face).sum(-1) / (2 * SOLVER.length**2))
    assert np.abs(np.cov(values.T) - expected).max() < 0.12
    np.testing.assert_allclose(root @ root, expected, atol=1e-9)
    drawn = SOLVER.sample(np.random.default_rng(3)).arrays()["f"][7199:, 0]
    rise = (drawn - SOLVER.mean) / SOLVER.deviation
    np.testing.assert_allclose(rise, root @ np.random.default_rng(3).standard_normal(186), atol=1e-5)


def test_the_set_keeps_the_mesh_and_the_masks_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("heat") / "heat.h5"
    make_dataset(get("heat-transfer"), samples=2, test=1, out=path, workers=1)
    assert path.stat().st_size < 3e6
    assert Dataset(path, "train").fixed_points
