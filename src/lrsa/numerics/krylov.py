"""Krylov methods whose sums do not depend on the number of threads.

scipy's take their inner products from BLAS, which adds in another order for every number of threads; a
sample must be the same bits on any machine. Preconditioners may be of single precision.
"""

from collections.abc import Callable

import numpy as np

Operator = Callable[[np.ndarray], np.ndarray]


def conjugate_gradients(
    operator: Operator,
    b: np.ndarray,
    precondition: Operator,
    most: int,
    norm: float = 0.0,
    energy: float = 0.0,
) -> tuple[np.ndarray, bool]:
    """x with A x = b up to a residual r, and whether that is small enough.

    Args:
        operator: v -> A v, symmetric and positive.
        b: Right-hand side, of any shape.
        precondition: r -> M⁻¹ r, symmetric and positive.
        most: Largest number of iterations.
        norm: Small enough is ‖r‖ <= norm ‖b‖,
        energy: or rᵀM⁻¹r <= energy bᵀM⁻¹b.
    """
    x, r = np.zeros(b.shape), np.array(b, dtype=np.float64)
    least, p, scratch = norm * length(r), np.zeros_like(r), np.empty_like(r)
    goal, previous = 0.0, np.inf
    for k in range(most):
        z = precondition(r)
        rz = inner(r, z)
        goal = energy * rz if k == 0 else goal
        if rz <= goal:
            return x, True
        p *= rz / previous
        p += z
        q = operator(p)
        step = rz / inner(p, q)
        x += np.multiply(p, step, out=scratch)
        r -= np.multiply(q, step, out=scratch)
        if norm and length(r) <= least:
            return x, True
        previous = rz
    return x, False


def gmres(
    operator: Operator, b: np.ndarray, precondition: Operator, most: int, tolerance: float
) -> tuple[np.ndarray, bool]:
    """x with ‖b - A x‖ <= tolerance ‖b‖ after at most so many iterations, and whether that is so.

    Preconditioned from the right, so that the residual is that of A itself; b is one-dimensional.
    """
    norm = length(b)
    basis, steps, h = [b / norm], [], np.zeros((most + 1, most))
    goal = np.zeros(most + 1)
    goal[0] = norm
    share, reached = np.zeros(0), False
    for k in range(most):
        steps.append(precondition(basis[k]))
        v = operator(steps[k])
        for i, other in enumerate(basis):
            h[i, k] = inner(v, other)
            v -= h[i, k] * other
        h[k + 1, k] = length(v)
        part = h[: k + 2, : k + 1]
        share = np.linalg.lstsq(part, goal[: k + 2])[0]
        reached = bool(np.linalg.norm(goal[: k + 2] - part @ share) <= tolerance * norm)
        if reached:
            break
        basis.append(v / h[k + 1, k])
    return sum(s * step for s, step in zip(share, steps, strict=True)), reached  # pyright: ignore[reportReturnType]


def length(v: np.ndarray) -> float:
    return float(np.sqrt(inner(v, v)))


def inner(v: np.ndarray, w: np.ndarray) -> float:
    return float(np.einsum("i,i->", v.ravel(), w.ravel()))
