"""Flow around airfoils: the scheme against its own laws and published coefficients, the grid, the samples."""

from functools import lru_cache

import numpy as np
import pytest

from lrsa.errors import Failure
from lrsa.problems.airfoil import implicit as airfoil_implicit
from lrsa.problems.airfoil.flow import (
    GAMMA,
    fill_ghosts,
    limited,
    residual,
    riemann_state,
    roe_flux,
    split_jacobian,
)
from lrsa.problems.airfoil.implicit import steady_flow
from lrsa.problems.airfoil.mesh import c_grid, connect, geometric, measure, naca0012
from lrsa.problems.airfoil.solver import Airfoil, at_nodes, free_stream, lift_and_drag, mach_number

SMALL = Airfoil(around=60, behind=40, layers=40, first=1 / 30, tolerance=3e-6)
"""Half of the cells."""
SHAPE = np.array([0.0, 0.03, -0.02, 0.01, 0.04, -0.03, 0.02, -0.01])
STATES = np.random.default_rng(0).uniform([0.5, -2, -2, 0.5], [2, 2, 2, 2], (20, 4))
NORMALS = np.random.default_rng(1).standard_normal((20, 2))


@lru_cache
def flow(airfoil: Airfoil, *displacements: float) -> np.ndarray:
    """The states in the cells and ghosts around an airfoil."""
    cells = connect(airfoil.behind, airfoil.around, airfoil.layers)
    geometry = measure(airfoil.nodes(np.array(displacements)), airfoil.behind)
    return steady_flow(cells, geometry, free_stream(airfoil.mach, 0.0), airfoil.tolerance)


def flux(w: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """F(U)·n, from the definition."""
    r, u, v, p = w
    energy = p / (GAMMA - 1) + r * (u**2 + v**2) / 2
    q = u * normal[0] + v * normal[1]
    return np.array([r * q, r * u * q + p * normal[0], r * v * q + p * normal[1], (energy + p) * q])


def states(conserved: np.ndarray) -> np.ndarray:
    r, u, v = conserved[0], conserved[1] / conserved[0], conserved[2] / conserved[0]
    return np.array([r, u, v, (GAMMA - 1) * (conserved[3] - r * (u**2 + v**2) / 2)])


def test_the_flux_between_equal_states_is_that_of_the_equations() -> None:
    for w, n in zip(STATES, NORMALS, strict=True):
        assert np.allclose(roe_flux(tuple(w), tuple(w), *n), flux(w, n), rtol=1e-13, atol=1e-13)


def test_what_leaves_one_cell_enters_the_other() -> None:
    for a, b, n in zip(STATES, STATES[::-1], NORMALS, strict=True):
        there, back = roe_flux(tuple(a), tuple(b), *n), roe_flux(tuple(b), tuple(a), *-n)
        assert np.allclose(np.array(there), -np.array(back), rtol=1e-12, atol=1e-12)


def test_supersonic_flow_is_upwind_and_a_resting_contact_is_kept() -> None:
    fast, slow = np.array([1.0, 4.0, 0.5, 1.0]), np.array([0.8, 3.5, -0.2, 1.3])
    assert np.allclose(roe_flux(tuple(fast), tuple(slow), 1.0, 0.0), flux(fast, np.array([1.0, 0.0])))
    light, heavy = (0.5, 0.0, 0.3, 1.0), (2.0, 0.0, -0.4, 1.0)
    assert np.allclose(roe_flux(light, heavy, 1.0, 0.0), [0, 1, 0, 0], atol=1e-14)


def test_the_split_jacobians_add_up_to_the_derivative_of_the_flux_and_go_one_way_each() -> None:
    plus, minus = np.empty((4, 4)), np.empty((4, 4))
    for w, n in zip(STATES, NORMALS, strict=True):
        split_jacobian(tuple(w), *n, 1.0, plus)
        split_jacobian(tuple(w), *n, -1.0, minus)
        r, u, v, p = w
        conserved = np.array([r, r * u, r * v, p / (GAMMA - 1) + r * (u**2 + v**2) / 2])
        h = 1e-6
        for k, e in enumerate(np.eye(4)):
            slope = (flux(states(conserved + h * e), n) - flux(states(conserved - h * e), n)) / (2 * h)
            assert np.allclose((plus + minus)[:, k], slope, rtol=1e-6, atol=1e-6)
        assert np.linalg.eigvals(plus).real.min() > -1e-12
        assert np.linalg.eigvals(minus).real.max() < 1e-12


def test_the_limiter_is_exact_for_straight_lines_and_stops_at_extrema() -> None:
    a, d = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, -0.2, 0.3, 0.4])
    assert np.allclose(limited(tuple(a - d), tuple(a), tuple(a + d)), a + d / 2)
    assert np.array_equal(limited(tuple(a + d), tuple(a), tuple(a + d)), a)
    steep = np.array(limited(tuple(a - d), tuple(a), tuple(a + 100 * d)))
    assert (np.abs(steep - a) <= np.abs(d)).all()


