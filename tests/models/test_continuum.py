"""Appendix A: the operator on points is a quadrature of one operator on functions.

A fixed smooth input is sampled ever more finely; the output at fixed query points converges to one limit at
the order of the midpoint rule. On points of uneven density it converges to the same limit with the cell
sizes as weights, and to another one without. The limit itself comes from a third quadrature, Gauss-Legendre.
"""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from conftest import make_operator, unsettle
from torch import Tensor

from lrsa.context import Context
from lrsa.models.attention import LowRankSpatialAttention

Sampling = Callable[[int], tuple[Tensor, Tensor]]
"""Cells per axis -> their points (n,) in (0, 1), and their sizes (n,)."""


def even(n: int) -> tuple[Tensor, Tensor]:
    """Midpoints of equal cells."""
    return (torch.arange(n, dtype=torch.float64) + 0.5) / n, torch.full((n,), 1 / n, dtype=torch.float64)


def graded(n: int) -> tuple[Tensor, Tensor]:
    """Equal cells through y(t) = (t + 3 t²) / 4: seven times as dense at 0 as at 1."""

    def y(t: Tensor) -> Tensor:
        return (t + 3 * t**2) / 4

    edges = torch.arange(n + 1, dtype=torch.float64) / n
    return y((edges[1:] + edges[:-1]) / 2), y(edges).diff()


def gauss(n: int) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre points and weights: exact for polynomials of degree 2 n - 1."""
    points, weights = np.polynomial.legendre.leggauss(n)
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)


SIZES = {1: (16, 32, 64, 128, 256), 2: (16, 32, 64, 128)}
"""Cells per axis, ever finer, in one and two dimensions."""
axes = pytest.mark.parametrize("dim", [1, 2])


@axes
def test_the_output_converges_at_second_order_on_even_points(dim: int) -> None:
    problem = Problem(dim)
    errors = [problem.error(even, n, weighted=False) for n in SIZES[dim]]
    assert observed_order(errors) > 1.8, errors


@axes
def test_on_uneven_points_weights_keep_the_order_and_the_limit(dim: int) -> None:
    problem = Problem(dim)
    errors = [problem.error(graded, n, weighted=True) for n in SIZES[dim]]
    assert observed_order(errors) > 1.8, errors


@axes
def test_on_uneven_points_without_weights_the_limit_is_another(dim: int) -> None:
    problem = Problem(dim)
    sizes = SIZES[dim]
    plain = [problem.error(graded, n, weighted=False) for n in sizes]
    weighted = problem.error(graded, sizes[-1], weighted=True)
    assert abs(plain[-1] / plain[-2] - 1) < 0.1, plain
    assert plain[-1] > 0.02, plain
    assert plain[-1] > 100 * weighted, (plain, weighted)


@axes
def test_the_limit_is_known_well_enough_to_measure_against(dim: int) -> None:
    problem = Problem(dim)
    assert problem.error(gauss, 48, weighted=True) < 1e-6


@axes
def test_the_attention_of_these_tests_is_far_from_uniform(dim: int) -> None:
    """A flat softmax would make any sampling converge; here the heaviest points outweigh the mean by far."""
    problem = Problem(dim)
    x, f, _ = problem.sample(even, SIZES[dim][-1])
    block = problem.model.each_block()[0]
    mixer = block.mix
    assert isinstance(mixer, LowRankSpatialAttention)
    h = block.norm_mix(problem.model.lift(x, f, Context()))
    query = mixer.down.queries(mixer.latents[None])
    attention = (query @ mixer.down.keys(h).mT / query.shape[-1] ** 0.5).softmax(-1)  # (1, h, M, N)
    peak = attention.amax(-1) * attention.shape[-1]
    assert float(peak.detach().median()) > 2.5
    assert float(peak.detach().max()) > 8


class Problem:
    """One operator, one smooth input function, fixed queries, and the output at them in the limit."""

    def __init__(self, dim: int) -> None:
        torch.manual_seed(dim)
        self.dim = dim
        self.model = make_operator(coord_dim=dim)
        unsettle(self.model, gain=1.3)
        self.wave = torch.randn(dim, 6, dtype=torch.float64) * 3
        self.phase = torch.rand(6, dtype=torch.float64) * 6
        self.queries = torch.rand(1, 20, dim, dtype=torch.float64)
        self.limit = self.output(gauss, 64, weighted=True)

    def function(self, x: Tensor) -> Tensor:
        """(B, N, p) -> (B, N, 1)."""
        return torch.sin(x @ self.wave + self.phase).mean(-1, keepdim=True)

    def sample(self, sampling: Sampling, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """x (1, N, p), f (1, N, 1) and weights (1, N) of n cells per axis."""
        points, sizes = sampling(n)
        x = torch.stack(torch.meshgrid([points] * self.dim, indexing="ij"), -1).reshape(1, -1, self.dim)
        cells = torch.stack(torch.meshgrid([sizes] * self.dim, indexing="ij"), -1).reshape(1, -1, self.dim)
        return x, self.function(x), cells.prod(-1)

    def output(self, sampling: Sampling, n: int, weighted: bool) -> Tensor:
        x, f, weights = self.sample(sampling, n)
        with torch.no_grad():
            state = self.model.encode(x, f, Context(weights=weights if weighted else None))
            return self.model.decode(state, self.queries, self.function(self.queries))

    def error(self, sampling: Sampling, n: int, weighted: bool) -> float:
        """Relative L2 distance to the limit, at the queries."""
        difference = self.output(sampling, n, weighted) - self.limit
        return float(difference.norm() / self.limit.norm())


def observed_order(errors: Sequence[float]) -> float:
    """The smallest order of convergence seen from one halving of the cells to the next."""
    return min(float(np.log2(a / b)) for a, b in itertools.pairwise(errors))
