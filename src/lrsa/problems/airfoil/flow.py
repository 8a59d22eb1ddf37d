"""The Euler equations ∂U/∂t + ∇·F(U) = 0 of a gas with γ = 1.4, cell by cell.

States are (ρ, u, v, p), fluxes those of U = (ρ, ρu, ρv, E), n a normal times its length. Roe's flux with
Harten's entropy fix, between states that van Albada's limiter extrapolates to the face; at the wall the
pressure, extrapolated linearly; at the far field the state of the Riemann invariants that arrive there; at
the outlet the pressure of the free stream, since the invariants assume its entropy and the wake of a shock
has more.

Everything here is compiled, one thread, without reordering of sums: the same bits every time.
"""

from typing import Any

import numpy as np

from lrsa.numerics.compiled import compiled
from lrsa.problems.airfoil.mesh import CellMetrics, Cells

GAMMA = 1.4
ENTROPY_FIX = 0.1
"""Wave speeds below this part of the largest are raised, so that no expansion shock stands."""


@compiled
def roe_flux(a: Any, b: Any, sx: float, sy: float) -> Any:
    """From state a to state b through the face with the normal (sx, sy)."""
    s = np.sqrt(sx * sx + sy * sy)
    nx, ny = sx / s, sy / s
    ra, ua, va, pa = a
    rb, ub, vb, pb = b
    ha = GAMMA / (GAMMA - 1) * pa / ra + 0.5 * (ua * ua + va * va)
    hb = GAMMA / (GAMMA - 1) * pb / rb + 0.5 * (ub * ub + vb * vb)
    share = 1 / (1 + np.sqrt(rb / ra))
    rest = 1 - share
    u, v, h = share * ua + rest * ub, share * va + rest * vb, share * ha + rest * hb
    q = u * nx + v * ny
    c = np.sqrt((GAMMA - 1) * (h - 0.5 * (u * u + v * v)))
    slow, fast, still = _speeds(q, c)
    even, odd = 0.5 * (fast + slow) - still, 0.5 * (fast - slow)
    # |A| ΔU = |q| ΔU + one (1, u, v, h) + two (0, nx, ny, q)
    d0, d1, d2 = rb - ra, rb * ub - ra * ua, rb * vb - ra * va
    d3 = rb * hb - pb - ra * ha + pa
    dp, dq = pb - pa, d1 * nx + d2 * ny - q * d0
    one, two = even * dp / (c * c) + odd * dq / c, odd * dp / c + even * dq
    ma, mb = ra * (ua * nx + va * ny), rb * (ub * nx + vb * ny)
    p = pa + pb
    return (
        0.5 * s * (ma + mb - still * d0 - one),
        0.5 * s * (ma * ua + mb * ub + p * nx - still * d1 - one * u - two * nx),
        0.5 * s * (ma * va + mb * vb + p * ny - still * d2 - one * v - two * ny),
        0.5 * s * (ma * ha + mb * hb - still * d3 - one * h - two * q),
    )


@compiled
def _speeds(q: float, c: float) -> Any:
    """|q - c|, |q + c| and |q|, the first two not too small."""
    least = ENTROPY_FIX * (abs(q) + c)
    slow, fast = abs(q - c), abs(q + c)
    if slow < least:
        slow = 0.5 * (slow * slow / least + least)
    if fast < least:
        fast = 0.5 * (fast * fast / least + least)
    return slow, fast, abs(q)


@compiled
def split_jacobian(w: Any, sx: float, sy: float, sign: float, out: np.ndarray) -> None:
    """½ (A + sign |A|), A the derivative of the flux of U through the normal at the state w, into (4, 4)."""
    s = np.sqrt(sx * sx + sy * sy)
    nx, ny = sx / s, sy / s
    r, u, v, p = w
    c = np.sqrt(GAMMA * p / r)
    q, k = u * nx + v * ny, 0.5 * (u * u + v * v)
    h = c * c / (GAMMA - 1) + k
    slow, fast, still = _speeds(q, c)
    still = max(still, ENTROPY_FIX * c)
    still = 0.5 * s * (q + sign * still)
    slow, fast = 0.5 * s * (q - c + sign * slow), 0.5 * s * (q + c + sign * fast)
    even, odd = 0.5 * (fast + slow) - still, 0.5 * (fast - slow)
    pressure = (k, -u, -v, 1.0)
    for n, normal in enumerate((-q, nx, ny, 0.0)):
        dp = (GAMMA - 1) * pressure[n]
        one, two = even * dp / (c * c) + odd * normal / c, odd * dp / c + even * normal
        out[0, n] = one
        out[1, n] = one * u + two * nx
        out[2, n] = one * v + two * ny
        out[3, n] = one * h + two * q
        out[n, n] += still


@compiled
def limited(before: Any, here: Any, after: Any) -> Any:
    """The state `here` extrapolated half way to `after`: van Albada's mean of both differences."""
    return (
        _limited(before[0], here[0], after[0]),
        _limited(before[1], here[1], after[1]),
        _limited(before[2], here[2], after[2]),
        _limited(before[3], here[3], after[3]),
    )


