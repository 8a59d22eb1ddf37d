"""J2 perfect plasticity in plane stress at large deformation, on bilinear quadrilaterals.

    σ̇ = C : (D - D_p) + spin,   D_p = λ P σ,   p²/4 + ¾ m² + 3 τ² <= σ_Y²

p = σ_xx + σ_yy, m = σ_xx - σ_yy, τ = σ_xy. In a step, the stress turns with the material (Hughes and Winget:
a rigid motion, however large, changes nothing), gains the elastic increment of the strain at mid-step, and
returns to the yield surface along P (Simo and Taylor). P and C have the same eigenvectors, so that the
return only scales p by 1 / (1 + γE/(3(1-ν))) and (m, τ) by 1 / (1 + γE/(1+ν)); γ is one root. Plastic flow
keeps the volume, which gives the thickness at once: (area at rest / area) (1 + (1-2ν) p/E).

An element is known by three modes of its corners, a₁ = ¼ Σ ξ x, a₂ = ¼ Σ η x, a₃ = ¼ Σ ξη x: its Jacobian at
(ξ, η) has the columns a₁ + η a₃ and a₂ + ξ a₃. Elements go through in tiles of `TILE`, so that each loop over
a tile becomes vector instructions: a tile is one flat array, mode k of element j at k·TILE + j.
"""

from functools import partial
from typing import Any

import numpy as np

import lrsa.numerics.compiled as machine_code

TILE = 32
"""Elements in a tile; a multiple of every vector length."""
GAUSS = 1 / np.sqrt(3.0)
STATE = 12
"""Numbers kept for an element: the stress at four points."""
ROWS = 19
"""Of a tile: modes of the places (6) and of the displacements (6), forces on the modes (6), plastic work."""
compiled = partial(machine_code.compiled, fused=True)
inlined = partial(machine_code.compiled, fused=True, inline=True)


@inlined
def return_map(p: float, m: float, tau: float, young: float, nu: float, limit: float) -> Any:
    """The trial stress brought back to the yield surface, and γ: (p, m, τ, γ).

    Newton on 1/√φ, φ the square of the equivalent stress: it is almost linear in γ, and from a trial of
    twice the yield stress the third step is exact to 2e-12. The same operations for every stress, so that
    a loop over stresses has no branches.
    """
    bulk, shear, inverse = young / (3 * (1 - nu)), young / (1 + nu), 1 / limit
    # The smallest number keeps 0/0 out of elements that are at rest.
    pp, qq = 0.25 * p * p + 1e-290, 0.75 * m * m + 3 * tau * tau
    gamma = _newton(pp, qq, 0.0, bulk, shear, inverse)
    gamma = _newton(pp, qq, gamma, bulk, shear, inverse)
    gamma = _newton(pp, qq, gamma, bulk, shear, inverse)
    gamma = gamma if pp + qq > limit * limit else 0.0
    one, two = 1 + bulk * gamma, 1 + shear * gamma
    r = 1 / (one * two)
    return p * (r * two), m * (r * one), tau * (r * one), gamma


@inlined
def _newton(pp: float, qq: float, gamma: float, bulk: float, shear: float, inverse: float) -> float:
    one, two = 1 + bulk * gamma, 1 + shear * gamma
    r = 1 / (one * two)
    one, two = r * two, r * one
    v, w = pp * one * one, qq * two * two
    return gamma + (v + w) * (np.sqrt(v + w) * inverse - 1) / (v * one * bulk + w * two * shear)


