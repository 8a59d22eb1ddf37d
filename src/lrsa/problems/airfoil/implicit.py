"""The way to the steady state: implicit Euler steps of the first-order scheme, driven by the residual.

    (V/Δt + ∂R₁/∂U) ΔU = -R(U),   Δt of every cell a fixed multiple of the time waves need to cross it

R is the residual of second order, R₁ that of first order with split Jacobians. The system is relaxed by lines
of cells: rays outwards, forwards and backwards, then rings around the airfoil. Blocks are single precision:
they decide how fast the iteration converges, not to what.
"""

import numpy as np

from lrsa.errors import Failure
from lrsa.numerics.compiled import compiled
from lrsa.problems.airfoil.flow import GAMMA, residual, split_jacobian
from lrsa.problems.airfoil.mesh import CellMetrics, Cells

COURANT = (200.0, 20.0)
"""Waves cross this many cells in a step; the next one is tried where the flow does not settle."""
RAMP = 1.2
"""Steps begin at a Courant number of 5 and grow by this factor."""
RELAXATION = 0.65
"""How much of a step is made: all of it would swing about the steady state at the leading edge."""
KEEP = 3
"""Steps for which the blocks are kept, once the Courant number is reached."""
MOST = 1000
"""Steps after which a flow is taken not to settle."""


def steady_flow(
    cells: Cells, geometry: CellMetrics, infinity: tuple[float, float, float, float], tolerance: float
) -> np.ndarray:
    """(C + ghosts, 4) states (ρ, u, v, p) of the steady flow that is `infinity` far away.

    Args:
        cells: Connectivity of a C-grid.
        geometry: Its normals and areas.
        infinity: The uniform state at the far field.
        tolerance: The iteration ends when a step changes the Mach numbers of the cells by less than this,
            in L2 relative to themselves.
    """
    for courant in COURANT:
        w = _iterate(cells, geometry, infinity, tolerance, courant)
        if w is not None:
            return w
    raise Failure(f"the flow around an airfoil does not settle to {tolerance:g} in {MOST} steps")


def _iterate(
    cells: Cells,
    geometry: CellMetrics,
    infinity: tuple[float, float, float, float],
    tolerance: float,
    courant: float,
) -> np.ndarray | None:
    count = len(cells.neighbours)
    w = np.tile(np.array(infinity), (count + len(cells.wall) + len(cells.far), 1))
    r = np.empty((count, 4))
    diagonal, blocks = np.empty((count, 4, 4), np.float32), np.empty((count, 4, 4, 4), np.float32)
    lines = [(line, np.empty((count, 4, 4), np.float32)) for line in (cells.rays, cells.rings)]
    current, kept = 5.0, 0
    for _ in range(MOST):
        residual(w, infinity, cells, geometry, r)
        if kept == 0:
            assemble(w, cells, geometry, current, diagonal, blocks)
            for line, pivots in lines:
                factorise(line, diagonal, blocks, pivots)
            kept = KEEP if current == courant else 1
            current = min(RAMP * current, courant)
        kept -= 1
        step = np.zeros((count, 4), np.float32)
        for line, pivots in lines:
            for backwards in (False, True):
                relax(line, cells.neighbours, blocks, pivots, r, step, backwards)
        change = update(w, step)
        if not np.isfinite(change) or change > 1:
            return None
        if change < tolerance:
            residual(w, infinity, cells, geometry, r)
            return w
    return None


@compiled
def assemble(
    w: np.ndarray,
    cells: Cells,
    geometry: CellMetrics,
    courant: float,
    diagonal: np.ndarray,
    blocks: np.ndarray,
) -> None:
    """V/Δt + ∂R₁/∂U: the (C, 4, 4) diagonal and the (C, 4, 4, 4) blocks of the four neighbours."""
    diagonal[:] = 0.0
    blocks[:] = 0.0
    plus, minus = np.empty((4, 4)), np.empty((4, 4))
    for f in range(len(cells.faces)):
        _, a, b, _ = cells.faces[f]
        sx, sy = geometry.faces[f]
        speed = _face_jacobians(w, a, b, sx, sy, plus, minus)
        for m in range(4):
            for n in range(4):
                diagonal[a, m, n] += plus[m, n]
                diagonal[b, m, n] -= minus[m, n]
                blocks[a, cells.slots[f, 0], m, n] = minus[m, n]
                blocks[b, cells.slots[f, 1], m, n] = -plus[m, n]
            diagonal[a, m, m] += speed / courant
            diagonal[b, m, m] += speed / courant
    for f in range(len(cells.far)):
        a, b = cells.far[f]
        sx, sy = geometry.far[f]
        speed = _face_jacobians(w, a, b, sx, sy, plus, minus)
        for m in range(4):
            for n in range(4):
                diagonal[a, m, n] += plus[m, n]
            diagonal[a, m, m] += speed / courant
    for f in range(len(cells.wall)):
        a = cells.wall[f, 0]
        sx, sy = geometry.wall[f]
        u, v = w[a, 1], w[a, 2]
        pressure = (0.5 * (u * u + v * v), -u, -v, 1.0)
        for n in range(4):
            diagonal[a, 1, n] += (GAMMA - 1) * pressure[n] * sx
            diagonal[a, 2, n] += (GAMMA - 1) * pressure[n] * sy
        speed = 0.5 * np.sqrt(GAMMA * w[a, 3] / w[a, 0] * (sx * sx + sy * sy))
        for m in range(4):
            diagonal[a, m, m] += speed / courant