def test_at_the_far_field_the_free_stream_stays_and_supersonic_outflow_passes() -> None:
    infinity = free_stream(0.8, 0.0)
    for n in NORMALS:
        assert np.allclose(riemann_state(infinity, infinity, *n), infinity, rtol=1e-13, atol=1e-13)
    out = (0.7, 3.0, 0.2, 0.9)
    assert np.allclose(riemann_state(out, infinity, 2.0, 0.0), out)
    assert np.allclose(
        riemann_state(out, infinity, -2.0, 0.0), riemann_state(infinity, infinity, -2.0, 0.0), atol=2
    )


@pytest.mark.parametrize(("behind", "around"), [(110, 0), (50, 120)], ids=["no body", "flat plate"])
def test_a_uniform_flow_stays_uniform_on_a_crooked_grid(behind: int, around: int) -> None:
    """The plate lies along the flow: both are exact solutions, whatever the cells."""
    nodes = Airfoil().nodes(np.zeros(8))
    nodes[:, 0, 1] = 0.0
    nodes[1:-1, 1:-1] += 0.003 * np.random.default_rng(0).uniform(-1, 1, (219, 49, 2))
    cells, geometry = connect(behind, around, 50), measure(nodes, behind)
    assert geometry.areas.min() > 0
    infinity = free_stream(0.8, 0.0)
    w = np.tile(infinity, (220 * 50 + len(cells.wall) + len(cells.far), 1))
    r = np.empty((220 * 50, 4))
    residual(w, infinity, cells, geometry, r)
    assert np.abs(r).max() < 1e-13 * np.abs(geometry.far).max()
    assert np.abs(steady_flow(cells, geometry, infinity, 1e-12) - infinity).max() < 1e-12


def test_the_residuals_sum_up_to_what_passes_the_boundaries() -> None:
    """Nothing is lost inside or in the cut, for any states."""
    cells, geometry = connect(40, 60, 40), measure(SMALL.nodes(SHAPE), 40)
    infinity = free_stream(0.8, 0.0)
    w = np.random.default_rng(3).uniform([0.8, 0.5, -0.2, 0.8], [1.2, 1, 0.2, 1.2], (140 * 40 + 60 + 220, 4))
    r = np.empty((140 * 40, 4))
    residual(w, infinity, cells, geometry, r)
    fill_ghosts(w, infinity, cells, geometry)
    passed = np.sum([flux(w[g], n) for (_, g), n in zip(cells.far, geometry.far, strict=True)], axis=0)
    pressure = (w[cells.wall[:, 0], 3] + w[cells.wall[:, 2], 3]) / 2
    passed[1:3] += pressure @ geometry.wall
    assert np.allclose(r.sum(0), passed, rtol=1e-11, atol=1e-10)


def test_as_much_mass_flows_out_as_in_when_the_flow_is_steady() -> None:
    cells, geometry = connect(40, 60, 40), measure(SMALL.nodes(SHAPE), 40)
    w = flow(SMALL, *SHAPE)
    masses = np.array([flux(w[g], n)[0] for (_, g), n in zip(cells.far, geometry.far, strict=True)])
    inflow = -masses[masses < 0].sum()
    assert 70 < inflow < 110
    assert abs(masses.sum()) < 1e-7 * inflow


