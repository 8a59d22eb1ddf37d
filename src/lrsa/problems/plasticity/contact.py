"""The die on the block: rigid, without friction, pushing only.

Points of the upper side, the nodes and the middles between them, must not be above the die. In every step,
the places without the die are corrected by the smallest impulses that end all penetration:

    n·(x - X) <= 0,   λ >= 0,   λ n·(x - X) = 0   at every point,

X and n the nearest point of the die and its normal there. The middles matter where the die is convex: were
only nodes held, its tip would come between two of them and drive them apart. Projected Gauss-Seidel, begun
with the impulses of the step before.
"""

from typing import Any

import numpy as np

from lrsa.problems.plasticity.die import RIGHT, SPANS, WIDTH
from lrsa.problems.plasticity.flow import compiled

PENETRATION = 1e-5
"""Millimetres by which a point may be off when the sweeps end."""
SWEEPS = 20
NEAR = 0.1
"""Points farther than this from the die cannot touch it within a step."""
SPEED = 3.0
"""Of the die, millimetres per millisecond."""


@compiled
def die_at(pieces: np.ndarray, x: float) -> Any:
    """Height of the die at time 0, its slope and its second derivative; level beyond the ends."""
    z = x - (RIGHT - WIDTH)
    if z <= 0.0 or z >= WIDTH:
        return pieces[3, 0], 0.0, 0.0
    k = min(int(z * (SPANS / WIDTH)), SPANS - 1)
    d = z - k * (WIDTH / SPANS)
    a, b, c, e = pieces[0, k], pieces[1, k], pieces[2, k], pieces[3, k]
    return ((a * d + b) * d + c) * d + e, (3 * a * d + 2 * b) * d + c, 6 * a * d + 2 * b


@compiled
def nearest(pieces: np.ndarray, x: float, y: float) -> Any:
    """The tangent of the die nearest to (x, y), as (n_x, n_y, n·X), n pointing up."""
    at = x
    height, slope, bend = die_at(pieces, at)
    for _ in range(3):
        at -= (at - x + (height - y) * slope) / (1 + slope * slope + max((height - y) * bend, 0.0))
        height, slope, bend = die_at(pieces, at)
    r = 1 / np.sqrt(1 + slope * slope)
    return -slope * r, r, r * (height - slope * at)


@compiled
def touch(
    x: np.ndarray, y: np.ndarray, mass: np.ndarray, pieces: np.ndarray, travel: float, contacts: np.ndarray
) -> float:
    """Correct the upper side for a die that has come down by `travel`; the error that is left.

    Args:
        x: (I, J) abscissae of the nodes; changed at j = 0.
        y: (I, J) ordinates, likewise.
        mass: (I, J) of the nodes.
        pieces: (4, 7) of the die.
        contacts: (2I - 1, 5) for node 0, middle 0, node 1, … the last λ (mass times way, the first guess),
            whether it is near the die, n_x, n_y, n·X; all renewed.
    """
    count = len(contacts)
    for k in range(count):
        i, other = k // 2, (k + 1) // 2
        a, b = 0.5 * (x[i, 0] + x[other, 0]), 0.5 * (y[i, 0] + y[other, 0])
        contacts[k, 1] = 1.0 if b > die_at(pieces, a)[0] - travel - NEAR else 0.0
        if contacts[k, 1] == 0.0:
            contacts[k, 0] = 0.0
        else:
            contacts[k, 2], contacts[k, 3], at = nearest(pieces, a, b + travel)
            contacts[k, 4] = at - contacts[k, 3] * travel
    for k in range(count):
        if contacts[k, 0] > 0.0:
            _push(x, y, mass, k, contacts[k, 2], contacts[k, 3], contacts[k, 0])
    worst = 0.0
    for sweep in range(SWEEPS):
        worst = 0.0
        for n in range(count):
            k = n if sweep % 2 == 0 else count - 1 - n
            if contacts[k, 1] > 0.0:
                worst = max(worst, _correct(x, y, mass, k, contacts))
        if worst < PENETRATION:
            break
    return worst


@compiled
def _correct(x: np.ndarray, y: np.ndarray, mass: np.ndarray, k: int, contacts: np.ndarray) -> float:
    i, other = k // 2, (k + 1) // 2
    a, b = 0.5 * (x[i, 0] + x[other, 0]), 0.5 * (y[i, 0] + y[other, 0])
    depth = contacts[k, 2] * a + contacts[k, 3] * b - contacts[k, 4]
    inertia = mass[i, 0] if other == i else 4 / (1 / mass[i, 0] + 1 / mass[other, 0])
    change = max(contacts[k, 0] + inertia * depth, 0.0) - contacts[k, 0]
    if change == 0.0:
        return 0.0
    contacts[k, 0] += change
    _push(x, y, mass, k, contacts[k, 2], contacts[k, 3], change)
    return abs(change) / inertia


@compiled
def _push(
    x: np.ndarray, y: np.ndarray, mass: np.ndarray, k: int, nx: float, ny: float, impulse: float
) -> None:
    """Against the normal; a middle passes half to each of its nodes."""
    i, other = k // 2, (k + 1) // 2
    share = impulse if other == i else 0.5 * impulse
    x[i, 0] -= share * nx / mass[i, 0]
    y[i, 0] -= share * ny / mass[i, 0]
    if other != i:
        x[other, 0] -= share * nx / mass[other, 0]
        y[other, 0] -= share * ny / mass[other, 0]
