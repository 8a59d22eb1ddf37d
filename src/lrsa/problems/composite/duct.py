"""An air intake, of our own making: a curved duct whose section turns from a rounded rectangle into a circle.

Places in it are (θ, s, ζ): around the section, along the duct from 0 to 1, and through the wall from -1
inside to 1 outside. The middle line is an S in the plane of x and z; the section, square to it, is
|y/a|^p + |z/b|^p = 1, whose half axes a, b and exponent p change along the duct as s²(3 - 2s) does.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from lrsa.problems.composite.bricks import bricks_of

LENGTH, OFFSET = 900.0, 150.0
"""Of the middle line along x, and how far it climbs along z, mm."""
WIDTH, HEIGHT, RADIUS = 190.0, 120.0, 140.0
"""Half axes of the inlet, and the radius of the outlet, mm."""
CORNER = 4.0
"""The exponent p of the inlet; that of a circle is 2."""
WALL = 6.0
"""Thickness, mm."""
AROUND, ALONG = 42, 24
"""Quadratic elements of the published size: 84 nodes around and 49 along the duct."""
STEP = 1e-5
"""Of central differences in θ and s: the error of the normals is of the order of its square."""


@dataclass(frozen=True)
class Duct:
    """Nodes of quadratic elements, one element through the wall."""

    parameters: np.ndarray
    """(N, 3) θ, s, ζ; numbered by θ, then s, then ζ."""
    points: np.ndarray
    """(N, 3) mm."""
    bricks: np.ndarray
    """(E, 27), as `bricks_of` orders them."""
    shape: tuple[int, int, int]
    """Nodes along the three."""

    @property
    def skin(self) -> np.ndarray:
        """(n,) the nodes of both surfaces of the wall, in their order."""
        return np.flatnonzero(self.parameters[:, 2])

    @property
    def inlet(self) -> np.ndarray:
        """The nodes where the duct is held."""
        return np.flatnonzero(self.parameters[:, 1] == 0)


@cache
def duct(finer: int = 1) -> Duct:
    """The duct of elements that are `finer` times smaller around and along it; its nodes stay nodes."""
    shape = (2 * AROUND * finer, 2 * ALONG * finer + 1, 3)
    theta = 2 * np.pi * np.arange(shape[0]) / shape[0]
    axes = (theta, np.linspace(0, 1, shape[1]), np.array([-1.0, 0.0, 1.0]))
    parameters = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    number = np.arange(len(parameters)).reshape(shape)
    return Duct(parameters, place(parameters), bricks_of(closed(number)), shape)


def quarters(shape: tuple[int, int]) -> np.ndarray:
    """(C, 8) hexahedra in VTK's order between the nodes of both surfaces, (θ, s, two of ζ)."""
    number = closed(np.arange(2 * shape[0] * shape[1]).reshape(*shape, 2))
    rings = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
    return np.stack([ring[..., k] for k in (0, 1) for ring in rings], axis=-1).reshape(-1, 8)


def closed(number: np.ndarray) -> np.ndarray:
    """Nodes by their places around, along and through the wall, the first of them behind the last again."""
    return np.concatenate([number, number[:1]])


def place(parameters: np.ndarray) -> np.ndarray:
    """(N, 3) places of (N, 3) parameters: along the normal of the middle surface by half a wall."""
    theta, s, zeta = parameters.T
    around = middle(theta + STEP, s) - middle(theta - STEP, s)
    along = middle(theta, s + STEP) - middle(theta, s - STEP)
    normal = np.cross(around, along)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return middle(theta, s) + (WALL / 2) * zeta[:, None] * normal


def middle(theta: np.ndarray, s: np.ndarray) -> np.ndarray:
    """(N, 3) of the middle surface."""
    blend, slope = s**2 * (3 - 2 * s), 6 * s * (1 - s)
    half = WIDTH + (RADIUS - WIDTH) * blend, HEIGHT + (RADIUS - HEIGHT) * blend
    power = CORNER + (2 - CORNER) * blend
    reach = (np.abs(np.cos(theta)) ** power + np.abs(np.sin(theta)) ** power) ** (-1 / power)
    across, up = half[0] * reach * np.cos(theta), half[1] * reach * np.sin(theta)
    lean = np.arctan2(OFFSET * slope, LENGTH)  # of the middle line: its normal is (-sin, cos)
    return np.stack([LENGTH * s - up * np.sin(lean), across, OFFSET * blend + up * np.cos(lean)], axis=1)