@compiled
def point(
    w: np.ndarray,
    s: np.ndarray,
    xi: float,
    eta: float,
    young: float,
    nu: float,
    limit: float,
    rest: float,
) -> None:
    """The stress at the point (ξ, η) of every element of a tile, and its share of the forces.

    Args:
        w: (ROWS · TILE,) the tile.
        s: (3 · TILE,) σ_xx, σ_yy, σ_xy at the start of the step, then at its end.
        xi, eta: The place in the element.
        young, nu, limit: Young's modulus, Poisson's ratio, yield stress.
        rest: Jacobian of the elements at rest.
    """
    shear, bulk, swelling = young / (1 + nu), young / (1 - nu), (1 - 2 * nu) / young
    for j in range(TILE):
        x1, x2 = w[j] + eta * w[j + 2 * TILE], w[j + TILE] + xi * w[j + 2 * TILE]
        y1, y2 = w[j + 3 * TILE] + eta * w[j + 5 * TILE], w[j + 4 * TILE] + xi * w[j + 5 * TILE]
        u1, u2 = w[j + 6 * TILE] + eta * w[j + 8 * TILE], w[j + 7 * TILE] + xi * w[j + 8 * TILE]
        v1, v2 = w[j + 9 * TILE] + eta * w[j + 11 * TILE], w[j + 10 * TILE] + xi * w[j + 11 * TILE]
        a1, a2, b1, b2 = x1 - 0.5 * u1, x2 - 0.5 * u2, y1 - 0.5 * v1, y2 - 0.5 * v2  # at mid-step
        r = 1 / (a1 * b2 - a2 * b1)
        xx, xy = r * (u1 * b2 - u2 * b1), r * (u2 * a1 - u1 * a2)
        yx, yy = r * (v1 * b2 - v2 * b1), r * (v2 * a1 - v1 * a2)
        half = 0.25 * (yx - xy)  # tangent of half the angle by which the material turns
        q = 1 / (1 + half * half)
        cos, sin = (1 - half * half) * q, 2 * half * q
        cos, sin = cos * cos - sin * sin, 2 * cos * sin
        p, m, tau = s[j] + s[j + TILE], s[j] - s[j + TILE], s[j + 2 * TILE]
        p += bulk * (xx + yy)
        m, tau = (
            cos * m - 2 * sin * tau + shear * (xx - yy),
            0.5 * sin * m + cos * tau + 0.5 * shear * (xy + yx),
        )
        p, m, tau, gamma = return_map(p, m, tau, young, nu, limit)
        sx, sy, swell = 0.5 * (p + m), 0.5 * (p - m), 1 + swelling * p
        s[j], s[j + TILE], s[j + 2 * TILE] = sx, sy, tau
        thickness = rest / (x1 * y2 - x2 * y1) * swell
        f1, f2 = thickness * (sx * y2 - tau * x2), thickness * (tau * x1 - sx * y1)
        g1, g2 = thickness * (tau * y2 - sy * x2), thickness * (sy * x1 - tau * y1)
        w[j + 12 * TILE] += f1
        w[j + 13 * TILE] += f2
        w[j + 14 * TILE] += eta * f1 + xi * f2
        w[j + 15 * TILE] += g1
        w[j + 16 * TILE] += g2
        w[j + 17 * TILE] += eta * g1 + xi * g2
        w[j + 18 * TILE] += gamma * swell * (2 / 3 * limit * limit * rest)


@compiled
def longest_step(block: Any, material: Any) -> Any:
    """The longest stable step of a `Workpiece`, and the smallest Jacobian at its integration points.

    2/ω, with a bound on ω: the elastic energy is at most E/(1-ν) |∇u|² / 2, and the largest eigenvalue of the
    element matrix of |∇u|², in its three modes, is at most its largest row sum.
    """
    worst, smallest = 0.0, np.inf
    for i in range(block.x.shape[0] - 1):
        for j in range(block.x.shape[1] - 1):
            x1, x2, x3 = _corner_modes(block.x, i, j)
            y1, y2, y3 = _corner_modes(block.y, i, j)
            k11, k12, k13, k22, k23, k33 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(4):
                xi, eta = -GAUSS if k % 2 == 0 else GAUSS, -GAUSS if k < 2 else GAUSS
                a1, a2, b1, b2 = x1 + eta * x3, x2 + xi * x3, y1 + eta * y3, y2 + xi * y3
                jacobian = a1 * b2 - a2 * b1
                if not jacobian > 0.0:  # or not a number, which min and max would pass over
                    return 0.0, jacobian
                smallest = min(smallest, jacobian)
                r = 1 / (4 * jacobian * jacobian)
                g11, g12, g22 = r * (a2 * a2 + b2 * b2), -r * (a1 * a2 + b1 * b2), r * (a1 * a1 + b1 * b1)
                k11 += g11
                k12 += g12
                k22 += g22
                k13 += eta * g11 + xi * g12
                k23 += eta * g12 + xi * g22
                k33 += eta * eta * g11 + 2 * eta * xi * g12 + xi * xi * g22
            k12, k13, k23 = abs(k12), abs(k13), abs(k23)
            worst = max(worst, k11 + k12 + k13, k22 + k12 + k23, k33 + k13 + k23)
    return 2 / np.sqrt(material.young / (1 - material.nu) / material.density * worst), smallest


@compiled
def _corner_modes(x: np.ndarray, i: int, j: int) -> Any:
    a, b, c, d = x[i, j], x[i + 1, j], x[i + 1, j + 1], x[i, j + 1]
    return 0.25 * ((c + b) - (a + d)), 0.25 * ((c + d) - (a + b)), 0.25 * ((a + c) - (b + d))
