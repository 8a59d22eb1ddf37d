"""Pipe: the elements against exact flows and their own laws, the samples against the published recipe."""

import numpy as np
import pytest

from lrsa.errors import Failure, LrsaError
from lrsa.numerics.taylor_hood import SteadyFlow, TaylorHood
from lrsa.problems.pipe.solver import LENGTH, Pipe, centre_line, space


def theta(seed: int) -> np.ndarray:
    """The parameters of the pipe that the generator of that seed gives."""
    return np.random.default_rng(seed).uniform(-1, 1, 9)


def velocity(seed: int, elements: int) -> np.ndarray:
    """(n, n, 2) float64."""
    solver = Pipe(elements=elements)
    u, _ = solver.flow(theta(seed)).solve(solver.start(theta(seed)))
    return u.reshape(2 * elements + 1, -1, 2)


def difference(seed: int, coarse: int, fine: int) -> float:
    """Relative, of u_x at the nodes that both grids have."""
    step = np.gcd(coarse, fine)
    u, truth = (velocity(seed, n)[:: n // step, :: n // step, 0] for n in (coarse, fine))
    return float(np.linalg.norm(u - truth) / np.linalg.norm(truth))


def simpson(values: np.ndarray) -> np.ndarray:
    """(..., 2n + 1) -> (...) the integral over a width of 1, exact for the elements."""
    weights = np.tile([2.0, 4.0], values.shape[-1] // 2 + 1)[:-1]
    weights[[0, -1]] = 1
    return values @ weights / weights.sum()


@pytest.mark.parametrize("viscosity", [0.005, 1.0])
def test_parabolic_flow_is_exact_in_a_straight_pipe(viscosity: float) -> None:
    """Poiseuille: u = ¼ - y², p = 2 ν (10 - x); from a start that is wrong inside."""
    solver = Pipe(elements=8, viscosity=viscosity)
    exact = solver.start(np.zeros(9))
    rng, held = np.random.default_rng(0), ~np.isin(np.arange(2 * 17**2), space(8).free).reshape(-1, 2)
    guess = np.where(held, exact, exact + 0.05 * rng.standard_normal(exact.shape))
    u, p = solver.flow(np.zeros(9)).solve(guess)
    assert np.abs(u - exact).max() < 1e-10
    x = np.linspace(0, LENGTH, 9)
    assert np.abs(p.reshape(9, 9) - 2 * viscosity * (LENGTH - x)[:, None]).max() < 1e-9


def manufactured(n: int, viscosity: float = 0.05) -> tuple[float, float]:
    """L2 errors of velocity and pressure on n × n bent elements of a unit square, with a natural outlet.

    u = g h', v = -g' h, p = (1 - x) cos y with g = 1 + (1 - x)³ and h = sin 2y: no stress at x = 1.
    """
    t = np.linspace(0, 1, 2 * n + 1)
    a, b = np.meshgrid(t, t, indexing="ij")
    x, y = a + 0.05 * np.sin(np.pi * a) * np.sin(3 * b), b + 0.1 * np.sin(4 * a)
    nodes = np.stack([x, y], axis=-1).reshape(-1, 2)
    held = np.zeros(x.shape, bool)
    held[0], held[:, 0], held[:, -1] = True, True, True
    flow = SteadyFlow(TaylorHood(held), nodes, viscosity)

    def fields(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocity, pressure and the force that drives them."""
        g, g1, g2, g3 = 1 + (1 - x) ** 3, -3 * (1 - x) ** 2, 6 * (1 - x), -6.0
        h, h1, h2, h3 = np.sin(2 * y), 2 * np.cos(2 * y), -4 * np.sin(2 * y), -8 * np.cos(2 * y)
        u, v = g * h1, -g1 * h
        fx = u * g1 * h1 + v * g * h2 - viscosity * (g2 * h1 + g * h3) - np.cos(y)
        fy = -u * g2 * h - v * g1 * h1 + viscosity * (g3 * h + g1 * h2) - (1 - x) * np.sin(y)
        return np.stack([u, v], axis=-1), (1 - x) * np.cos(y), np.stack([fx, fy], axis=-1)

    def at_points(values: np.ndarray) -> np.ndarray:
        return flow.values.T @ values[flow.space.elements]

    exact, pressure, force = fields(*np.moveaxis(at_points(nodes), -1, 0))
    load = np.zeros(nodes.shape)
    np.add.at(load, flow.space.elements, flow.values @ (force * flow.measure[..., None]))
    boundary = fields(*nodes.T)[0]
    guess = np.where(held.ravel()[:, None], boundary, 0.8 * boundary)
    u, p = flow.solve(guess, load)
    errors = (at_points(u) - exact, (p[flow.space.corners] @ flow.pressures - pressure)[..., None])
    return tuple(float(np.sqrt((e**2 * flow.measure[..., None]).sum())) for e in errors)  # pyright: ignore[reportReturnType]


def test_third_order_velocity_and_second_order_pressure_on_a_manufactured_solution() -> None:
    errors = np.array([manufactured(n) for n in (5, 10, 20)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert orders[:, 0].min() > 2.9, (errors, orders)
    assert orders[:, 1].min() > 1.9, (errors, orders)


def test_the_tangent_is_the_derivative_of_the_forces() -> None:
    """Central differences, which are exact: the forces are quadratic."""
    solver, rng = Pipe(elements=4), np.random.default_rng(0)
    flow = solver.flow(theta(1))
    free = flow.space.free
    w, step = rng.standard_normal((2, flow.space.unknowns))
    step[np.setdiff1d(np.arange(len(step)), free)] = 0
    slope = (flow.forces(w + step) - flow.forces(w - step))[free] / 2
    assert np.abs(flow.tangent(w) @ step[free] - slope).max() < 1e-12 * np.abs(slope).max()


def test_newton_converges_quadratically() -> None:
    solver, history = Pipe(elements=16), list[float]()
    solver.flow(theta(0)).solve(solver.start(theta(0)), watch=history.append)
    r = np.array(history)
    assert len(r) - 1 <= 4, r
    assert r[-1] < 1e-10
    late = r[:-1] < 0.1
    assert late.sum() >= 2
    # Steps are not solved below the tolerance.
    assert (r[1:][late] <= np.maximum(10 * r[:-1][late] ** 2, 1e-10)).all(), r


@pytest.mark.parametrize("seed", range(3))
def test_the_flow_has_no_divergence_and_what_goes_in_comes_out(seed: int) -> None:
    """Against every pressure function; their sum is 1, so that the outlet passes what the inlet does: 1/6."""
    solver = Pipe(elements=16)
    flow = solver.flow(theta(seed))
    u, p = flow.solve(solver.start(theta(seed)))
    divergence = flow.forces(np.concatenate([u.ravel(), p]))[u.size :]
    assert np.abs(divergence).max() < 1e-11
    flux = simpson(u[:, 0].reshape(33, 33)[::2])
    assert abs(flux[-1] - flux[0]) < 1e-10
    assert abs(flux[0] - 1 / 6) < 1e-14


def test_every_section_passes_the_same_mass_the_more_so_the_finer_the_elements() -> None:
    """Continuous pressures balance the mass of patches, not of single elements."""
    spread = np.array([np.ptp(simpson(velocity(0, n)[::2, :, 0])) * 6 for n in (8, 16, 32)])
    assert spread[2] < 2e-3, spread
    assert spread[2] < spread[1] / 8 < spread[0] / 16, spread


def test_the_walls_stop_the_flow_and_the_inlet_gives_its_profile() -> None:
    u, y = velocity(2, 8), np.linspace(0, 1, 17)
    assert np.abs(u[:, [0, -1]]).max() < 1e-15
    assert np.abs(u[0, :, 0] - y * (1 - y)).max() < 1e-15
    assert not u[0, :, 1].any()


def test_the_mirrored_pipe_has_the_mirrored_flow() -> None:
    solver = Pipe(elements=16)
    one, other = solver.solve(theta(3)), solver.solve(-theta(3))
    for ours, theirs in ((one.u, other.u), (one.weights, other.weights), (one.x, other.x * [1, -1])):
        assert ours is not None
        assert theirs is not None
        flipped = theirs.reshape(33, 33, -1)[:, ::-1].reshape(ours.shape)
        assert np.abs(ours - flipped).max() < 1e-6


@pytest.mark.slow
def test_refinement_changes_little() -> None:
    assert difference(0, 16, 32) < 5e-3
    assert difference(0, 32, 64) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_half_as_many_elements_more_change_the_default_by_less_than_2e_4(seed: int) -> None:
    assert difference(seed, 64, 96) < 2.2e-4


@pytest.mark.parametrize("seed", range(5))
def test_the_grid_is_as_published(seed: int) -> None:
    """10 long, 1 wide at every abscissa, the inlet centred at 0, the heights at the knots as drawn."""
    nodes, drawn = Pipe().nodes(theta(seed)), theta(seed)
    assert nodes.shape == (129, 129, 2)
    x, y = nodes[..., 0], nodes[..., 1]
    assert np.array_equal(x, np.broadcast_to(np.linspace(0, 10, 129)[:, None], x.shape))
    assert np.allclose(np.diff(y, axis=1), 1 / 128, rtol=1e-10, atol=0)
    assert np.array_equal(y[0, [0, 64, -1]], [-0.5, 0, 0.5])
    assert np.allclose(y[32::32, 64], drawn[1::2], rtol=0, atol=1e-14)


def test_the_centre_line_and_its_slope_are_continuous() -> None:
    drawn, knots, gap = theta(0), np.array([2.5, 5.0, 7.5]), 1e-9
    (before, rise), (behind, fall) = (centre_line(drawn, knots + s * gap) for s in (-1, 1))
    assert np.abs(before - behind).max() < 1e-8
    assert np.abs(rise - fall).max() < 1e-8
    assert np.allclose(rise, drawn[2:8:2] / 2.5, rtol=0, atol=1e-8)
    x, h = np.linspace(0.1, 9.9, 57), 1e-6
    numeric = (centre_line(drawn, x + h)[0] - centre_line(drawn, x - h)[0]) / (2 * h)
    assert np.abs(centre_line(drawn, x)[1] - numeric).max() < 1e-6


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_case() -> None:
    solver = Pipe(elements=8)
    one, same, other = (solver.sample(np.random.default_rng(seed)) for seed in (7, 7, 8))
    assert one.names == Pipe.names
    assert one.grid == (17, 17)
    assert set(one.arrays()) == {"x", "u", "weights"}
    for name, array in one.arrays().items():
        assert array.dtype == np.float32
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert not np.array_equal(one.x, other.x)


def test_the_weights_add_up_to_the_area() -> None:
    weights = Pipe(elements=8).sample(np.random.default_rng(0)).weights
    assert weights is not None
    assert weights.min() > 0
    assert abs(weights.sum(dtype=np.float64) - 10) < 1e-5


def test_the_benchmark_has_the_statistics_of_the_published_files() -> None:
    """The largest velocity of a case is not much above ¼, and the flow hardly turns back."""
    cases = np.stack([velocity(seed, 16)[..., 0] for seed in range(12)])
    peaks = cases.max(axis=(1, 2))
    assert 0.25 <= peaks.min() < peaks.max() < 0.35
    assert cases.min() > -0.02


def test_a_flow_that_does_not_settle_fails() -> None:
    with pytest.raises(Failure, match="does not settle"):
        Pipe(elements=8, viscosity=1e-6).sample(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"elements": 0}, "0 elements"), ({"viscosity": 0.0}, "positive"), ({"viscosity": np.nan}, "positive")],
)
def test_senseless_parameters_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(LrsaError, match=message):
        Pipe(**{"elements": 2, **parameters}).sample(np.random.default_rng(0))  # pyright: ignore[reportArgumentType]


def test_a_grid_that_is_turned_inside_out_is_refused() -> None:
    nodes = Pipe(elements=2).nodes(np.zeros(9))[::-1].reshape(-1, 2)
    with pytest.raises(LrsaError, match="inside out"):
        SteadyFlow(space(2), nodes, 1.0)
    with pytest.raises(LrsaError, match="odd numbers"):
        TaylorHood(np.zeros((4, 5), bool))