def test_a_symmetric_airfoil_has_a_symmetric_flow_and_no_lift() -> None:
    cells, geometry = connect(40, 60, 40), measure(SMALL.nodes(np.zeros(8)), 40)
    w = flow(SMALL, *np.zeros(8))
    mach = mach_number(at_nodes(w, cells, 40, (140, 40)))
    assert np.linalg.norm(mach - mach[::-1]) < 1e-6 * np.linalg.norm(mach)
    lift, drag = lift_and_drag(w, cells, geometry, 0.8, 0.0)
    assert abs(lift) < 1e-6
    assert 0.01 < drag < 0.06


def test_the_mirrored_airfoil_has_the_mirrored_flow() -> None:
    cells = connect(40, 60, 40)
    one, other = (mach_number(at_nodes(flow(SMALL, *d), cells, 40, (140, 40))) for d in (SHAPE, -SHAPE[::-1]))
    assert np.linalg.norm(one - one[::-1]) > 0.02 * np.linalg.norm(one)
    assert np.linalg.norm(one - other[::-1]) < 1e-6 * np.linalg.norm(one)


def test_the_flow_is_transonic_and_comes_to_rest_at_the_nose() -> None:
    """Isentropic up to there: p₀/p = (1 + 0.2 M²)^3.5, of which so coarse a grid sees nine tenths."""
    cells = connect(40, 60, 40)
    w = flow(SMALL, *SHAPE)
    nodes = at_nodes(w, cells, 40, (140, 40))
    mach = mach_number(nodes)
    assert 0.9 < nodes[..., 3].max() / 1.128**3.5 < 1
    assert 1.1 < mach.max() < 1.7
    assert np.abs(mach[:, -1] - 0.8).max() < 0.02
    assert np.abs(nodes[[0, -1], :, 3] - 1).max() < 0.02
    assert np.array_equal(mach[:41, 0], mach[:-42:-1, 0])


def test_a_flow_that_does_not_settle_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airfoil_implicit, "MOST", 3)
    with pytest.raises(Failure, match="does not settle to 3e-06 in 3 steps"):
        SMALL.solve(SHAPE)


@pytest.mark.parametrize("seed", range(50))
def test_every_grid_has_positive_cells_and_its_cut_closed(seed: int) -> None:
    airfoil = Airfoil()
    rng = np.random.default_rng(seed)
    displacements = airfoil.displacements(rng)
    assert displacements[0] == 0
    assert 0.02 < np.abs(displacements[1:]).max() <= 0.05
    nodes = airfoil.nodes(displacements)
    assert nodes.shape == (221, 51, 2)
    assert np.array_equal(nodes[:51, 0], nodes[:169:-1, 0])
    geometry = measure(nodes, 50)
    assert geometry.areas.min() > 1e-6
    # The polygon of the boundary; the cut is walked along twice, in both directions.
    x, y = np.concatenate([nodes[:, 0], nodes[::-1, -1]]).T
    assert np.isclose(geometry.areas.sum(), abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2)


def test_the_grid_is_the_published_one() -> None:
    nodes = Airfoil().nodes(np.zeros(8))
    assert np.allclose(
        nodes[[0, 50, 110, 170, 220], 0], [[40, 0], [1, 0], [0, 0], [1, 0], [40, 0]], atol=1e-12
    )
    assert np.allclose(nodes[[0, 50, 110, 170, 220], -1], [[40, 40], [1, 40], [-39, 0], [1, -40], [40, -40]])
    x, y = nodes[50:111, 0].T
    assert np.allclose(y, naca0012(x))
    assert np.allclose(x[::-1][:4] * 59, [0, 0.25, 1, 2])
    assert np.isclose(y.max(), 0.06, atol=1e-4)
    assert np.isclose(np.hypot(*(nodes[110, 1] - nodes[110, 0])), 39 / 40 * 2 / 120)
    steps = np.diff(geometric(50, 2 / 120 / 40))
    assert np.allclose(steps[1:37] / steps[:36], 1.02)
    assert (steps[1:] > steps[:-1]).all()


