"""Krylov methods against direct solves, and against the number of threads."""

from collections.abc import Callable

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from lrsa.numerics.krylov import conjugate_gradients, gmres

SIZE = 60


def system(symmetric: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((SIZE, SIZE)) / np.sqrt(SIZE)
    return (a @ a.T if symmetric else a) + 2 * np.eye(SIZE), rng.standard_normal(SIZE)


def counted(matrix: np.ndarray, calls: list[int]) -> Callable[[np.ndarray], np.ndarray]:
    def operator(v: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return (matrix @ v.ravel()).reshape(v.shape)

    return operator


@pytest.mark.parametrize("shape", [(SIZE,), (6, 10)])
def test_conjugate_gradients_solve_to_the_residual_that_was_asked_for(shape: tuple[int, ...]) -> None:
    a, b = system(symmetric=True)
    for tolerance in (1e-2, 1e-6, 1e-12):
        calls = [0]
        x, reached = conjugate_gradients(
            counted(a, calls), b.reshape(shape), lambda r: r / 3, SIZE, norm=tolerance
        )
        assert reached
        assert x.shape == shape
        assert 0 < np.linalg.norm(b - a @ x.ravel()) <= 1.001 * tolerance * np.linalg.norm(b)
        assert calls[0] < SIZE


def test_conjugate_gradients_stop_at_the_energy_of_the_residual() -> None:
    """rᵀM⁻¹r, here with the diagonal for M."""
    a, b = system(symmetric=True)
    inverse = 1 / np.diag(a)
    x, reached = conjugate_gradients(a.dot, b, lambda r: inverse * r, SIZE, energy=1e-10)
    r = b - a @ x
    assert reached
    assert r @ (inverse * r) <= 1.001e-10 * (b @ (inverse * b))
    nothing, reached = conjugate_gradients(a.dot, 0 * b, lambda r: inverse * r, SIZE, energy=1e-10)
    assert reached
    assert not nothing.any()


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_inverse_as_a_preconditioner_takes_one_iteration(symmetric: bool) -> None:
    a, b = system(symmetric)
    inverse, calls = np.linalg.inv(a), [0]
    if symmetric:
        x, reached = conjugate_gradients(counted(a, calls), b, inverse.dot, SIZE, norm=1e-12)
    else:
        x, reached = gmres(counted(a, calls), b, inverse.dot, SIZE, 1e-12)
    assert reached
    assert calls == [1]
    np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-10)


def test_gmres_solves_to_the_residual_that_was_asked_for() -> None:
    a, b = system(symmetric=False)
    for tolerance in (1e-2, 1e-6, 1e-12):
        x, reached = gmres(a.dot, b, lambda r: r / 2, SIZE, tolerance)
        assert reached
        assert 0 < np.linalg.norm(b - a @ x) <= 1.001 * tolerance * np.linalg.norm(b)


def test_too_few_iterations_are_said() -> None:
    for method, symmetric in ((conjugate_gradients, True), (gmres, False)):
        a, b = system(symmetric)
        x, reached = method(a.dot, b, lambda r: r, 3, 1e-12)
        assert not reached
        assert 1e-3 < np.linalg.norm(b - a @ x) / np.linalg.norm(b) < 1


def test_the_bits_do_not_depend_on_the_threads() -> None:
    """Of a diagonal system so long that BLAS would share its sums among threads."""
    rng = np.random.default_rng(0)
    d, b = rng.uniform(1, 2, 200_000), rng.standard_normal(200_000)
    for method in (conjugate_gradients, gmres):
        found = []
        for threads in (1, 2):
            with threadpool_limits(threads):
                found.append(method(lambda v: d * v, b, lambda r: r, 4, 1e-12)[0])
        np.testing.assert_array_equal(*found)
