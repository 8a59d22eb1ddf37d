"""C-grids around profiles, by the square root: ζ² = w e^{-iα} unfolds a profile and its wake to a low hill.

w is the place relative to a point inside the nose, α the angle of attack. Above the hill Y = S(X) the grid
is sheared: its rays are straight lines X = const, in the plane of the flow parabolas, which leave the profile
at nearly a right angle and never cross. Steps along them grow by one factor, from a given height at the wall.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from lrsa.errors import Failure
from lrsa.problems.airfrans.profile import mean_line, nose_radius, profile

DENSE = 2000
"""Points of each curve between which splines interpolate."""
BEND = 0.5
"""Chords in which the wake turns from the bisector of the trailing edge into the stream."""
NOSE, MIDDLE, TAIL = 0.8, 1.0, 0.2
"""Steps in X along a side of the profile: at both ends, and what the middle has more."""
OPENING, WIDEST = 3.0, 2e-3
"""By how much the first layer of the wake grows in a chord, and to which height."""


@dataclass(frozen=True)
class CGrid:
    """Nodes i along the wake, the lower side, the upper side and the wake again; j outwards."""

    nodes: np.ndarray
    """(I + 1, J + 1, 2)."""
    wake: int
    """Cells of the wake, on each side."""

    @cached_property
    def index(self) -> np.ndarray:
        """(I + 1, J + 1) the number of every node; the two sides of the wake share theirs."""
        index = np.arange(self.nodes.shape[0] * self.nodes.shape[1]).reshape(self.nodes.shape[:2])
        index[: self.wake + 1, 0] = index[::-1][: self.wake + 1, 0]
        return np.unique(index, return_inverse=True)[1].reshape(index.shape)

    @cached_property
    def points(self) -> np.ndarray:
        """(N, 2) by number."""
        points = np.empty((self.index.max() + 1, 2))
        points[self.index] = self.nodes
        return points

    @cached_property
    def cells(self) -> np.ndarray:
        """(I·J, 4) counter-clockwise, j running fastest."""
        a = self.index
        return np.stack([a[:-1, :-1], a[1:, :-1], a[1:, 1:], a[:-1, 1:]], axis=-1).reshape(-1, 4)

    @property
    def wall(self) -> np.ndarray:
        """(W, 2) sides of the profile, from the lower trailing edge over the nose to the upper one."""
        ring = self.index[self.wake : len(self.index) - self.wake, 0]
        return np.stack([ring[:-1], ring[1:]], axis=1)

    @property
    def far(self) -> np.ndarray:
        """(F, 2) sides of the outer boundary."""
        ring = np.concatenate([self.index[0], self.index[1:-1, -1], self.index[-1, ::-1]])
        return np.stack([ring[:-1], ring[1:]], axis=1)


def c_grid(
    digits: tuple[float, ...], angle: float, side: int, wake: int, layers: int, first: float, radius: float
) -> CGrid:
    """The grid around a profile.

    Args:
        digits: Of the profile.
        angle: Of attack, degrees.
        side: Cells along each side of the profile.
        wake: Cells along the wake.
        layers: Cells from the profile to the far boundary.
        first: Height of the first layer.
        radius: Chords from the profile to the far boundary.
    """
    turn = np.exp(-1j * np.radians(angle))
    centre = _centre(digits)
    curve, tail = _hill(digits, centre, turn)
    stations = _stations(float(tail[0].real), side, wake, float(np.sqrt(1 + radius)))
    hill = _height(stations, curve, tail)
    zeta, top = np.abs(stations + 1j * hill), np.sqrt(radius)
    behind = np.maximum(zeta**2 - abs(tail[0]) ** 2, 0)  # chords from the trailing edge
    heights = np.minimum(first * OPENING**behind, max(first, WIDEST))
    share = shares(heights / (2 * zeta * (top - hill)), layers)  # (I + 1, J + 1)
    w = (stations[:, None] + 1j * (hill[:, None] + (top - hill[:, None]) * share)) ** 2
    z = centre + w / turn
    return CGrid(np.stack([z.real, z.imag], axis=-1), wake)


def shares(first: np.ndarray, layers: int) -> np.ndarray:
    """(n, layers + 1) from 0 to 1 along every ray, by its first step (n,).

    Far from the wall all rays have the steps of the mean one, near it their own: where neighbouring rays
    differ, the steps must not be long.
    """
    mean = float(np.exp(np.log(first).mean()))
    common = growing(mean, layers)
    own = (1 - np.arange(layers + 1) / layers) ** 2
    return common * (first[:, None] / mean) ** (own * layers**2 / (layers - 1) ** 2)


def growing(first: float, cells: int) -> np.ndarray:
    """(cells + 1,) from 0 to 1 in steps of one ratio, by the first."""

    def excess(ratio: float) -> float:
        return first * (ratio**cells - 1) / (ratio - 1) - 1

    if excess(1 + 1e-9) > 0 or excess(2.0) < 0:
        raise Failure(f"{cells} cells do not suit a first one of {first:g}. Choose other numbers of cells")
    powers = float(brentq(excess, 1 + 1e-9, 2.0, xtol=1e-14)) ** np.arange(cells + 1)  # pyright: ignore[reportArgumentType]
    return (powers - 1) / (powers[-1] - 1)


def _centre(digits: tuple[float, ...]) -> complex:
    """Half a nose radius behind the nose: there the square root makes a parabola straight."""
    _, slope = mean_line(digits, np.zeros(1))
    return complex(nose_radius(digits) / 2 * (1 + 1j * slope[0]) / np.hypot(1, slope[0]))


def _hill(digits: tuple[float, ...], centre: complex, turn: complex) -> tuple[np.ndarray, np.ndarray]:
    """ζ on the profile, from the lower trailing edge to the upper one, and from there along the wake."""
    x = (1 - np.cos(np.pi * np.linspace(0, 1, DENSE))) / 2
    lower, upper = (side @ np.array([1, 1j]) for side in profile(digits, x))
    w = (np.concatenate([lower[:0:-1], upper]) - centre) * turn
    angles = np.unwrap(np.angle(w))
    angles -= 2 * np.pi * np.round((angles[DENSE - 1] - np.pi) / (2 * np.pi))  # the nose is at about π
    curve = np.sqrt(np.abs(w)) * np.exp(0.5j * angles)
    _, slope = mean_line(digits, np.ones(1))
    start = (1 + 1j * slope[0]) * turn
    along = np.concatenate([[0], np.geomspace(1e-4, 1e3, DENSE)])
    bend = BEND * start.imag / start.real * (1 - np.exp(-along / BEND))
    return curve, np.sqrt(w[-1] + along + 1j * bend)


def _stations(tail: float, side: int, wake: int, end: float) -> np.ndarray:
    """X of the rays, from -end to end, with the trailing edge at ±tail and the nose about 0."""
    s = (np.arange(side) + 0.5) / side
    steps = NOSE * (1 - s) + TAIL * s + MIDDLE * np.sin(np.pi * s) ** 2
    steps *= tail / steps.sum()
    behind = tail + (end - tail) * growing(steps[-1] / (end - tail), wake)[1:]
    half = np.concatenate([np.cumsum(steps)[:-1], [tail], behind])
    return np.concatenate([-half[::-1], [0.0], half])


def _height(stations: np.ndarray, curve: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """S at the stations: the profile, and beyond the trailing edge the wake, which -ζ continues below."""
    along, beyond = np.real(curve), np.real(tail)
    if (np.diff(along) <= 0).any() or (np.diff(beyond) <= 0).any():
        raise Failure("a profile folds over itself when it is unfolded")
    end = beyond[0]
    behind = CubicSpline(beyond, np.imag(tail))(np.maximum(np.abs(stations), end))
    return np.where(
        np.abs(stations) < end * (1 - 1e-12),
        CubicSpline(along, np.imag(curve))(np.clip(stations, -end, end)),
        np.sign(stations) * behind,
    )
