"""Darcy flow: the scheme against exact solutions and its own laws, the samples against the published ones."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as splinalg

from lrsa.errors import LrsaError
from lrsa.numerics.random_fields import cosine_field
from lrsa.problems.darcy.solver import Darcy, solve_darcy

WALLS = (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1])


def centres(size: int) -> tuple[np.ndarray, np.ndarray]:
    t = (np.arange(size) + 0.5) / size
    x, y = np.meshgrid(t, t, indexing="ij")
    return x, y


def coefficient(seed: int, size: int = 85) -> np.ndarray:
    return np.where(cosine_field(np.random.default_rng(seed), size, 3.0, 2.0) >= 0, 12.0, 3.0)


def manufactured_error(size: int, strength: float) -> float:
    """a = exp(c sin(3x+1) cos(2y)), u = sin(πx) sin(2πy), f = -∇·(a∇u): relative L2 error."""
    x, y = centres(size)
    a = np.exp(strength * np.sin(3 * x + 1) * np.cos(2 * y))
    a_x = 3 * strength * a * np.cos(3 * x + 1) * np.cos(2 * y)
    a_y = -2 * strength * a * np.sin(3 * x + 1) * np.sin(2 * y)
    u = np.sin(np.pi * x) * np.sin(2 * np.pi * y)
    u_x = np.pi * np.cos(np.pi * x) * np.sin(2 * np.pi * y)
    u_y = 2 * np.pi * np.sin(np.pi * x) * np.cos(2 * np.pi * y)
    f = 5 * np.pi**2 * a * u - a_x * u_x - a_y * u_y
    return float(np.linalg.norm(solve_darcy(a, f) - u) / np.linalg.norm(u))


@pytest.mark.parametrize("strength", [1.0, 2.3], ids=["contrast 6", "contrast 56"])
def test_second_order_on_a_manufactured_solution(strength: float) -> None:
    sizes = np.array([27, 53, 106])
    errors = np.array([manufactured_error(s, strength) for s in sizes])
    orders = np.log(errors[:-1] / errors[1:]) / np.log(sizes[1:] / sizes[:-1])
    assert (orders > 1.9).all(), (errors, orders)
    assert errors[-1] < 3e-4


def test_the_iteration_solves_the_assembled_system() -> None:
    """The five-point matrix built entry by entry and factorised."""
    size, a = 31, coefficient(0, 31)
    matrix = sp.lil_array((size**2, size**2))
    for i, j in np.ndindex(size, size):
        for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            inside = 0 <= k < size and 0 <= m < size
            conductance = (a[i, j] + a[k, m]) / 2 if inside else 2 * a[i, j]
            matrix[i * size + j, i * size + j] += conductance * size**2
            if inside:
                matrix[i * size + j, k * size + m] = -conductance * size**2
    f = np.random.default_rng(1).standard_normal((size, size))
    direct = np.asarray(splinalg.spsolve(matrix.tocsc(), f.ravel())).reshape(size, size)
    assert np.linalg.norm(solve_darcy(a, f) - direct) < 1e-8 * np.linalg.norm(direct)


def energy(a: np.ndarray, u: np.ndarray) -> float:
    """∫ a |∇u|² of the scheme."""
    inner = ((a[1:] + a[:-1]) / 2 * np.diff(u, axis=0) ** 2).sum()
    inner += ((a[:, 1:] + a[:, :-1]) / 2 * np.diff(u, axis=1) ** 2).sum()
    return float(inner + 2 * sum((a * u**2)[side].sum() for side in WALLS))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-8, 1e-11])
def test_the_energy_error_stays_below_the_tolerance(tolerance: float) -> None:
    a, f = coefficient(2), np.random.default_rng(0).standard_normal((85, 85))
    exact, u = solve_darcy(a, f, tolerance=1e-13), solve_darcy(a, f, tolerance=tolerance)
    assert energy(a, u - exact) < tolerance**2 * energy(a, exact)


@pytest.mark.parametrize("seed", range(3))
def test_all_that_flows_in_flows_out_through_the_walls(seed: int) -> None:
    """Divergence theorem: the flux 2 a u / h through the wall faces of length h is the integral of f = 1."""
    a = coefficient(seed)
    u = solve_darcy(a, 1.0)
    outflow = 2 * sum((a * u)[side].sum() for side in WALLS)
    assert abs(outflow - 1) < 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_the_pressure_is_positive_and_highest_inside(seed: int) -> None:
    u = solve_darcy(coefficient(seed), 1.0)
    assert u.min() > 0
    assert u[1:-1, 1:-1].max() == u.max()


def test_mirrored_and_transposed_coefficients_give_mirrored_and_transposed_solutions() -> None:
    a = coefficient(4)
    u = solve_darcy(a, 1.0)
    for turn in (np.transpose, np.flipud, np.fliplr):
        assert np.abs(solve_darcy(turn(a), 1.0) - turn(u)).max() < 1e-8 * u.max()


def test_the_solution_scales_with_the_source_and_against_the_coefficient() -> None:
    a = coefficient(5)
    assert np.allclose(solve_darcy(5 * a, 10.0), 2 * solve_darcy(a, 1.0), rtol=1e-7, atol=0)
    assert not solve_darcy(a, 0.0).any()


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_case() -> None:
    darcy = Darcy(resolution=85, stride=2)
    one, same, other = (darcy.sample(np.random.default_rng(seed)) for seed in (7, 7, 8))
    for name, array in one.arrays().items():
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert one.u is not None
    assert other.u is not None
    assert not np.array_equal(one.u, other.u)


def test_a_sample_is_every_fifth_cell_centre_in_ij_order() -> None:
    whole = Darcy(resolution=43, stride=1).sample(np.random.default_rng(0))
    part = Darcy(resolution=43, stride=5).sample(np.random.default_rng(0))
    assert part.grid == (9, 9)
    assert part.names == Darcy.names
    assert part.weights is None
    kept = whole.strided(5)
    for name, array in part.arrays().items():
        assert array.dtype == np.float32
        assert np.array_equal(array, kept.arrays()[name]), name
    x, y = centres(43)
    assert np.allclose(whole.x, np.stack([x.ravel(), y.ravel()], 1))


def test_the_random_field_has_the_published_spectrum() -> None:
    """Var of the cosine mode (j, k) is τ²(π²(j² + k²) + τ²)^-2, and the mean of a field is zero."""
    rng, size = np.random.default_rng(0), 24
    x, y = centres(size)
    fields = np.stack([cosine_field(rng, size, 3.0, 2.0) for _ in range(1000)])
    assert np.abs(fields.mean((1, 2))).max() < 1e-12
    for j, k in ((1, 0), (1, 2), (3, 1)):
        mode = np.cos(np.pi * j * x) * np.cos(np.pi * k * y)
        mode /= np.sqrt((mode**2).mean())
        variance = ((fields * mode).mean((1, 2)) ** 2).mean()
        expected = 9 / (np.pi**2 * (j**2 + k**2) + 9) ** 2
        assert 0.8 < variance / expected < 1.25, (j, k)


@pytest.mark.parametrize(
    "a", [np.ones((3, 4)), np.zeros((3, 3)), np.full((3, 3), np.nan), np.full((3, 3), np.inf)]
)
def test_a_coefficient_that_is_no_permeability_is_refused(a: np.ndarray) -> None:
    with pytest.raises(LrsaError, match="square array of positive"):
        solve_darcy(a, 1.0)


def test_a_source_that_is_not_finite_is_refused() -> None:
    with pytest.raises(LrsaError, match="right-hand side"):
        solve_darcy(np.ones((8, 8)), np.full((8, 8), np.nan))


def test_the_benchmark_has_the_statistics_of_the_published_files() -> None:
    """Official files: mean |u| on the outermost ring 5.17e-5, RMS inside 6.95e-3, values 3 and 12 only."""
    rings, squares = [], []
    for seed in range(6):
        case = Darcy().sample(np.random.default_rng(seed))
        assert case.f is not None
        assert case.u is not None
        assert set(np.unique(case.f)) == {3.0, 12.0}
        u = case.u.reshape(85, 85)
        inside = np.zeros((85, 85), bool)
        inside[1:-1, 1:-1] = True
        rings.append(np.abs(u[~inside]).mean())
        squares.append((u[inside] ** 2).mean())
    assert 4.2e-5 < np.mean(rings) < 6.2e-5
    assert 6.0e-3 < np.sqrt(np.mean(squares)) < 8.0e-3
