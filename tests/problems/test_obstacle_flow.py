"""Obstacle flow: the scheme against exact and body-fitted flows and its own laws, and how cases are drawn."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.interpolate import RegularGridInterpolator
from scipy.sparse.linalg import spsolve

from lrsa.errors import LrsaError
from lrsa.numerics.taylor_hood import SteadyFlow, TaylorHood
from lrsa.problems.catalogue import get
from lrsa.problems.obstacle_flow.channel import Channel, operators
from lrsa.problems.obstacle_flow.solver import ObstacleFlow, level

RNG = np.random.default_rng


def drawn(seed: int, cells: int) -> Channel:
    """The channel of a random case."""
    ellipses = ObstacleFlow().draw(RNG(seed))
    return Channel(lambda x, y: level(ellipses, x, y), cells)


def dissipation(channel: Channel, psi: np.ndarray) -> float:
    differences = operators(channel.cells)[2] @ psi.ravel()
    return float(channel.weights() @ differences**2)


def orders(errors: list[float]) -> np.ndarray:
    """Under halving of the cells."""
    return np.log2(np.array(errors[:-1]) / errors[1:])


def test_without_obstacles_the_flow_is_parabolic_to_second_order() -> None:
    errors = []
    for cells in (16, 32, 64):
        channel = Channel(lambda x, y: np.ones_like(x), cells)
        y = np.arange(1, cells) / cells
        u, v = np.moveaxis(channel.corners(channel.solve()), -1, 0)
        errors.append(max(np.abs(u - 4 * y * (1 - y)).max(), np.abs(v).max()))
    assert (orders(errors) > 1.95).all(), errors
    assert errors[-1] < 6e-4


def bump(x: np.ndarray) -> np.ndarray:
    return 0.3 * np.sin(np.pi * x) ** 4


def body_fitted(elements: int) -> tuple[RegularGridInterpolator, RegularGridInterpolator]:
    """(x, s) -> u, v over a bump of the floor, s from 0 on it to 1: Taylor-Hood elements that follow it."""
    t = np.linspace(0, 1, 2 * elements + 1)
    x, s = np.meshgrid(t, t, indexing="ij")
    held = (x == 0) | (s == 0) | (s == 1)
    nodes = np.stack([x, bump(x) + s * (1 - bump(x))], axis=2).reshape(-1, 2)
    velocity = np.zeros((*x.shape, 2))
    velocity[0, :, 0] = 4 * t * (1 - t)
    viscosity = 1e6  # so that inertia and the grad-div term are nothing
    found, _ = SteadyFlow(TaylorHood(held), nodes, viscosity).solve(velocity.reshape(-1, 2))
    u, v = found.T.reshape(2, *x.shape)
    return RegularGridInterpolator((t, t), u, "cubic"), RegularGridInterpolator((t, t), v, "cubic")


def test_second_order_against_elements_that_follow_the_wall() -> None:
    """Another equation system, another discretisation; the cells know nothing of the bump but its level."""
    truth, errors = body_fitted(24), []
    corner = np.arange(1, 32) / 32
    x, y = np.meshgrid(corner, corner, indexing="ij")
    fluid = y > bump(x)
    at = np.stack([x, (y - bump(x)) / (1 - bump(x))], axis=2)[fluid]
    exact = np.stack([of(at) for of in truth], axis=1)
    for cells in (32, 64, 128):
        channel = Channel(lambda x, y: y - bump(x), cells)
        kept = slice(cells // 32 - 1, None, cells // 32)
        found = channel.corners(channel.solve())[kept, kept][fluid]
        errors.append(float(np.linalg.norm(found - exact) / np.linalg.norm(exact)))
    assert orders(errors).mean() > 1.8, errors  # single ones vary by where the wall cuts the cells
    assert errors[-1] < 5e-4


@pytest.mark.parametrize("seed", [0, 3])
def test_with_obstacles_finer_cells_change_less_by_the_square_of_their_size(seed: int) -> None:
    """Against 256² an error of second order falls by (1/64² - 1/256²) / (1/128² - 1/256²) = 5."""
    ellipses = ObstacleFlow().draw(RNG(seed))
    coarse, middle, fine = (ObstacleFlow(n, n // 32).solve(ellipses) for n in (64, 128, 256))
    assert fine.u is not None
    size = np.linalg.norm(fine.u)
    errors = [
        float(np.linalg.norm(case.u - fine.u) / size) for case in (coarse, middle) if case.u is not None
    ]
    assert errors[0] / errors[1] > 4, errors
    assert errors[0] < 0.015
    assert np.array_equal(np.asarray(coarse.f), np.asarray(fine.f))
    assert np.array_equal(coarse.x, fine.x)


def test_the_flow_of_least_dissipation_is_that_with_a_pressure() -> None:
    """The same differences in u, v and p: ∇·u = 0 by its multiplier, and no stream function at all."""
    channel, n = drawn(2, 32), 32
    psi = channel.solve()
    u, v = channel.faces(psi)
    step = sp.eye_array(n, n + 1, k=1) - sp.eye_array(n, n + 1)
    between, ends = sp.eye_array(n), sp.eye_array(n + 1)
    of_u = sp.vstack([sp.kron(step, between), sp.kron(ends, step.T)])
    of_v = sp.vstack([sp.kron(step.T, ends), sp.kron(between, step)])
    differences = sp.csr_array(sp.block_diag([of_u, of_v]))
    stiffness = differences.T @ sp.diags_array(channel.weights()) @ differences
    divergence = sp.csr_array(sp.hstack([sp.kron(step, between), sp.kron(between, step)]))
    given = np.zeros(u.size + v.size)
    given[:n] = np.diff(channel.inflow) * n
    free = np.concatenate([channel.at_u.ravel(), channel.at_v.ravel()]) > 0
    free[:n] = False
    open_cells = np.asarray(abs(divergence) @ free) > 0
    inside = sp.csr_array(divergence[open_cells][:, free])
    matrix = sp.block_array([[stiffness[free][:, free], inside.T], [inside, None]])
    load = np.concatenate([-(stiffness @ given)[free], -(divergence @ given)[open_cells]])
    given[free] = np.asarray(spsolve(sp.csc_array(matrix), load))[: free.sum()]
    assert np.abs(np.concatenate([u.ravel(), v.ravel()]) - given).max() < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_lost_and_every_column_passes_the_same(seed: int) -> None:
    channel = drawn(seed, 64)
    u, v = channel.faces(channel.solve())
    divergence = np.diff(u, axis=0) + np.diff(v, axis=1)
    assert np.abs(divergence).max() < 1e-12
    assert np.abs(u.mean(axis=1) - 2 / 3).max() < 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_nothing_moves_in_obstacles_and_something_everywhere_else(seed: int) -> None:
    channel = drawn(seed, 64)
    u, v = channel.faces(channel.solve())
    assert not u[channel.at_u <= 0].any()
    assert not v[channel.at_v <= 0].any()
    case = ObstacleFlow(64, 2).sample(RNG(seed))
    assert case.f is not None
    assert case.u is not None
    solid = case.f[:, 0] == 1
    assert set(np.unique(case.f[:, 0])) == {0.0, 1.0}
    assert not case.u[solid].any()
    assert np.abs(case.u[~solid]).max(axis=1).min() > 0


def test_the_distance_is_that_to_the_nearest_obstacle_and_negative_inside() -> None:
    discs = np.array([[0.3, 0.4, 0.12, 0.12, 1.0], [0.7, 0.6, 0.1, 0.1, 2.0]])
    case = ObstacleFlow(64, 2).solve(discs)
    exact = np.min([np.hypot(*(case.x - disc[:2]).T) - disc[2] for disc in discs], axis=0)
    assert case.f is not None
    assert np.abs(case.f[:, 1] - exact).max() < 3e-5
    assert np.array_equal(case.f[:, 0] == 1, case.f[:, 1] <= 0)


def test_the_mask_alone_does_not_decide_the_flow() -> None:
    """Why the distance is an input: no model of the mask can tell these two discs apart."""
    small, large = (ObstacleFlow(64, 2).solve(np.array([[0.5, 0.5, r, r, 0.0]])) for r in (0.092, 0.110))
    assert small.f is not None
    assert large.f is not None
    assert small.u is not None
    assert large.u is not None
    assert np.array_equal(small.f[:, 0], large.f[:, 0])
    assert np.linalg.norm(small.u - large.u) > 0.05 * np.linalg.norm(small.u)


def test_every_obstacle_more_dissipates_more() -> None:
    """It forbids velocities that were allowed; without any, ∫ |∇u|² = ∫ (4 - 8 y)² dy = 16/3."""
    ellipses = next(found for seed in range(20) if len(found := ObstacleFlow().draw(RNG(seed))) == 4)
    values = []
    for count in range(5):
        channel = Channel(lambda x, y, some=ellipses[:count]: level(some, x, y), 64)
        values.append(dissipation(channel, channel.solve()))
    assert abs(values[0] / (16 / 3) - 1) < 1e-3
    assert (np.diff(values) > 0.1).all(), values


def test_obstacles_keep_their_distances_and_all_numbers_of_them_are_as_probable() -> None:
    solver, counts = ObstacleFlow(), np.zeros(5)
    for seed in range(400):
        ellipses = solver.draw(RNG(seed))
        middle, longer, shorter = ellipses[:, :2], ellipses[:, 2], ellipses[:, 3]
        counts[len(ellipses)] += 1
        assert (np.minimum(middle, 1 - middle) >= longer[:, None] + solver.margin - 1e-12).all()
        gap = np.linalg.norm(middle[:, None] - middle, axis=2) - longer[:, None] - longer
        assert (gap[~np.eye(len(gap), dtype=bool)] >= solver.margin).all()
        assert ((shorter <= longer) & (shorter >= longer / 2)).all()
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 100) < 40).all()


def test_the_same_seed_gives_the_same_bits_and_another_seed_another_case() -> None:
    solver = ObstacleFlow(64, 2)
    one, same, other = (solver.sample(RNG(seed)) for seed in (7, 7, 8))
    for name, array in one.arrays().items():
        assert array.dtype == np.float32
        assert array.tobytes() == same.arrays()[name].tobytes()
    assert not np.array_equal(np.asarray(one.u), np.asarray(other.u))


def test_every_fidelity_has_the_middles_of_32_squares() -> None:
    middles = (np.arange(32) + 0.5) / 32
    x, y = np.meshgrid(middles, middles, indexing="ij")
    for fidelity in get("obstacle-flow").fidelities:
        solver = get("obstacle-flow").solver_at(fidelity)
        assert isinstance(solver, ObstacleFlow)
        assert np.array_equal(solver.points(), np.stack([x.ravel(), y.ravel()], axis=1))


@pytest.mark.parametrize(("resolution", "stride"), [(96, 3), (64, 6)])
def test_points_that_are_no_corners_are_refused(resolution: int, stride: int) -> None:
    with pytest.raises(LrsaError, match="even divisor"):
        ObstacleFlow(resolution, stride)
