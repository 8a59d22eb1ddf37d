"""Figure 1, left: the Green's function of 1-D Poisson."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_cells import work_in

from lrsa.experiments.figure_lowrank import FigureLowRank, columns, green, measure, midpoints, truncate
from lrsa.experiments.page import write_page


def test_the_kernel_solves_poissons_equation_to_second_order() -> None:
    """f = 1 gives u = x (1 - x) / 2, and f = sin(3πx) gives f / (3π)²."""

    def error(points: int) -> float:
        x = midpoints(points)
        constant = green(points) @ np.ones(points) - x * (1 - x) / 2
        wave = np.sin(3 * np.pi * x)
        return max(np.abs(constant).max(), np.abs(green(points) @ wave - wave / (3 * np.pi) ** 2).max())

    assert np.log2(error(64) / error(128)) == pytest.approx(2, abs=0.05)


def test_singular_values_converge_to_the_eigenvalues_to_second_order() -> None:
    exact = (np.arange(1, 9) * np.pi) ** -2.0
    errors = [np.abs(np.linalg.svd(green(n))[1][:8] / exact - 1).max() for n in (64, 128, 256)]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(orders, 2, atol=0.05)


def test_truncation_reaches_the_bound_and_columns_stay_above_it() -> None:
    kernel = green(200)
    decay = measure(kernel, 16)
    sigma = np.linalg.svd(kernel)[1]
    tails = [np.sqrt((sigma[r:] ** 2).sum()) / np.linalg.norm(kernel) for r in range(1, 17)]
    np.testing.assert_allclose(decay.truncated, tails, rtol=1e-9)
    np.testing.assert_allclose(decay.truncated, decay.bound, rtol=2e-2)
    assert (np.array(decay.columns) > decay.truncated).all()
    assert (np.array(decay.columns) < 2 * np.array(decay.truncated)).all()


@pytest.mark.parametrize("approximate", [truncate, columns])
def test_the_approximations_have_the_rank_they_claim(
    approximate: Callable[[np.ndarray, int], np.ndarray],
) -> None:
    assert np.linalg.matrix_rank(approximate(green(100), 5), tol=1e-10) == 5


def test_columns_are_exact_where_they_were_taken() -> None:
    """Between its nodes the Nyström approximation interpolates linearly: the error is 0 at them."""
    kernel = green(99)
    near = columns(kernel, 4)
    chosen = np.flatnonzero(np.abs(near - kernel).max(0) < 1e-14)
    np.testing.assert_array_equal(chosen, [19, 39, 59, 79])


def test_the_figure_comes_with_its_numbers(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    write_page(work.out, FigureLowRank().page(work))
    path = work.out / "figure-lowrank.png"
    assert path.stat().st_size > 20_000
    numbers = json.loads(path.with_suffix(".json").read_text())
    assert numbers["eigenvalues"][0] == pytest.approx(np.pi**-2)
    table = path.with_suffix(".md").read_text()
    assert "`lrsa reproduce figure-lowrank`" in table
    assert "| 32 | " in table