@compiled
def _limited(before: float, here: float, after: float) -> float:
    d, e = here - before, after - here
    if d * e <= 0:
        return here
    return here + 0.5 * d * e * (d + e) / (d * d + e * e)


@compiled
def riemann_state(w: Any, infinity: Any, sx: float, sy: float) -> Any:
    """At the far field: the invariants q ± 2c/(γ-1) and, with the flow, the entropy and the tangential
    velocity, each from the side it comes from; (sx, sy) points outwards."""
    s = np.sqrt(sx * sx + sy * sy)
    nx, ny = sx / s, sy / s
    r, u, v, p = w
    r_inf, u_inf, v_inf, p_inf = infinity
    g = 2 / (GAMMA - 1)
    q, c = u * nx + v * ny, np.sqrt(GAMMA * p / r)
    q_inf, c_inf = u_inf * nx + v_inf * ny, np.sqrt(GAMMA * p_inf / r_inf)
    out = q + g * c if q > -c else q_inf + g * c_inf
    back = q_inf - g * c_inf if q < c else q - g * c
    q_b, c_b = 0.5 * (out + back), 0.5 * (out - back) / g
    if q_b <= 0:
        r, u, v, p, q = r_inf, u_inf, v_inf, p_inf, q_inf
    r_b = r * (c_b * c_b * r / (GAMMA * p)) ** (1 / (GAMMA - 1))
    return r_b, u + (q_b - q) * nx, v + (q_b - q) * ny, r_b * c_b * c_b / GAMMA


@compiled
def outlet_state(w: Any, infinity: Any, sx: float, sy: float) -> Any:
    """At the outlet: the pressure from outside, all that is carried outwards from inside."""
    r, u, v, p = w
    s = np.sqrt(sx * sx + sy * sy)
    c = np.sqrt(GAMMA * p / r)
    q = (u * sx + v * sy) / s
    if q > c:
        return w
    if q < 0:
        return riemann_state(w, infinity, sx, sy)
    ratio = infinity[3] / p
    push = 2 * c / (GAMMA - 1) * (1 - ratio ** (0.5 * (GAMMA - 1) / GAMMA)) / s
    return r * ratio ** (1 / GAMMA), u + push * sx, v + push * sy, infinity[3]


@compiled
def _state(w: np.ndarray, cell: int) -> Any:
    return w[cell, 0], w[cell, 1], w[cell, 2], w[cell, 3]


@compiled
def fill_ghosts(w: np.ndarray, infinity: Any, cells: Cells, geometry: CellMetrics) -> None:
    """The states beyond the boundaries."""
    for cell, second, ghost in cells.wall:
        for k in range(4):
            w[ghost, k] = 2 * w[cell, k] - w[second, k]
        if min(w[ghost, 0] / w[cell, 0], w[ghost, 3] / w[cell, 3]) < 0.2:
            w[ghost] = w[cell]
    for f in range(len(cells.far)):
        cell, ghost = cells.far[f]
        sx, sy = geometry.far[f]
        if f < cells.outer:
            state = riemann_state(_state(w, cell), infinity, sx, sy)
        else:
            state = outlet_state(_state(w, cell), infinity, sx, sy)
        for k in range(4):
            w[ghost, k] = state[k]


@compiled
def residual(w: np.ndarray, infinity: Any, cells: Cells, geometry: CellMetrics, out: np.ndarray) -> None:
    """The flux of U out of every cell, into (C, 4); fills the ghosts of w (C + ghosts, 4)."""
    fill_ghosts(w, infinity, cells, geometry)
    out[:] = 0.0
    for f in range(len(cells.faces)):
        first, left, right, last = cells.faces[f]
        a = limited(_state(w, first), _state(w, left), _state(w, right))
        b = limited(_state(w, last), _state(w, right), _state(w, left))
        flux = roe_flux(a, b, geometry.faces[f, 0], geometry.faces[f, 1])
        for k in range(4):
            out[left, k] += flux[k]
            out[right, k] -= flux[k]
    for f in range(len(cells.wall)):
        cell, _, ghost = cells.wall[f]
        p = 0.5 * (w[cell, 3] + w[ghost, 3])
        out[cell, 1] += p * geometry.wall[f, 0]
        out[cell, 2] += p * geometry.wall[f, 1]
    for f in range(len(cells.far)):
        cell, ghost = cells.far[f]
        flux = _flux(_state(w, ghost), geometry.far[f, 0], geometry.far[f, 1])
        for k in range(4):
            out[cell, k] += flux[k]


@compiled
def _flux(w: Any, sx: float, sy: float) -> Any:
    r, u, v, p = w
    mass = r * (u * sx + v * sy)
    energy = GAMMA / (GAMMA - 1) * p / r + 0.5 * (u * u + v * v)
    return mass, mass * u + p * sx, mass * v + p * sy, mass * energy
