"""Darcy flow: -∇·(a ∇u) = f in (0,1)², u = 0 on the boundary, f = 1.

a is a thresholded Gaussian random field (12 where it is >= 0, 3 elsewhere). Cell-centred finite volumes
with arithmetic face means, second order; conjugate gradients preconditioned by the sine transform that
diagonalises the Poisson problem (about 17 iterations for a contrast of 4, at any resolution).

The points are the cell centres (i + ½)/resolution, so u is not zero on the outermost ring of the grid.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from lrsa.errors import LrsaError
from lrsa.numerics.krylov import conjugate_gradients
from lrsa.numerics.random_fields import cosine_field
from lrsa.pointset import Names, PointSet

TOLERANCE = 1e-8
"""Algebraic error, relative, in the energy norm: below the rounding of the float32 that is stored (6e-8)
and five orders below the discretisation error of a field with jumps (about 1e-3 at 421²)."""


@dataclass(frozen=True)
class Darcy:
    """The benchmark: the coefficient a to the pressure u, on a subgrid of the cells."""

    resolution: int = 421
    """Cells along each axis of the grid that is solved on."""
    stride: int = 5
    """Every stride-th cell along each axis is kept: 85 × 85 of 421 × 421."""
    tau: float = 3.0
    """Inverse correlation length of the random field."""
    alpha: float = 2.0
    """Smoothness of the random field: its covariance falls off as |k|^(-2 alpha)."""
    low: float = 3.0
    """The coefficient where the field is negative."""
    high: float = 12.0
    """The coefficient elsewhere."""

    names: ClassVar[Names] = Names(
        coords=("x", "y"), inputs=("a",), targets=("u",), units={"x": "1", "y": "1", "a": "1", "u": "1"}
    )

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random coefficient and its solution, float32."""
        field = cosine_field(rng, self.resolution, self.tau, self.alpha)
        a = np.where(field >= 0, self.high, self.low)
        u = solve_darcy(a, 1.0)
        kept = a[:: self.stride, :: self.stride]
        return PointSet(
            x=self.points(),
            f=kept.astype(np.float32).reshape(-1, 1),
            u=u[:: self.stride, :: self.stride].astype(np.float32).reshape(-1, 1),
            grid=kept.shape,
            names=self.names,
        )

    def points(self) -> np.ndarray:
        """(n², 2) float32, the cell centres that are kept, the first axis of the grid being x."""
        centres = (np.arange(0, self.resolution, self.stride) + 0.5) / self.resolution
        x, y = np.meshgrid(centres, centres, indexing="ij")
        return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def solve_darcy(a: np.ndarray, f: np.ndarray | float, tolerance: float = TOLERANCE) -> np.ndarray:
    """(s, s) solution at the cell centres of the unit square, for a positive coefficient a (s, s).

    The Poisson operator M and the Darcy operator A satisfy min(a) M <= A <= max(a) M, so that the residual
    r bounds the energy norm of the error: ‖e‖²_A / ‖u‖²_A <= (max a / min a) rᵀM⁻¹r / fᵀM⁻¹f. The iteration
    ends when the right-hand side is below `tolerance`²; the contrast alone decides how soon.

    Args:
        a: (s, s) coefficient at the cell centres.
        f: (s, s) right-hand side there, or a constant.
        tolerance: Largest relative error in the energy norm.
    """
    a = np.asarray(a, dtype=np.float64)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not (np.isfinite(a) & (a > 0)).all():
        raise LrsaError("the Darcy coefficient must be a square array of positive numbers")
    contrast = a.max() / a.min()
    # Thrice the classical bound: past it, something is not a number.
    most = 10 + int(1.5 * contrast**0.5 * np.log(2 * contrast / tolerance))
    f = np.broadcast_to(f, a.shape)
    u, reached = conjugate_gradients(
        _FiniteVolumes(a), f, _Poisson(len(a)), most, energy=tolerance**2 / contrast
    )
    if not reached:
        raise LrsaError("the Darcy solve does not converge: the right-hand side must be finite")
    u /= len(a) ** 2  # the operators are those of cells of size 1
    return u


class _FiniteVolumes:
    """u -> the flux -a ∂u/∂n out of every cell (of size 1), summed over its four faces."""

    def __init__(self, a: np.ndarray) -> None:
        self.faces = [0.5 * (v[1:] + v[:-1]) for v in (a, a.T)]
        self.flux = [np.empty_like(face) for face in self.faces]
        # A wall is half a cell away, and u is zero there.
        self.wall, self.out = np.zeros_like(a), np.empty_like(a)
        for side in (np.s_[0], np.s_[-1], np.s_[:, 0], np.s_[:, -1]):
            self.wall[side] += 2 * a[side]

    def __call__(self, u: np.ndarray) -> np.ndarray:
        out = np.multiply(self.wall, u, out=self.out)
        for v, sums, face, flux in zip((u, u.T), (out, out.T), self.faces, self.flux, strict=True):
            np.subtract(v[1:], v[:-1], out=flux)
            flux *= face
            sums[1:] += flux
            sums[:-1] -= flux
        return out


class _Poisson:
    """r -> M⁻¹r, the solution of the same scheme with a = 1, in float32.

    Products with the dense sine matrix: at these sizes twice as fast as the fast transform. A preconditioner
    needs no more than single precision; the residual and the solution are kept in double.
    """

    def __init__(self, size: int) -> None:
        self.sines, self.inverse = _poisson_modes(size)
        self.one, self.two = np.empty((2, size, size), np.float32)

    def __call__(self, r: np.ndarray) -> np.ndarray:
        sines, one, two = self.sines, self.one, self.two
        np.copyto(one, r, casting="same_kind")
        np.matmul(np.matmul(sines, one, out=two), sines.T, out=one)
        one *= self.inverse
        return np.matmul(np.matmul(sines.T, one, out=two), sines, out=one)


@lru_cache(maxsize=2)
def _poisson_modes(size: int) -> tuple[np.ndarray, np.ndarray]:
    """The orthonormal sine modes (DST-II), one per row, and the inverse eigenvalues, both (s, s) float32."""
    k = np.arange(1, size + 1)
    sines = np.sqrt(2 / size) * np.sin(np.pi / size * np.outer(k, k - 0.5))
    sines[-1] /= np.sqrt(2)
    eigenvalues = 4 * np.sin(0.5 * np.pi * k / size) ** 2
    return sines.astype(np.float32), (1 / np.add.outer(eigenvalues, eigenvalues)).astype(np.float32)
