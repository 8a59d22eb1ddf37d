"""Linear triangles: order on smooth and on jumping coefficients, exact shares, refinement."""

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.numerics.triangles import Triangles, boundary, positive_share, refine


def square(count: int) -> Triangles:
    """The unit square as 2 n² triangles, the nodes inside moved along a smooth wave."""
    t = np.linspace(0, 1, count + 1)
    x, y = (v.ravel() for v in np.meshgrid(t, t, indexing="ij"))
    wave = 0.05 * np.sin(2 * np.pi * x) * np.sin(2 * np.pi * y)
    corner = (np.arange(count)[:, None] * (count + 1) + np.arange(count)).ravel()
    east, north, both = corner + count + 1, corner + 1, corner + count + 2
    triangles = np.concatenate([np.stack(p, 1) for p in ((corner, east, both), (corner, both, north))])
    return Triangles(np.stack([x + wave, y - wave], axis=1), triangles)


def orders(errors: list[float]) -> np.ndarray:
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


def relative(value: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


def smooth_error(count: int) -> float:
    """A = R diag(p, 3) Rᵀ with p = exp(x), turned by 30°; u = sin(πx) sin(2πy), f = -∇·(A∇u) by hand."""
    mesh = square(count)
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    one, two = np.array([c, s]), np.array([-s, c])
    centre = mesh.nodes[mesh.triangles].mean(axis=1)
    a = np.exp(centre[:, 0])[:, None, None] * np.outer(one, one) + 3 * np.outer(two, two)
    x, y = mesh.nodes.T
    sin, cos, pi = np.sin, np.cos, np.pi
    u = sin(pi * x) * sin(2 * pi * y)
    xx, yy, xy = -(pi**2) * u, -4 * pi**2 * u, 2 * pi**2 * cos(pi * x) * cos(2 * pi * y)
    u_x, u_y = pi * cos(pi * x) * sin(2 * pi * y), 2 * pi * sin(pi * x) * cos(2 * pi * y)
    along = c**2 * xx + 2 * c * s * xy + s**2 * yy
    across = s**2 * xx - 2 * c * s * xy + c**2 * yy
    f = -np.exp(x) * (along + c * (c * u_x + s * u_y)) - 3 * across
    return relative(mesh.solve(a, f * mesh.shares()), u)


def test_second_order_on_a_manufactured_solution() -> None:
    errors = [smooth_error(n) for n in (12, 24, 48)]
    assert (orders(errors) > 1.9).all(), errors
    assert errors[-1] < 5e-3


def jump_error(count: int, laminate: bool, wall: float) -> float:
    """a is 12 right of the wall and 3 left of it; u = X(x) sin(πy), a X' = cos(x) - m, X(0) = X(1) = 0.

    f = (sin(x) + a π² X) sin(πy) jumps too, and is integrated by many points; the mesh follows neither.
    """
    mesh, low, high = square(count), 3.0, 12.0
    m = (np.sin(wall) / low + (np.sin(1) - np.sin(wall)) / high) / (wall / low + (1 - wall) / high)
    at_wall = (np.sin(wall) - m * wall) / low

    def profile(x: np.ndarray) -> np.ndarray:
        behind = at_wall + (np.sin(x) - np.sin(wall) - m * (x - wall)) / high
        return np.where(x < wall, (np.sin(x) - m * x) / low, behind)

    parts = np.random.default_rng(0).dirichlet(np.ones(3), 100)
    x, y = (parts @ mesh.nodes[mesh.triangles]).transpose(2, 0, 1)
    f = (np.sin(x) + np.where(x >= wall, high, low) * np.pi**2 * profile(x)) * np.sin(np.pi * y)
    load = mesh.add(mesh.areas[:, None] * (f @ parts) / len(parts))
    x, y = mesh.nodes.T
    matrices = mesh.laminate(x - wall, low, high)
    if not laminate:
        centre = x[mesh.triangles].mean(axis=1)
        matrices = np.where(centre >= wall, high, low)[:, None, None] * np.eye(2)
    return relative(mesh.solve(matrices, load), profile(x) * np.sin(np.pi * y))


def test_the_laminate_keeps_the_order_where_the_coefficient_jumps_inside_triangles() -> None:
    """Sampling the coefficient at the centroids does not: root mean square over four places of the wall."""
    walls = (0.33, 0.37, 0.41, 0.46)
    ours, sampled = (
        [np.sqrt(np.mean([jump_error(n, laminate, wall) ** 2 for wall in walls])) for n in (10, 40)]
        for laminate in (True, False)
    )
    assert np.log(ours[0] / ours[1]) / np.log(4) > 1.8, ours
    assert np.log(sampled[0] / sampled[1]) / np.log(4) < 1.4, sampled
    assert ours[1] < 0.3 * sampled[1]


def test_the_positive_share_is_the_area_where_the_linear_function_is_positive() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((40, 3))
    places = rng.dirichlet(np.ones(3), 20000)
    sampled = (values @ places.T >= 0).mean(axis=1)
    assert np.abs(positive_share(values) - sampled).max() < 0.02
    assert np.allclose(positive_share(values) + positive_share(-values), 1)
    exact = np.array([[1, 1, -1], [0, 0, 0], [-1, -1, 0], [-1, -1, 1], [1, 0, -1]], float)
    assert np.allclose(positive_share(exact), [0.75, 1, 0, 0.25, 0.5])


def test_a_laminate_conducts_between_the_harmonic_and_the_plain_mean() -> None:
    mesh = square(6)
    field = np.random.default_rng(1).standard_normal(len(mesh.nodes))
    values = np.linalg.eigvalsh(mesh.laminate(field, 3.0, 12.0))
    share = positive_share(field[mesh.triangles])
    assert np.allclose(values[:, 0], 1 / ((1 - share) / 3 + share / 12))
    assert np.allclose(values[:, 1], 3 + 9 * share)


def test_a_refined_mesh_keeps_nodes_area_and_outline() -> None:
    mesh = square(5)
    nodes, triangles = refine(mesh.nodes, mesh.triangles)
    assert np.array_equal(nodes[: len(mesh.nodes)], mesh.nodes)
    assert len(triangles) == 4 * len(mesh.triangles)
    assert len(np.unique(nodes.round(12), axis=0)) == len(nodes) == 11**2
    finer = Triangles(nodes, triangles)
    assert np.allclose(finer.areas.reshape(4, -1), mesh.areas / 4)
    rim = nodes[boundary(triangles)]
    assert len(rim) == 40
    assert np.allclose(np.abs(rim - 0.5).max(axis=1), 0.5)


def test_all_that_flows_in_flows_out() -> None:
    """The reactions on the boundary are the integral of the source."""
    mesh = square(8)
    a = mesh.laminate(np.sin(7 * mesh.nodes[:, 0] + 5 * mesh.nodes[:, 1]), 3.0, 12.0)
    load = 2.0 * mesh.shares()
    u = mesh.solve(a, load)
    flux = (a @ (u[mesh.triangles][:, None] @ mesh.slopes).transpose(0, 2, 1))[..., 0]
    forces = mesh.add(mesh.areas[:, None] * (mesh.slopes @ flux[..., None])[..., 0])
    assert abs((forces - load)[mesh.rim].sum() + 2.0) < 1e-12
    assert np.abs((forces - load)[~mesh.rim]).max() < 1e-14


def test_a_flat_triangle_is_refused() -> None:
    with pytest.raises(LrsaError, match="flat or turned"):
        Triangles(np.array([[0.0, 0], [1, 0], [2, 0]]), np.array([[0, 1, 2]]))
