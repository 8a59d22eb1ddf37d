"""Finite elements of quadrilaterals: quadrature, elements in their place, their sum as a sparse matrix.

Elements are many and small, so that everything is an array over all of them: (E, ...). A reference
quadrilateral is [-1, 1]² with 3 × 3 Gauss points g, row by row.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu

from lrsa.errors import LrsaError

GAUSS = np.sqrt(0.6) * np.array([-1.0, 0.0, 1.0])
WEIGHTS = np.array([5.0, 8.0, 5.0]) / 9
"""The three Gauss points of [-1, 1] and their weights."""


def in_place(jacobian: np.ndarray, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(E, g) measures of the Gauss points, and (E, n, 2 g) slopes ∂φ_n/∂x_k there, k being the slower.

    Args:
        jacobian: (2, 2, E, g) ∂x_i/∂ξ_k.
        local: (2, n, g) slopes ∂φ_n/∂ξ_k.
    """
    area, inward = inverse(jacobian)
    if not area.min() > 0:
        raise LrsaError("the mesh has an element that is turned inside out")
    slopes = [local[0] * inward[0, k][:, None] + local[1] * inward[1, k][:, None] for k in (0, 1)]
    return area * np.outer(WEIGHTS, WEIGHTS).ravel(), np.concatenate(slopes, axis=2)


def inverse(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The determinants and inverses of (2, 2, ...) matrices."""
    determinant = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return determinant, cofactor(a).swapaxes(0, 1) / determinant


def cofactor(a: np.ndarray) -> np.ndarray:
    """∂(det A)/∂A of (2, 2, ...) matrices."""
    return np.stack([np.stack([a[1, 1], -a[1, 0]]), np.stack([-a[0, 1], a[0, 0]])])


class Assembly:
    """The unknowns of elements without their place: all that the position of the nodes does not change.

    The pattern of the sparse matrix, and the order in which it is eliminated, are found once.
    """

    free: np.ndarray
    """The unknowns that are not given, in the order of the matrix."""

    def __init__(self, dofs: np.ndarray, given: np.ndarray, pivot: float) -> None:
        """`dofs` (E, k) are the unknowns of every element; `given` (U,) is True where one is known.

        `pivot` is the part of the largest entry of a column that a diagonal one must have to be the pivot.
        """
        self.dofs, self.pivot = dofs, pivot
        self.free = np.flatnonzero(~given)
        self._number(len(given))
        # Eliminating in the order in which little fills up, which is the pattern's alone: of any matrix.
        count, width = dofs.shape
        entries = np.broadcast_to(np.ones((width, width)) + 30 * np.eye(width), (count, width, width))
        factors = self.factor(self.matrix(self.assemble(entries)), "MMD_AT_PLUS_A")
        self.free = self.free[np.argsort(factors.perm_c)]
        self._number(len(given))

    def assemble(self, matrices: np.ndarray) -> np.ndarray:
        """(E, n, n) matrices of the first n unknowns of the elements to the entries of the sparse one."""
        width = matrices.shape[1]
        if width not in self._places:
            slots = self._slots[:, :width, :width].ravel()
            entries = np.flatnonzero(slots >= 0)
            self._places[width] = entries, slots[entries]
        entries, slots = self._places[width]
        return np.bincount(slots, matrices.ravel()[entries], minlength=len(self._rows))

    def matrix(self, entries: np.ndarray) -> sp.csc_array:
        """The matrix of the free unknowns."""
        return sp.csc_array((entries, self._rows, self._starts), shape=(len(self.free),) * 2)

    def factor(self, matrix: sp.csc_array, order: str = "NATURAL") -> SuperLU:
        options = {"SymmetricMode": True}
        return splu(matrix, permc_spec=order, diag_pivot_thresh=self.pivot, options=options)

    def add(self, vectors: np.ndarray) -> np.ndarray:
        """(E, k) numbers for the unknowns of the elements, summed: (U,)."""
        return np.bincount(self.dofs.ravel(), vectors.ravel())

    def _number(self, unknowns: int) -> None:
        """The slot of every entry of the elements' matrices among those of the sparse one, or -1."""
        size = len(self.free)
        number = np.full(unknowns, -1)
        number[self.free] = np.arange(size)
        rows, columns = np.broadcast_arrays(number[self.dofs][:, :, None], number[self.dofs][:, None, :])
        kept = (rows >= 0) & (columns >= 0)
        keys, slots = np.unique(columns[kept] * size + rows[kept], return_inverse=True)
        self._slots = np.full(kept.shape, -1)
        self._slots[kept] = slots
        self._rows = (keys % size).astype(np.int32)
        self._starts = np.searchsorted(keys, np.arange(size + 1) * size).astype(np.int32)
        self._places: dict[int, tuple[np.ndarray, np.ndarray]] = {}


def pairs(nodes: np.ndarray) -> np.ndarray:
    """(E, 2 n) the unknowns of a vector at the nodes (E, n), numbered u, v of node 0, of node 1, ..."""
    return (2 * nodes[:, :, None] + np.arange(2)).reshape(len(nodes), -1)
