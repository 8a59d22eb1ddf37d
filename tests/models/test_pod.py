"""Kernel regression and POD: as scipy has them, exact where they can be, blind to units and copies."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RBFInterpolator
from torch import Tensor

from lrsa.models import kernel_regression
from lrsa.models.kernel_regression import CUBIC, LINEAR, PLATE, Fit, design, fitted, kernel_matrix
from lrsa.models.pod import PodRegression, decomposition

NAMES = {CUBIC: "cubic", PLATE: "thin_plate_spline", LINEAR: "linear"}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def at(fit: Fit, d: Tensor) -> Tensor:
    near = kernel_matrix(d, fit.centres, fit.kernel) if len(fit.centres) else d[:, :0]
    return torch.cat([near, design(d)], dim=1) @ fit.weights


@pytest.mark.parametrize("kernel", NAMES)
@pytest.mark.parametrize("width", [1, 3, 9])
def test_radial_basis_functions_are_those_of_scipy(kernel: int, width: int) -> None:
    d, c, query = normal(40, width), normal(40, 2, seed=1), normal(7, width, seed=2)
    ((_, fit),) = kernel_regression._radial(d, c, kernel, 0, (1e-14,))
    theirs = RBFInterpolator(d.numpy(), c.numpy(), kernel=NAMES[kernel], degree=1)(query.numpy())
    np.testing.assert_allclose(at(fit, query).numpy(), theirs, atol=1e-4 if width == 1 else 1e-7)


@pytest.mark.parametrize("kernel", NAMES)
def test_the_error_of_leaving_out_is_that_of_fitting_again_without(kernel: int) -> None:
    d, c = normal(20, 2), normal(20, 3, seed=1)
    ((_, fit),) = kernel_regression._radial(d, c, kernel, 0, (1e-14,))
    missed = []
    for i in range(20):
        rest = [k for k in range(20) if k != i]
        ((_, other),) = kernel_regression._radial(d[rest], c[rest], kernel, 0, (1e-14,))
        missed.append((at(other, d[i : i + 1]) - c[i]).square().sum())
    torch.testing.assert_close(fit.error, torch.stack(missed).mean().sqrt(), rtol=1e-5, atol=0)


def test_the_error_of_ridge_regression_is_that_of_fitting_again_without() -> None:
    d, c = normal(15, 3), normal(15, 2, seed=1)
    (fit,) = (f for f in list(kernel_regression._ridges(d, d[:, :0], c))[:1])
    missed = []
    for i in range(15):
        rest = [k for k in range(15) if k != i]
        weights = torch.linalg.lstsq(design(d[rest]), c[rest]).solution
        missed.append((design(d[i : i + 1]) @ weights - c[i]).square().sum())
    torch.testing.assert_close(fit.error, torch.stack(missed).mean().sqrt(), rtol=1e-6, atol=0)


def test_what_depends_linearly_is_found_linear_and_what_does_not_is_not() -> None:
    d = normal(40, 2)
    line = d @ normal(2, 3, seed=1) + 1
    query = normal(9, 2, seed=3)
    best = fitted(d, d[:, :0], line)
    torch.testing.assert_close(at(best, query), query @ normal(2, 3, seed=1) + 1, rtol=0, atol=1e-7)
    assert fitted(d, d[:, :0], torch.sin(2 * d)).kernel in NAMES
    noise = fitted(d, d[:, :0], normal(40, 3, seed=5))
    assert float(noise.error) <= 1.05 * float(
        noise.weights[0].norm() + normal(40, 3, seed=5).norm() / 40**0.5
    )


def test_parameters_that_repeat_each_other_or_never_change_do_no_harm() -> None:
    g = normal(30, 2)
    u = torch.sin(g @ normal(2, 50, seed=1))
    plain, odd = PodRegression(), PodRegression()
    plain.fit(g, u[:, :0], u)
    odd.fit(torch.cat([g, 3 * g[:, :1] + 7, torch.full((30, 1), 0.1)], dim=1), u[:, :0], u)
    query = normal(5, 2, seed=2)
    more = torch.cat([query, 3 * query[:, :1] + 7, torch.full((5, 1), 0.1)], dim=1)
    assert torch.isfinite(odd(more, u[:5, :0])).all()
    assert float(odd.error) < 3 * float(plain.error) + 1e-6


def test_cases_that_are_copies_of_others_do_no_harm() -> None:
    g = normal(12, 2).repeat(2, 1)
    u = torch.cos(g @ normal(2, 20, seed=1))
    model = PodRegression()
    model.fit(g, u[:, :0], u)
    torch.testing.assert_close(model(g, u[:, :0]), u, rtol=0, atol=1e-3)


def test_nothing_known_is_the_mean_field() -> None:
    u = normal(6, 10).float()
    model = PodRegression()
    model.fit(u[:, :0], u[:, :0], u)
    torch.testing.assert_close(model(u[:2, :0], u[:2, :0]).float(), u.mean(0).expand(2, -1))
    assert "the mean field" in model.about


@given(unit=st.sampled_from([1e-9, 1.0, 1e9]), shift=st.sampled_from([0.0, 1e3]))
def test_units_of_the_parameters_do_not_matter(unit: float, shift: float) -> None:
    g = normal(25, 2)
    u = torch.sin(g @ normal(2, 30, seed=1))
    ours, theirs = PodRegression(), PodRegression()
    ours.fit(g, u[:, :0], u)
    theirs.fit(unit * (g + shift), u[:, :0], u)
    query = normal(4, 2, seed=2)
    torch.testing.assert_close(
        theirs(unit * (query + shift), u[:4, :0]), ours(query, u[:4, :0]), rtol=0, atol=1e-5
    )


def test_modes_are_those_of_the_singular_value_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in several blocks of columns."""
    monkeypatch.setattr("lrsa.models.pod.BLOCK", 7)
    rows = normal(8, 4) @ normal(4, 30, seed=1) + 5
    mean, modes, coefficients = decomposition(rows, 10)
    assert modes.shape == (4, 30)
    torch.testing.assert_close(modes @ modes.T, torch.eye(4).double(), rtol=0, atol=1e-9)
    torch.testing.assert_close(mean + coefficients @ modes, rows, rtol=0, atol=1e-9)
    sizes = torch.linalg.svdvals(rows - mean)[:4]
    torch.testing.assert_close(coefficients.norm(dim=0), sizes, rtol=1e-9, atol=0)
    assert decomposition(rows, 2)[1].shape == (2, 30)
    assert decomposition(rows[:1].expand(5, -1), 2)[1].shape == (0, 30)


def test_a_linear_map_between_fields_is_found_from_few_modes() -> None:
    """Inputs of four modes, fields that follow linearly: exact, also at cases never seen."""
    inputs = normal(40, 4) @ normal(4, 60, seed=1)
    u = inputs @ normal(60, 50, seed=2)
    model = PodRegression()
    model.fit(u[:30, :0], inputs[:30], u[:30])
    torch.testing.assert_close(
        model(u[30:, :0], inputs[30:]), u[30:], rtol=0, atol=1e-4 * float(u.abs().max())
    )
    assert "4 modes of the inputs" in model.about
