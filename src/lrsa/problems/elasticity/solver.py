"""A stretched rubber sheet with a hole: Div P = 0 in the unit square less the hole, P = ∂W/∂F.

W is that of an incompressible Rivlin-Saunders solid in plane stress (`sheet`). The bottom is clamped, the
top pulled upwards by a dead traction, the sides and the hole are free. The hole has the radius
r(φ) = 0.2 + 0.2/(1 + exp g(φ)) about the centre, g a Gaussian random function of five modes.

The points are the 3 × 3 Gauss points of 36 × 3 elements on rays from the hole to the square: 972. They do
not depend on the mesh that is solved on, in which each of these elements is divided into `refinement`² ones.
Refinements of 1, 2 and 4 err by about 3 %, 0.4 % and 0.07 % in L2; what is left then comes from the clamped
corners, where the stress is singular.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from lrsa.errors import LrsaError
from lrsa.numerics.elements import GAUSS, WEIGHTS, inverse
from lrsa.pointset import Names, PointSet
from lrsa.problems.elasticity.sheet import Rubber, Sheet, along, gauss_derivatives, von_mises

AROUND, ACROSS = 36, 3
"""Elements round the hole, and from it to the square, whose Gauss points are the points."""
LAYERS = np.cumsum([0, 1, 1.15, 1.15**2]) / (1 + 1.15 + 1.15**2)
"""Where the elements end on their way from the hole (0) to the square (1)."""


@dataclass(frozen=True)
class Elasticity:
    """The benchmark: the shape of the cell, known by its points alone, to the von Mises stress there."""

    refinement: int = 4
    """Elements of the mesh that is solved on, along each side of an element that holds nine points."""
    deviation: float = 16.0
    """Of the random coefficients of the hole's modes."""
    traction: float = 100.0
    """Pull on the top, per length of the undeformed cell."""
    c1: float = 1.863e5
    """C₁ of the strain energy."""
    c2: float = 9.79e3
    """C₂ of the strain energy."""

    names: ClassVar[Names] = Names(
        coords=("x", "y"), targets=("von_mises",), units={"x": "1", "y": "1", "von_mises": "Pa"}
    )

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random hole and the stress around it, float32; the weights are areas before the stretch."""
        coefficients = self.deviation * rng.standard_normal(10)
        cell, rubber = unit_cell(self.refinement), Rubber(self.c1, self.c2)
        nodes = cell.nodes(coefficients)
        load = self.traction * cell.top[:, None] * np.array([0.0, 1.0])
        u = cell.sheet.solve(nodes, load, rubber)
        x, weights = cell.points(coefficients)
        stress = von_mises(cell.gradient(nodes, u), rubber)
        return PointSet(
            x=x.astype(np.float32),
            u=stress.astype(np.float32).reshape(-1, 1),
            weights=weights.astype(np.float32),
            names=self.names,
        )


class UnitCell:
    """The mesh on rays: node (i, j) is the i-th counter-clockwise from a lower corner, the j-th outwards."""

    def __init__(self, refinement: int) -> None:
        around, across = AROUND * refinement, ACROSS * refinement
        self.patches = _patches(AROUND, ACROSS, refinement)
        self.derivatives = gauss_derivatives(refinement)
        ticks = np.arange(2 * refinement) / (2 * refinement)
        self.angle, self.reach, _ = _rays((np.arange(AROUND)[:, None] + ticks).ravel())
        self.outwards = np.interp(np.arange(2 * across + 1) / (2 * refinement), np.arange(ACROSS + 1), LAYERS)
        side = np.arange(around // 2 + 1)  # the nodes of a side, both corners among them
        held = np.zeros((2 * around, 2 * across + 1, 2), dtype=bool)
        held[side, -1] = True
        # A quadratic edge hands its load to its nodes as Simpson's rule does.
        shares = np.where(side % 2, 4.0, 2.0)
        shares[[0, -1]] = 1
        top = np.zeros(held.shape[:2])
        top[around + side, -1] = shares / shares.sum()
        self.top = top.ravel()
        self.sheet = Sheet(_patches(around, across, 1), held.reshape(-1, 2))

    def nodes(self, coefficients: np.ndarray) -> np.ndarray:
        """(V, 2) positions around that hole."""
        hole = radius(self.angle, coefficients)[:, None]
        distance = hole + self.outwards * (self.reach[:, None] - hole)
        return _cartesian(distance, self.angle[:, None]).reshape(-1, 2)

    def points(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(972, 2) Gauss points and (972,) the areas they stand for, of the true shape of the hole."""
        place, share = 0.5 + GAUSS / 2, WEIGHTS / 2  # of an element from 0 to 1
        angle, reach, turn = _rays((np.arange(AROUND)[:, None] + place).ravel())
        thickness = np.diff(LAYERS)[:, None]
        outwards = (LAYERS[:-1, None] + thickness * place).ravel()
        hole = radius(angle, coefficients)[:, None]
        distance = hole + outwards * (reach[:, None] - hole)
        x = _cartesian(distance, angle[:, None])
        weights = distance * (reach[:, None] - hole) * (np.tile(share, AROUND) * turn)[:, None]
        weights = weights * (thickness * share).ravel()
        by_element = [v.reshape(AROUND, 3, ACROSS, 3, -1).swapaxes(1, 2) for v in (x, weights)]
        return by_element[0].reshape(-1, 2), by_element[1].ravel()

    def gradient(self, nodes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(2, 2, 972) displacement gradient at the points."""
        _, inward = inverse(along(self.derivatives, nodes[self.patches]))
        slopes = along(self.derivatives, u[self.patches])
        return np.einsum("ikeg,kleg->ileg", slopes, inward).reshape(2, 2, -1)


@lru_cache(maxsize=2)
def unit_cell(refinement: int) -> UnitCell:
    """All that is the same for every hole."""
    if refinement < 1:
        raise LrsaError(f"a refinement of {refinement} is no mesh: from 1 on")
    return UnitCell(refinement)


def radius(angle: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """The hole's radius, for the coefficients (10,) of cos φ, sin φ, cos 2φ, ... sin 5φ."""
    k = np.arange(1, 6)
    modes = np.stack([np.cos(angle[:, None] * k), np.sin(angle[:, None] * k)], axis=-1)  # (n, 5, 2)
    g = (modes * (coefficients.reshape(5, 2) / (np.sqrt(np.pi) * (k**2 + 9))[:, None])).sum(axis=(1, 2))
    return 0.2 + 0.2 / (1 + np.exp(g))


def _rays(place: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angle, length and dφ/d(place) of the rays to places on the square, counted in elements from (0, 0)."""
    side, part = np.divmod(place, AROUND // 4)
    offset = part / (AROUND // 4) - 0.5
    reach = np.sqrt(0.25 + offset**2)
    return np.arctan(2 * offset) + (side - 1) * np.pi / 2, reach, 0.5 / reach**2 / (AROUND // 4)


def _cartesian(distance: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(..., 2) places at that distance from the centre of the cell."""
    return 0.5 + np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=-1)


def _patches(around: int, across: int, pieces: int) -> np.ndarray:
    """(E, n²) nodes, n = 2 pieces + 1, of each patch of pieces × pieces elements; ξ is outwards, η around."""
    ring, layer = (
        2 * pieces * np.arange(count)[:, None] + np.arange(2 * pieces + 1) for count in (around, across)
    )
    ring %= 2 * pieces * around
    nodes = ring[:, None, :, None] * (2 * pieces * across + 1) + layer[None, :, None, :]
    return nodes.reshape(around * across, -1)