def test_a_displaced_corner_moves_its_end_of_its_side_of_the_box_most() -> None:
    """Cubic in x and linear in y: the last corner is above on the left, its value there is 1."""
    nodes = Airfoil().nodes(np.array([0, 0, 0, 0, 0, 0, 0, 0.05]))
    moved = nodes[50:171, 0, 1] - Airfoil().nodes(np.zeros(8))[50:171, 0, 1]
    x, y = Airfoil().nodes(np.zeros(8))[50:171, 0].T
    t = (x - 0.5) / 0.75
    expected = 0.05 * (t - 1) * (t**2 - 1 / 9) / (-2 * 8 / 9) * (0.5 + y / 0.2)
    assert np.allclose(moved, expected)


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_case() -> None:
    fast = Airfoil(**{**vars(SMALL), "tolerance": 1e-3})
    one, same, other = (fast.sample(np.random.default_rng(seed)) for seed in (7, 7, 8))
    for name, array in one.arrays().items():
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert not np.array_equal(one.x, other.x)


def test_a_sample_is_the_mach_number_at_the_nodes_weighted_by_area() -> None:
    case = Airfoil(tolerance=1e-3).sample(np.random.default_rng(0))
    assert case.grid == (221, 51)
    assert case.names == Airfoil.names
    assert case.u is not None
    assert case.weights is not None
    assert case.surface is not None
    assert case.surface.sum() == 121
    assert case.x.dtype == case.u.dtype == case.weights.dtype == np.float32
    assert case.weights.min() > 0
    assert np.isclose(case.weights.sum(), 40 * 40 * np.pi / 2 + 80 * 39, rtol=1e-3)
    case.check_finite("the case")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_longer_iterations_change_little(seed: int) -> None:
    """Relative L2: the default and the fast fidelity against steps thirty and a thousand times smaller."""
    fields = {}
    for tolerance in (1e-7, 3e-6, 1e-4):
        case = Airfoil(tolerance=tolerance).sample(np.random.default_rng(seed))
        assert case.u is not None
        fields[tolerance] = case.u
    for tolerance, bound in ((3e-6, 5e-4), (1e-4, 3e-3)):
        error = np.linalg.norm(fields[tolerance] - fields[1e-7]) / np.linalg.norm(fields[1e-7])
        assert error < bound, (tolerance, error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("incidence", "lifts", "drags"),
    [(0.0, (-1e-3, 1e-3), (0.0085, 0.0100)), (1.25, (0.33, 0.36), (0.021, 0.024))],
)
def test_lift_and_drag_of_the_naca_0012_are_the_published_ones(
    incidence: float, lifts: tuple[float, float], drags: tuple[float, float]
) -> None:
    """Mach 0.8, on a grid that is fine at the leading edge; published computations lie in these ranges."""
    lift, drag = fine_coefficients(0.8, incidence)
    assert lifts[0] < lift < lifts[1]
    assert drags[0] < drag < drags[1]


@pytest.mark.slow
def test_without_shocks_there_is_hardly_any_drag() -> None:
    """d'Alembert: zero for subsonic flow; what is there is the scheme's."""
    lift, drag = fine_coefficients(0.5, 0.0)
    assert abs(lift) < 1e-3
    assert abs(drag) < 1e-3


def fine_coefficients(mach: float, incidence: float) -> tuple[float, float]:
    around, behind, layers = 240, 60, 80
    stations = 1 - np.cos(np.linspace(0, 1, around // 2 + 1) * 0.9 * np.pi / 2)
    stations = stations / stations[-1]
    cells = connect(behind, around, layers)
    geometry = measure(c_grid(np.zeros(8), stations, behind, layers, 0.004), behind)
    w = steady_flow(cells, geometry, free_stream(mach, incidence), 1e-5)
    return lift_and_drag(w, cells, geometry, mach, incidence)
