"""Stokes flow in the unit square, past walls that do not follow the grid.

Of all velocities without divergence that are zero at the walls, the flow has the least dissipation ∫ |∇u|².
Staggered cells of size h = 1/n: u at the middles of the faces across x, v at those across y, and both from a
stream function ψ at the corners,

    u = ∂ψ/∂y,   v = -∂ψ/∂x,

so that no cell gains or loses anything. The dissipation is a sum of squared differences between neighbouring
velocities; where a wall stands between the two, at a part θ of the way, the square is divided by θ: a wall is
met where it is, and not at the next face. Corners that are joined by faces within a wall share one
ψ, which is an unknown where the wall is that of an obstacle. What remains is one symmetric positive matrix.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

Level = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(x, y) -> positive in the fluid, zero on walls, and nearly linear across them."""
LEAST = 1e-3
"""Of a cell, the least distance to a wall: a velocity that is closer is zero either way."""


class Channel:
    """n × n cells between walls at y = 0 and y = 1, and those of a level; arrays have x as their first axis.

    At x = 0 the fluid comes in by u = 4 y (1 - y), v = 0. At x = 1 it leaves by the natural condition
    ∂u/∂n = p n of the least dissipation, which lets parabolic flow leave undisturbed.
    """

    def __init__(self, level: Level, cells: int) -> None:
        corners, middles = np.arange(cells + 1) / cells, (np.arange(cells) + 0.5) / cells
        self.cells = cells
        self.at_u = level(*np.meshgrid(corners, middles, indexing="ij"))
        """(n + 1, n) the level where u is."""
        self.at_v = level(*np.meshgrid(middles, corners, indexing="ij"))
        """(n, n + 1) the level where v is."""
        self.at_v[:, [0, -1]] = 0.0
        self.inflow = 2 * corners**2 - 4 * corners**3 / 3
        """(n + 1,) ψ at x = 0."""

    def solve(self) -> np.ndarray:
        """(n + 1, n + 1) ψ."""
        owner = self._owners()
        count, n = owner.max() + 1, owner.size
        shared = sp.csr_array((np.ones(n), (np.arange(n), owner.ravel())), shape=(n, count))
        differences = operators(self.cells)[2] @ shared
        matrix = sp.csr_array(differences.T @ (sp.diags_array(self.weights()) @ differences))
        psi, free = np.zeros(count), np.ones(count, bool)
        psi[owner[0]], free[owner[0]] = self.inflow, False
        load = -(matrix @ psi)[free]
        options = {"SymmetricMode": True}
        inner = matrix[free][:, free].tocsc()
        psi[free] = splu(inner, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve(load)
        return psi[owner]

    def faces(self, psi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(n + 1, n) u and (n, n + 1) v."""
        u, v, _ = operators(self.cells)
        return (u @ psi.ravel()).reshape(self.at_u.shape), (v @ psi.ravel()).reshape(self.at_v.shape)

    def corners(self, psi: np.ndarray) -> np.ndarray:
        """(n - 1, n - 1, 2) the velocity at the inner corners, between two faces, linear up to a wall."""
        u, v = self.faces(psi)
        u, v = u[1:-1], v[:, 1:-1]
        # One of the two is zero if there is a wall between them, and θ = 1 if not: the sum, or the mean.
        share_u = np.maximum(0, 1 - 0.5 / _way(self.at_u.T)[:, 1:-1].T)
        share_v = np.maximum(0, 1 - 0.5 / _way(self.at_v)[:, 1:-1])
        return np.stack([share_u * (u[:, :-1] + u[:, 1:]), share_v * (v[:-1] + v[1:])], axis=2)

    def weights(self) -> np.ndarray:
        """(L,) the factor of every squared difference, in the order of `operators`."""
        n = self.cells
        along_u, along_v = 1 / _way(self.at_u), 1 / _way(self.at_v.T).T
        across_u, across_v = np.full((2, n + 1, n + 1), 2.0)  # inlet and walls are half a cell away
        across_u[:, 1:-1] = 1 / _way(self.at_u.T).T
        across_v[1:-1] = 1 / _way(self.at_v)
        across_u[[0, -1]] *= 0.5  # cells of half the width
        across_v[-1] = 0.0  # nothing holds the fluid at the outlet
        return np.concatenate([w.ravel() for w in (along_u, across_u, across_v, along_v)])

    def _owners(self) -> np.ndarray:
        """(n + 1, n + 1) the unknown that every corner has: the same along faces within walls."""
        corner = np.arange((self.cells + 1) ** 2).reshape(self.cells + 1, -1)
        u, v = self.at_u <= 0, self.at_v <= 0
        one = np.concatenate([corner[:, :-1][u], corner[:-1][v]])
        other = np.concatenate([corner[:, 1:][u], corner[1:][v]])
        joined = sp.coo_array((np.ones(len(one)), (one, other)), shape=(corner.size, corner.size))
        return connected_components(joined, directed=False)[1].reshape(corner.shape)


def _way(level: np.ndarray) -> np.ndarray:
    """(m - 1, k) θ from each row to the next: where a wall is on the way from the fluid, 1 where none is."""
    low, high = np.minimum(level[:-1], level[1:]), np.maximum(level[:-1], level[1:])
    cut = (low <= 0) & (high > 0)
    return np.maximum(LEAST, np.divide(high, high - low, out=np.ones_like(low), where=cut))


@lru_cache(maxsize=2)
def operators(cells: int) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array]:
    """ψ to u, to v, and to all differences of velocities that the dissipation is a sum of.

    Those of u along x, of u along y, of v along x, of v along y; the second and the third begin and end at
    the sides of the square, where the velocity is zero.
    """
    step = sp.eye_array(cells, cells + 1, k=1) - sp.eye_array(cells, cells + 1)
    between, ends = sp.eye_array(cells), sp.eye_array(cells + 1)
    u, v = cells * sp.kron(ends, step), -cells * sp.kron(step, ends)
    differences = (
        sp.kron(step, between) @ u,
        sp.kron(ends, step.T) @ u,
        sp.kron(step.T, ends) @ v,
        sp.kron(between, step) @ v,
    )
    return sp.csr_array(u), sp.csr_array(v), sp.csr_array(sp.vstack(differences))