@compiled
def _face_jacobians(
    w: np.ndarray, a: int, b: int, sx: float, sy: float, plus: np.ndarray, minus: np.ndarray
) -> float:
    """Each at the state its waves come from; half the largest wave speed through the face."""
    split_jacobian((w[a, 0], w[a, 1], w[a, 2], w[a, 3]), sx, sy, 1.0, plus)
    split_jacobian((w[b, 0], w[b, 1], w[b, 2], w[b, 3]), sx, sy, -1.0, minus)
    r, u, v, p = 0.5 * (w[a] + w[b])
    return 0.5 * (abs(u * sx + v * sy) + np.sqrt(GAMMA * p / r * (sx * sx + sy * sy)))


@compiled
def factorise(line: np.ndarray, diagonal: np.ndarray, blocks: np.ndarray, pivots: np.ndarray) -> None:
    """The inverse pivots (C, 4, 4) of the block tridiagonal system of every line."""
    pivot, product = np.empty((4, 4)), np.empty((4, 4))
    for at in range(len(line)):
        cell, come = line[at, 0], line[at, 1]
        pivot[:] = diagonal[cell]
        if come >= 0:
            before, go = line[at - 1, 0], line[at - 1, 2]
            _multiply(blocks[cell, come], pivots[before], product)
            for m in range(4):
                for n in range(4):
                    for k in range(4):
                        pivot[m, n] -= product[m, k] * blocks[before, go, k, n]
        _invert(pivot, pivots[cell])


@compiled
def _multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    for m in range(4):
        for n in range(4):
            out[m, n] = a[m, 0] * b[0, n] + a[m, 1] * b[1, n] + a[m, 2] * b[2, n] + a[m, 3] * b[3, n]


@compiled
def _invert(a: np.ndarray, out: np.ndarray) -> None:
    """Gauss and Jordan, in place in a, without exchanges: the blocks are dominated by their diagonals."""
    for k in range(4):
        g = 1 / a[k, k]
        a[k, k] = 1.0
        for n in range(4):
            a[k, n] *= g
        for m in range(4):
            if m != k:
                g = a[m, k]
                a[m, k] = 0.0
                for n in range(4):
                    a[m, n] -= g * a[k, n]
    out[:] = a


@compiled
def relax(
    line: np.ndarray,
    neighbours: np.ndarray,
    blocks: np.ndarray,
    pivots: np.ndarray,
    r: np.ndarray,
    step: np.ndarray,
    backwards: bool,
) -> None:
    """Solve for the steps (C, 4) on one line after the other, those of other lines as they are."""
    starts = np.append(np.flatnonzero(line[:, 1] < 0), len(line))
    y = np.empty((len(line), 4), np.float32)
    x = np.empty(4, np.float32)
    for n in range(len(starts) - 1):
        which = len(starts) - 2 - n if backwards else n
        for at in range(starts[which], starts[which + 1]):
            cell, come, go = line[at]
            for k in range(4):
                x[k] = -r[cell, k]
            for side in range(4):
                if side != come and side != go and neighbours[cell, side] >= 0:
                    _add(x, -1, blocks[cell, side], step[neighbours[cell, side]])
            if come >= 0:
                _add(x, -1, blocks[cell, come], y[at - 1])
            y[at] = 0.0
            _add(y[at], 1, pivots[cell], x)
        for at in range(starts[which + 1] - 1, starts[which] - 1, -1):
            cell, _, go = line[at]
            if go >= 0:
                x[:] = 0.0
                _add(x, -1, blocks[cell, go], step[line[at + 1, 0]])
                _add(y[at], 1, pivots[cell], x)
            for k in range(4):
                step[cell, k] = y[at, k]


@compiled
def _add(x: np.ndarray, sign: int, block: np.ndarray, y: np.ndarray) -> None:
    """x ± block y, in place."""
    for m in range(4):
        total = block[m, 0] * y[0] + block[m, 1] * y[1] + block[m, 2] * y[2] + block[m, 3] * y[3]
        x[m] += np.float32(sign) * total


@compiled
def update(w: np.ndarray, step: np.ndarray) -> float:
    """Add the steps of U to the states; the change of the Mach numbers, in L2 relative to themselves."""
    changes, squares = 0.0, 0.0
    for cell in range(len(step)):
        r, u, v, p = w[cell]
        d0, d1, d2, d3 = RELAXATION * step[cell]
        energy = p / (GAMMA - 1) + 0.5 * r * (u * u + v * v) + d3
        old = np.sqrt(r * (u * u + v * v) / (GAMMA * p))
        # No density or pressure leaps, however wrong the linear system is at the start.
        new = min(max(r + d0, 0.5 * r), 2 * r)
        u, v = (r * u + d1) / new, (r * v + d2) / new
        p = min(max((GAMMA - 1) * (energy - 0.5 * new * (u * u + v * v)), 0.5 * p), 2 * p)
        w[cell, 0], w[cell, 1], w[cell, 2], w[cell, 3] = new, u, v, p
        mach = np.sqrt(new * (u * u + v * v) / (GAMMA * p))
        changes += (mach - old) ** 2
        squares += mach**2
    return np.sqrt(changes / squares)
