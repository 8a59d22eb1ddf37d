"""The eigenfunctions of the Laplace operator at the points of a case."""

import builtins
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import Delaunay

from lrsa.errors import LrsaError
from lrsa.geometry import eigenbasis as module
from lrsa.geometry.eigenbasis import box_eigenfunctions, eigenbasis, laplacian, solve
from lrsa.pointset import PointSet


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    return tmp_path


def square(n: int, kind: str = "quads", sides: tuple[float, float] = (1.0, 1.0)) -> PointSet:
    """n x n points of a rectangle with quadrilaterals, triangles, or no cells."""
    axis = np.linspace(0, 1, n)
    x = np.stack(np.meshgrid(axis * sides[0], axis * sides[1], indexing="ij"), axis=-1).reshape(-1, 2)
    i = np.arange(n * n).reshape(n, n)
    quads = np.stack([i[:-1, :-1], i[1:, :-1], i[1:, 1:], i[:-1, 1:]], axis=-1).reshape(-1, 4)
    cells = {"quads": quads, "triangles": np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]]), "cloud": None}
    return PointSet(x=x, cells=cells[kind])


def scattered(dim: int, n: int) -> PointSet:
    """A Delaunay mesh of random points of the unit square or cube, its corners among them."""
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * dim), axis=-1).reshape(-1, dim)
    x = np.concatenate([corners, np.random.default_rng(0).random((n, dim))])
    return PointSet(x=x, cells=Delaunay(x).simplices.astype(np.int64))


def cube(n: int, kind: str = "tetrahedra") -> PointSet:
    """n³ small cubes, whole, as two wedges, or each split into the six tetrahedra along its diagonal."""
    axis = np.linspace(0, 1, n + 1)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    strides = np.array([(n + 1) ** 2, n + 1, 1])
    low = np.arange((n + 1) ** 3).reshape((n + 1,) * 3)[:-1, :-1, :-1].reshape(-1, 1)
    if kind != "tetrahedra":
        corners = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
        cells = low + np.array(corners) @ strides
        cells = cells if kind == "hexahedra" else cells[:, [[0, 1, 2, 4, 5, 6], [0, 2, 3, 4, 6, 7]]]
        return PointSet(x=x, cells=cells.reshape(-1, cells.shape[-1]))
    paths = np.array([np.cumsum([0, *strides[list(order)]]) for order in permutations(range(3))])
    return PointSet(x=x, cells=(low[:, None] + paths).reshape(-1, 4))


EXACT = box_eigenfunctions((20, 20), 10)[0]
"""π²(m² + n²), the Neumann eigenvalues of the unit square."""


