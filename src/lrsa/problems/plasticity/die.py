"""Forging: the block, its grid of nodes, and the random die that comes down on it.

Lengths are millimetres. The block is 50 wide and 15 high; node (i, j) of its grid is the i-th from the right
and the j-th from the top, at the places that the published files have. The die is the graph of a cubic
spline through random heights at equal distances; its ends are `RISE` above its lowest point, which touches
the block at time 0.
"""

import numpy as np
from scipy.interpolate import CubicSpline

from lrsa.pointset import Names

NAMES = Names(
    coords=("x", "y"),
    inputs=("die",),
    targets=("x_t", "y_t", "u_x", "u_y"),
    units=dict.fromkeys(("x", "y", "die", "x_t", "y_t", "u_x", "u_y"), "mm"),
)
"""Of the nodes, the height of the die above them, and where they are and how far they went at a time."""
WIDTH, HEIGHT = 50.0, 15.0
RIGHT, TOP = 0.35, 14.9
"""The right and the upper end of the block."""
RISE = 7.6
"""From the lowest point of the die to its ends."""
SPANS = 7
"""Pieces of the spline."""
FRAMES = 20
INTERVAL = 0.1
"""Milliseconds between frames; the first is the start."""


def nodes(columns: int = 100, rows: int = 30) -> np.ndarray:
    """(columns + 1, rows + 1, 2) the nodes at rest, for so many elements."""
    x = RIGHT - np.linspace(0, WIDTH, columns + 1)
    y = TOP - np.linspace(0, HEIGHT, rows + 1)
    return np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)


def shares(columns: int = 100, rows: int = 30) -> np.ndarray:
    """(columns + 1, rows + 1) the area that each node stands for."""
    x, y = np.ones(columns + 1), np.ones(rows + 1)
    x[[0, -1]] = y[[0, -1]] = 0.5
    return np.outer(x, y) * (WIDTH / columns) * (HEIGHT / rows)


def times() -> np.ndarray:
    """(20,) the times of the frames."""
    return INTERVAL * np.arange(FRAMES)


def random_heights(rng: np.random.Generator) -> np.ndarray:
    """(8,) heights of the spline at its knots from left to right, before it is scaled: the ends are 0."""
    return np.concatenate([[0.0], -rng.uniform(0, 1, SPANS - 1), [0.0]])


def die_pieces(heights: np.ndarray) -> np.ndarray:
    """(4, 7) the cubic of every piece from left to right, the highest power first, in the distance from its
    left end: the natural spline, scaled so that it comes `RISE` below its ends, and put on the block."""
    spline = CubicSpline(np.linspace(0, WIDTH, SPANS + 1), heights, bc_type="natural")
    flat = np.asarray(spline.derivative().roots(extrapolate=False))
    # A piece that is constant, as the die without depth, has every point as a root.
    depth = -float(spline(flat[np.isfinite(flat)]).min())
    pieces = np.array(spline.c) * (RISE / depth)
    pieces[3] += TOP + RISE
    return pieces


def die_heights(pieces: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The height of the die at time 0 above the points x; beyond its ends it goes on level."""
    z = np.clip(np.asarray(x, float) - (RIGHT - WIDTH), 0.0, WIDTH)
    k = np.minimum((z * (SPANS / WIDTH)).astype(int), SPANS - 1)
    d = z - k * (WIDTH / SPANS)
    a, b, c, e = pieces[:, k]
    return ((a * d + b) * d + c) * d + e
