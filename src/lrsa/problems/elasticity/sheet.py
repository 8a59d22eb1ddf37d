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
from scipy.sparse.linalg import SuperLU, splu

from lrsa.errors import LrsaError
from lrsa.numerics.krylov import conjugate_gradients, length

TOLERANCE = 1e-10
"""Largest force out of balance, relative to the loads and reactions: far below what float32 shows (6e-8)."""
STEPS = 25
"""Newton steps after which the sheet is said not to hold; small strains take three."""
KRYLOV = 100
"""Most iterations for one step."""
GAUSS = 0.5 + np.sqrt(0.15) * np.array([-1.0, 0.0, 1.0])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18
"""The three Gauss points of [0, 1] and their weights."""


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
        p = shear * h + (pressure - shear) * _cofactor(h)
        p[0, 0] += pressure
        p[1, 1] += pressure
        return p

    def tangent(self, h: np.ndarray) -> np.ndarray:
        """∂P/∂F, for the displacement gradient H."""
        trace, square, j = _invariants(h)
        s, t = 1 / (1 + j), 2 + 2 * trace + square
        one = np.eye(2).reshape(2, 2, *[1] * (h.ndim - 2))
        f = one + h
        g = _cofactor(f)
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


class Sheet:
    """Nine-node quadrilaterals without their place: all that the position of the nodes does not change."""

    def __init__(self, elements: np.ndarray, held: np.ndarray) -> None:
        """`elements` (E, 9) are nodes, 3 × 3 row by row; `held` (V, 2) is True where nothing moves."""
        self.elements, self.held = elements, held
        dofs = (2 * elements[:, :, None] + np.arange(2)).reshape(len(elements), 18)
        self.dofs = dofs.ravel()
        self.free = np.flatnonzero(~held)
        self._number(dofs)
        # Eliminating in the order in which little fills up: sought once, since it is the pattern's alone.
        any_matrix = self.assemble(np.broadcast_to(np.ones((18, 18)) + np.eye(18), (len(elements), 18, 18)))
        self.free = self.free[np.argsort(_factor(any_matrix, "MMD_AT_PLUS_A").perm_c)]
        self._number(dofs)

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
            factors = factors or _factor(matrix, "NATURAL")
            step, _ = conjugate_gradients(matrix.dot, r, factors.solve, KRYLOV, norm=min(0.1, imbalance))
            u.ravel()[self.free] += step
        raise LrsaError("the sheet finds no equilibrium: the traction is too large for the material")

    def assemble(self, matrices: np.ndarray) -> sp.csc_array:
        """(E, 18, 18) matrices of the elements to the matrix of the free unknowns."""
        data = np.bincount(self.slots, matrices.ravel()[self.entries], minlength=len(self.rows))
        return sp.csc_array((data, self.rows, self.starts), shape=(len(self.free),) * 2)

    def _number(self, dofs: np.ndarray) -> None:
        """The places of the entries of the elements' matrices in the sparse matrix of the free unknowns."""
        number = np.full(self.held.size, -1)
        number[self.free] = np.arange(len(self.free))
        rows, columns = np.broadcast_arrays(number[dofs][:, :, None], number[dofs][:, None, :])
        self.entries = np.flatnonzero((rows >= 0) & (columns >= 0))
        keys = columns.ravel()[self.entries] * len(self.free) + rows.ravel()[self.entries]
        unique, self.slots = np.unique(keys, return_inverse=True)
        self.rows = (unique % len(self.free)).astype(np.int32)
        self.starts = np.searchsorted(unique, np.arange(len(self.free) + 1) * len(self.free)).astype(np.int32)


class Body:
    """A sheet in its place: gradients, forces and stiffness for a displacement of its nodes."""

    def __init__(self, sheet: Sheet, nodes: np.ndarray, rubber: Rubber) -> None:
        self.sheet, self.rubber = sheet, rubber
        jacobian = along(gauss_derivatives(1), nodes[sheet.elements])  # (2 x, 2 ξ, E, 9)
        area, inward = inverse(jacobian)
        if area.min() <= 0:
            raise LrsaError("the sheet has an element that is turned inside out")
        self.measure = area * np.outer(2 * WEIGHTS, 2 * WEIGHTS).ravel()  # (E, 9)
        local = np.stack(gauss_derivatives(1)).transpose(2, 0, 1)  # (n, ξ, g)
        slopes = [local[:, 0] * inward[0, k][:, None] + local[:, 1] * inward[1, k][:, None] for k in (0, 1)]
        self.slopes = np.concatenate(slopes, axis=2)  # (E, 9 nodes, 2 × 9 points)

    def gradient(self, u: np.ndarray) -> np.ndarray:
        """(2, 2, E, 9) displacement gradient at the Gauss points."""
        h = self.slopes.transpose(0, 2, 1) @ u[self.sheet.elements]
        return np.ascontiguousarray(h.reshape(-1, 2, 9, 2).transpose(3, 1, 0, 2))

    def forces(self, h: np.ndarray) -> np.ndarray:
        """(V, 2) forces of the nodes on the sheet that hold it in that state."""
        p = (self.rubber.stress(h) * self.measure).transpose(2, 1, 3, 0).reshape(-1, 18, 2)
        return np.bincount(self.sheet.dofs, (self.slopes @ p).ravel()).reshape(-1, 2)

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
        return self.sheet.assemble(matrices)


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
    for point, place in enumerate(GAUSS * 2 * pieces):
        first = int(np.clip(round(place - (count - 1) / 2), 0, width - count))
        powers = np.vander(np.arange(first, first + count) - place, increasing=True)
        value[point, first : first + count], by_node = np.linalg.inv(powers)[:2]
        slope[point, first : first + count] = by_node * pieces
    return np.kron(value, slope), np.kron(slope, value)


def along(derivatives: tuple[np.ndarray, np.ndarray], values: np.ndarray) -> np.ndarray:
    """(2, 2, E, 9) ∂v_i/∂ξ_k at the Gauss points, of values (E, n², 2) at nodes."""
    return np.stack([d @ values for d in derivatives]).transpose(3, 0, 1, 2)


def inverse(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The determinants and inverses of (2, 2, ...) matrices."""
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return determinant, _cofactor(a).swapaxes(0, 1) / determinant


def _invariants(h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """tr H, H:H and J - 1 = tr H + det H."""
    trace = h[0, 0] + h[1, 1]
    return trace, (h**2).sum(axis=(0, 1)), trace + h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]


def _cofactor(a: np.ndarray) -> np.ndarray:
    """∂(det A)/∂A."""
    return np.stack([np.stack([a[1, 1], -a[1, 0]]), np.stack([-a[0, 1], a[0, 0]])])


def _factor(matrix: sp.csc_array, order: str) -> SuperLU:
    return splu(matrix, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
