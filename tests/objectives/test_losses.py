"""The losses against their formulae, written out with loops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lrsa.errors import LrsaError
from lrsa.objectives.losses import gradient_error, relative_l2

SHAPES = {"field": (3, 7, 2), "frames": (3, 4, 7, 2)}


def fields(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(2))
    return a, b


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_relative_l2_is_its_formula_case_by_case(shape: tuple[int, ...]) -> None:
    p, u = fields(*shape)
    expected = [float(((a - b) ** 2).sum() ** 0.5 / (b**2).sum() ** 0.5) for a, b in zip(p, u, strict=True)]
    torch.testing.assert_close(relative_l2(p, u), torch.tensor(expected, dtype=torch.float64))


@given(seed=st.integers(0, 99), framed=st.booleans())
def test_targets_that_are_not_known_change_neither_loss_nor_gradient(seed: int, framed: bool) -> None:
    p, u = fields(*SHAPES["frames" if framed else "field"], seed=seed)
    known = torch.rand(3, 7, 2, generator=torch.Generator().manual_seed(seed)) < 0.6
    spread = known[:, None].expand(u.shape) if framed else known
    expected = torch.stack([(a[k] - b[k]).norm() / b[k].norm() for a, b, k in zip(p, u, spread, strict=True)])
    p.requires_grad_()
    loss = relative_l2(p, torch.where(spread, u, 1e9), known)
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss.sum(), p)
    assert not gradient[~spread].any()


def test_a_perfect_prediction_has_no_loss_and_a_finite_gradient() -> None:
    _, u = fields(*SHAPES["field"])
    p = u.clone().requires_grad_()
    loss = relative_l2(p, u)
    assert not loss.any()
    (gradient,) = torch.autograd.grad(loss.sum(), p)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_units_do_not_matter(scale: float) -> None:
    p, u = fields(2, 30, 1)
    torch.testing.assert_close(relative_l2(scale * p, scale * u), relative_l2(p, u))
    torch.testing.assert_close(gradient_error(scale * p, scale * u, (5, 6)), gradient_error(p, u, (5, 6)))


@pytest.mark.parametrize("exponent", [-100, -80, 66, 100])
def test_units_do_not_matter_in_single_precision(exponent: int) -> None:
    """Where the squares of the values, as of a plasma's density per cubic metre, have no place in it."""
    p, u = (values.float() for values in fields(2, 30, 1))
    p.requires_grad_()
    for total in (None, lambda values: 2 * values):  # another process holds the same points
        plain, scaled = (relative_l2(s * p, s * u, None, total) for s in (1.0, 2.0**exponent))
        assert torch.equal(plain, scaled)
        slope, scaled_slope = (torch.autograd.grad(error.sum(), p)[0] for error in (plain, scaled))
        torch.testing.assert_close(slope, scaled_slope)


@pytest.mark.parametrize("scale", [1e-44, 1e-41, 1e-38, 1e36, 3e37])
def test_the_ends_of_single_precision_give_a_number(scale: float) -> None:
    p, u = (scale * values.float().clamp(-3, 3) for values in fields(2, 30, 1))
    p.requires_grad_()
    loss = relative_l2(p, u)
    assert loss.isfinite().all()
    (gradient,) = torch.autograd.grad(loss.sum(), p)
    assert gradient.isfinite().all() or scale < 1e-38, "its size is one over that of the field"


def literal_gradient_error(p: np.ndarray, u: np.ndarray) -> float:
    """One case (H, W): ring of the prediction to zero, then differences point by point, zero outside."""
    rows, columns = u.shape
    step = 1 / rows

    def at(v: np.ndarray, i: int, j: int) -> float:
        return float(v[i, j]) if 0 <= i < rows and 0 <= j < columns else 0.0

    ringless = p.copy()
    for i in range(rows):
        for j in range(columns):
            if i in (0, rows - 1) or j in (0, columns - 1):
                ringless[i, j] = 0.0
    total = 0.0
    for di, dj in ((1, 0), (0, 1)):
        error = size = 0.0
        for i in range(rows):
            for j in range(columns):
                slopes = [(at(v, i + di, j + dj) - at(v, i - di, j - dj)) / (2 * step) for v in (ringless, u)]
                error += (slopes[0] - slopes[1]) ** 2
                size += slopes[1] ** 2
        total += (error / size) ** 0.5
    return total


@given(rows=st.integers(3, 7), columns=st.integers(3, 7), seed=st.integers(0, 99))
def test_the_gradient_term_is_that_of_the_reference(rows: int, columns: int, seed: int) -> None:
    p, u = fields(2, rows * columns, 1, seed=seed)
    expected = [
        literal_gradient_error(a.numpy().reshape(rows, columns), b.numpy().reshape(rows, columns))
        for a, b in zip(p, u, strict=True)
    ]
    torch.testing.assert_close(
        gradient_error(p, u, (rows, columns)), torch.tensor(expected, dtype=torch.float64)
    )


def test_equal_fields_that_are_zero_on_the_ring_have_no_gradient_error() -> None:
    _, u = fields(2, 6, 5)
    u[:, [0, -1]] = 0
    u[:, :, [0, -1]] = 0
    flat = u.reshape(2, 30, 1)
    assert not gradient_error(flat, flat, (6, 5)).any()


def test_only_the_inside_of_the_prediction_counts() -> None:
    p, u = fields(1, 30, 1)
    other = p.reshape(1, 6, 5, 1).clone()
    other[:, 0] = other[:, -1] = 7
    other[:, :, 0] = other[:, :, -1] = -3
    assert torch.equal(gradient_error(other.reshape(1, 30, 1), u, (6, 5)), gradient_error(p, u, (6, 5)))


@pytest.mark.parametrize("grid", [None, (30,), (2, 3, 5)])
def test_points_that_are_no_grid_of_two_axes_are_refused(grid: tuple[int, ...] | None) -> None:
    p, u = fields(1, 30, 1)
    with pytest.raises(LrsaError, match="gradient term needs a structured grid"):
        gradient_error(p, u, grid)
