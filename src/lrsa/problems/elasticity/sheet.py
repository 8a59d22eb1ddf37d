"""Finite elements of a rubber sheet in plane stress: Div P = 0, P = ∂W/∂F, large displacements.

W = C₁(I₁ - 3) + C₂(I₂ - 3), incompressible (Rivlin and Saunders). The thickness gives way so that the
volume stays: in the plane I₁ = t + J⁻² and I₂ = J² + t J⁻², with t = F:F and J = det F. Total Lagrangian,
nine-node quadrilaterals with 3 × 3 Gauss points, Newton.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from lrsa.errors import LrsaError
from lrsa.numerics.elements import GAUSS, Assembly, cofactor, in_place, pairs
from lrsa.numerics.krylov import conjugate_gradients, length

TOLERANCE = 1e-10
"""Largest force out of balance, relative to the loads and reactions: far below what float32 shows (6e-8)."""
STEPS = 25
"""Newton steps after which the sheet is said not to hold; small strains take three."""
KRYLOV = 100
"""Most iterations for one step."""


class Rubber(NamedTuple):
    """The material. Components come first: H, P are (2, 2, ...), the tangent is (2, 2, 2, 2, ...)."""

    c1: float
    c2: float

    def stress(self, h: np.ndarray) -> np.ndarray:
        """P (first Piola-Kirchhoff) for the displacement gradient H = F - 1.

        P = 2 W_t F + W_J cof F, with the pressure 2 W_t + W_J, which is small as H is, free of cancellation.
        """
        trace, square, j = _invariants(h)
        s = 1 / (1 + j)
        by_c1 = j * (3 + j * (3 + j)) * s**3
        by_c2 = (j * (5 + j * (6 + j * (4 + j))) - 2 * trace - square) * s**3
        pressure = 2 * (self.c1 * by_c1 + self.c2 * by_c2)
        shear = 2 * (self.c1 + self.c2 * s**2)
        p = shear * h + (pressure - shear) * cofactor(h)
        p[0, 0] += pressure
        p[1, 1] += pressure
        return p

    def tangent(self, h: np.ndarray) -> np.ndarray:
        """∂P/∂F, for the displacement gradient H."""
        trace, square, j = _invariants(h)
        s, t = 1 / (1 + j), 2 + 2 * trace + square
        one = np.eye(2).reshape(2, 2, *[1] * (h.ndim - 2))
        f = one + h
        g = cofactor(f)
        w_t = self.c1 + self.c2 * s**2
        w_j = -2 * self.c1 * s**3 + 2 * self.c2 * (1 + j - t * s**3)
        w_tj = -2 * self.c2 * s**3
        w_jj = 6 * self.c1 * s**4 + self.c2 * (2 + 6 * t * s**4)
        a = g[:, :, None, None] * (w_jj * g + 2 * w_tj * f) + f[:, :, None, None] * (2 * w_tj * g)
        for i, k in np.ndindex(2, 2):
            a[i, k, i, k] += 2 * w_t
            a[i, k, 1 - i, 1 - k] += w_j if i == k else -w_j
        return a


def von_mises(h: np.ndarray, rubber: Rubber) -> np.ndarray:
    """The von Mises norm of the Cauchy stress σ = P Fᵀ (det F = 1 in space; none out of the plane)."""
    p = rubber.stress(h)
    (xx, xy), (_, yy) = p + np.einsum("ik...,jk...->ij...", p, h)
    return np.sqrt(xx**2 - xx * yy + yy**2 + 3 * xy**2)


class Sheet(Assembly):
    """Nine-node quadrilaterals without their place."""

    def __init__(self, elements: np.ndarray, held: np.ndarray) -> None:
        """`elements` (E, 9) are nodes, 3 × 3 row by row; `held` (V, 2) is True where nothing moves."""
        self.elements, self.held = elements, held
        super().__init__(pairs(elements), held.ravel(), pivot=0.0)

    def solve(
        self,
        nodes: np.ndarray,
        load: np.ndarray,
        rubber: Rubber,
        start: np.ndarray | None = None,
        watch: Callable[[float], None] = lambda imbalance: None,
    ) -> np.ndarray:
        """(V, 2) displacement for the forces `load` (V, 2) on the nodes at `nodes` (V, 2).

        Newton's steps, each solved by conjugate gradients that the factors of the first tangent precondition:
        strains are small, so that two or three iterations do, and a sheet is factorised once. A step is as
        exact as it must be for the convergence to stay quadratic.

        Args:
            nodes: (V, 2) positions before the stretch.
            load: (V, 2) forces.
            rubber: The material.
            start: (V, 2) displacement to begin with, which stays where the sheet is held.
            watch: Called with the relative imbalance before every step and at the end.
        """
        body = Body(self, nodes, rubber)
        u = np.zeros(nodes.shape) if start is None else np.array(start, dtype=np.float64)
        factors = None
        for _ in range(STEPS):
            h = body.gradient(u)
            forces = body.forces(h)
            r = (load - forces).ravel()[self.free]
            imbalance = length(r) / max(length(load), length(forces), 1e-300)
            watch(imbalance)
            if imbalance <= TOLERANCE:
                return u
            if not np.isfinite(imbalance):
                break
            matrix = body.stiffness(h)
            factors = factors or self.factor(matrix)
            step, _ = conjugate_gradients(matrix.dot, r, factors.solve, KRYLOV, norm=min(0.1, imbalance))
            u.ravel()[self.free] += step
        raise LrsaError("the sheet finds no equilibrium: the traction is too large for the material")


class Body:
    """A sheet in its place: gradients, forces and stiffness for a displacement of its nodes."""

    def __init__(self, sheet: Sheet, nodes: np.ndarray, rubber: Rubber) -> None:
        self.sheet, self.rubber = sheet, rubber
        jacobian = along(gauss_derivatives(1), nodes[sheet.elements])
        local = np.stack(gauss_derivatives(1)).transpose(0, 2, 1)
        self.measure, self.slopes = in_place(jacobian, local)

    def gradient(self, u: np.ndarray) -> np.ndarray:
        """(2, 2, E, 9) displacement gradient at the Gauss points."""
        h = self.slopes.transpose(0, 2, 1) @ u[self.sheet.elements]
        return np.ascontiguousarray(h.reshape(-1, 2, 9, 2).transpose(3, 1, 0, 2))

    def forces(self, h: np.ndarray) -> np.ndarray:
        """(V, 2) forces of the nodes on the sheet that hold it in that state."""
        p = (self.rubber.stress(h) * self.measure).transpose(2, 1, 3, 0).reshape(-1, 18, 2)
        return self.sheet.add(self.slopes @ p).reshape(-1, 2)

    def stiffness(self, h: np.ndarray) -> sp.csc_array:
        """The derivative of the forces by the free displacements."""
        a = (self.rubber.tangent(h) * self.measure)[..., None, :]  # (2, 2, 2, 2, E, 1, 9)
        by_axis, adjoint = self.slopes.reshape(-1, 9, 2, 9), self.slopes.transpose(0, 2, 1)
        matrices = np.empty((len(self.slopes), 9, 2, 9, 2))
        for i, j in ((0, 0), (0, 1), (1, 1)):
            flux = [by_axis[:, :, 0] * a[i, 0, j, k] + by_axis[:, :, 1] * a[i, 1, j, k] for k in (0, 1)]
            block = np.concatenate(flux, axis=2) @ adjoint
            matrices[:, :, i, :, j] = block
            if i != j:
                matrices[:, :, j, :, i] = block.transpose(0, 2, 1)
        return self.sheet.matrix(self.sheet.assemble(matrices.reshape(-1, 18, 18)))


@lru_cache(maxsize=4)
def gauss_derivatives(pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices (9, n²), n = 2 pieces + 1: ∂/∂ξ and ∂/∂η at the 3 × 3 Gauss points of [-1, 1]².

    They act on the values at the nodes of pieces × pieces elements, row by row, ξ along the row. In each
    direction they differentiate the polynomial through the five nearest nodes: the values at the nodes are
    more exact than the elements' own slopes between them. For one element it is that of the element.
    """
    width = 2 * pieces + 1
    count = min(5, width)
    value, slope = np.zeros((2, 3, width))
    for point, place in enumerate((0.5 + GAUSS / 2) * 2 * pieces):
        first = int(np.clip(round(place - (count - 1) / 2), 0, width - count))
        powers = np.vander(np.arange(first, first + count) - place, increasing=True)
        value[point, first : first + count], by_node = np.linalg.inv(powers)[:2]
        slope[point, first : first + count] = by_node * pieces
    return np.kron(value, slope), np.kron(slope, value)


def along(derivatives: tuple[np.ndarray, np.ndarray], values: np.ndarray) -> np.ndarray:
    """(2, 2, E, 9) ∂v_i/∂ξ_k at the Gauss points, of values (E, n², 2) at nodes."""
    return np.stack([d @ values for d in derivatives]).transpose(3, 0, 1, 2)


def _invariants(h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """tr H, H:H and J - 1 = tr H + det H."""
    trace = h[0, 0] + h[1, 1]
    return trace, (h**2).sum(axis=(0, 1)), trace + h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