@pytest.mark.parametrize("kind", ["quads", "triangles"])
def test_the_eigenvalues_of_the_square_converge_with_second_order(kind: str) -> None:
    errors = [np.abs(solve(square(n, kind), 10)[0] - EXACT).max() for n in (9, 17, 33)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.9
    assert errors[-1] < 0.02 * EXACT[-1]


def test_a_mesh_of_triangles_in_space_has_the_eigenvalues_of_the_plane() -> None:
    flat = square(12)
    tilted = np.concatenate([flat.x @ np.array([[0.6, 0.0], [0.0, 1.0]]), 0.8 * flat.x[:, :1]], axis=1)
    in_space = solve(PointSet(x=tilted, cells=flat.cells), 8)[0]
    np.testing.assert_allclose(in_space, solve(flat, 8)[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["tetrahedra", "wedges", "hexahedra"])
def test_the_eigenvalues_of_a_cube_converge_with_second_order(kind: str) -> None:
    errors = [np.abs(solve(cube(n, kind), 4)[0][1:] - np.pi**2).max() for n in (4, 8, 16)]
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 1.8
    assert errors[-1] < 0.02 * np.pi**2
    np.testing.assert_allclose(solve(cube(8, kind), 4)[1][:, 0], 1.0, rtol=1e-6)


def test_a_cloud_of_points_of_the_square() -> None:
    values, functions = solve(square(30, "cloud"), 10)
    np.testing.assert_allclose(values[1:], EXACT[1:], rtol=0.02)
    np.testing.assert_allclose(functions[:, 0], functions[0, 0], rtol=1e-4)


@pytest.mark.parametrize("case", [square(15), scattered(2, 300), scattered(3, 400)])
@pytest.mark.parametrize("modes", [12, 80])
def test_the_eigenfunctions_are_orthonormal_in_the_mass_matrix(case: PointSet, modes: int) -> None:
    """Few modes come from Lanczos iterations, many from a dense solver."""
    _, mass, used = laplacian(case.x.astype(float), case.cells, case.cell_types)
    functions = solve(case, modes)[1][used]
    np.testing.assert_allclose(functions.T @ (mass @ functions), np.eye(modes), atol=1e-8)


def test_units_do_not_matter() -> None:
    metres, millimetres = square(10), square(10, sides=(1e3, 1e3))
    np.testing.assert_allclose(solve(millimetres, 6)[0] * 1e6, solve(metres, 6)[0], atol=1e-7)
    _, mass, _ = laplacian(millimetres.x, millimetres.cells, millimetres.cell_types)
    functions = solve(millimetres, 6)[1]
    np.testing.assert_allclose(functions.T @ (mass @ functions), np.eye(6), atol=1e-8)


def test_a_structured_grid_has_the_basis_of_its_index_box() -> None:
    """In closed form; a finite-element basis of the same points spans the same functions."""
    grid = PointSet(x=np.random.default_rng(0).random((21 * 21, 2)), grid=(21, 21))
    exact, meshed = eigenbasis(grid, 6), solve(square(21), 6)[1]  # the sixth ends an eigenspace
    inside = exact @ np.linalg.lstsq(exact, meshed, rcond=None)[0]
    assert np.linalg.norm(inside - meshed) < 0.02 * np.linalg.norm(meshed)
    weights = np.outer(*[np.r_[0.5, np.ones(19), 0.5] / 20] * 2).ravel()
    np.testing.assert_allclose(exact.T @ (weights[:, None] * exact), np.eye(6), atol=1e-6)


def test_the_second_call_reads_the_same_bits_from_the_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = eigenbasis(square(12), 9)
    assert first.dtype == np.float32
    assert first.shape == (144, 9)
    assert len(list((home / "basis").iterdir())) == 1
    monkeypatch.setattr(module, "solve", None)  # a second computation would fail
    assert eigenbasis(square(12), 9).tobytes() == first.tobytes()


def test_other_points_cells_or_modes_are_other_entries(home: Path) -> None:
    for case, modes in (
        (square(8), 4),
        (square(8), 5),
        (square(8, "triangles"), 4),
        (square(8, sides=(1, 2)), 4),
    ):
        eigenbasis(case, modes)
    assert len(list((home / "basis").iterdir())) == 4


@pytest.mark.parametrize("harm", ["truncated", "foreign", "empty", "wrong shape", "not a number"])
def test_a_damaged_cache_file_is_computed_again(home: Path, harm: str) -> None:
    first = eigenbasis(square(12), 9)
    (path,) = (home / "basis").iterdir()
    content = path.read_bytes()
    if harm == "wrong shape":
        np.save(path, first[:, :5])
    elif harm == "not a number":
        np.save(path, first * np.float32("nan"))
    else:
        path.write_bytes(
            {"truncated": content[:-100], "foreign": b"PK\x03\x04 something", "empty": b""}[harm]
        )
    np.testing.assert_array_equal(eigenbasis(square(12), 9), first)
    assert path.read_bytes() == content


def test_the_computation_is_deterministic_with_fixed_signs() -> None:
    first, second = solve(scattered(2, 200), 8)[1], solve(scattered(2, 200), 8)[1]
    np.testing.assert_array_equal(first, second)
    assert (np.abs(first).max(axis=0) == first.max(axis=0)).all()


def test_a_point_without_cells_takes_the_value_of_its_nearest_neighbour() -> None:
    case = square(10)
    lone = PointSet(x=np.concatenate([case.x, [[0.51, 0.02]]]), cells=case.cells)
    basis = eigenbasis(lone, 6)
    nearest = int(np.square(case.x - [0.51, 0.02]).sum(axis=1).argmin())
    np.testing.assert_array_equal(basis[-1], basis[nearest])


def test_the_types_that_cells_carry_are_part_of_the_entry(home: Path) -> None:
    """Four points that lie nearly flat, as two triangles and as a tetrahedron."""
    x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0.1]])
    flat, solid = (PointSet(x=x, cells=np.arange(4)[None], cell_types=np.array([k])) for k in (9, 10))
    assert not np.allclose(eigenbasis(flat, 3), eigenbasis(solid, 3))
    assert len(list((home / "basis").iterdir())) == 2


def test_patches_on_a_volume_do_not_change_its_eigenfunctions() -> None:
    solid = cube(4, "hexahedra")
    assert solid.cells is not None
    patch = np.pad(solid.cells[:16, :4], ((0, 0), (0, 4)), constant_values=-1)
    types = np.array([9] * len(patch) + [12] * len(solid.cells))
    both = PointSet(x=solid.x, cells=np.concatenate([patch, solid.cells]), cell_types=types)
    np.testing.assert_array_equal(eigenbasis(both, 6), eigenbasis(solid, 6))


def test_what_has_no_eigenfunctions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LrsaError, match="fewer modes"):
        eigenbasis(square(3), 10)
    with pytest.raises(LrsaError, match="split them"):
        eigenbasis(PointSet(x=np.random.rand(7, 3), cells=np.arange(7)[None]), 2)  # noqa: NPY002
    with pytest.raises(LrsaError, match="cells without extent"):
        eigenbasis(PointSet(x=np.random.rand(7, 3), cells=np.arange(7)[:, None]), 2)  # noqa: NPY002
    with pytest.raises(LrsaError, match="takes 2 or 3"):
        eigenbasis(PointSet(x=np.random.rand(50, 1)), 2)  # noqa: NPY002

    def without(name: str, *rest: Any, real: Any = builtins.__import__) -> Any:
        if name == "robust_laplacian":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LrsaError, match="spectral"):
        eigenbasis(square(8, "cloud"), 4)
