"""Quadratic bricks of 27 nodes for orthotropic thermo-elasticity: ∇·σ = 0, σ = C (ε - α θ).

ε is the small strain, θ the rise of temperature, C and α have axes of their own in every point: the first
along the second axis of the element, the third square to its first two. Strains are kept in these axes and in
Voigt's order 11, 22, 33, 23, 13, 12, shear strains doubled.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from lrsa.errors import LrsaError
from lrsa.numerics.elements import GAUSS, WEIGHTS

SHEARS = ((1, 2), (0, 2), (0, 1))
PARTS = 128
"""Elements whose matrices are made at a time."""
Solving = Callable[[sp.csc_array], Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True)
class Material:
    """Orthotropic: stiffnesses in GPa, expansions in 1/K, along the fibres (1) and across (2, 3)."""

    young: tuple[float, float, float]
    shear: tuple[float, float, float]
    """G₂₃, G₁₃, G₁₂."""
    poisson: tuple[float, float, float]
    """ν₂₃, ν₁₃, ν₁₂."""
    expansion: tuple[float, float, float]

    def stiffness(self) -> np.ndarray:
        """(6, 6) C, the inverse of the compliance."""
        compliance = np.diag(np.concatenate([1 / np.array(self.young), 1 / np.array(self.shear)]))
        for (i, j), ratio in zip(SHEARS, self.poisson, strict=True):
            compliance[i, j] = compliance[j, i] = -ratio / self.young[i]
        return np.linalg.inv(compliance)

    def strain(self) -> np.ndarray:
        """(6,) of a free body that is warmer by 1 K."""
        return np.array([*self.expansion, 0, 0, 0])


class Bricks:
    """A body of bricks (E, 27) of nodes (N, 3): its matrices, and its deformation by heat."""

    def __init__(self, points: np.ndarray, bricks: np.ndarray, material: Material) -> None:
        self.points, self.bricks = points, bricks
        bricks = bricks.astype(np.int32)
        unknowns = (3 * bricks[:, :, None] + np.arange(3, dtype=np.int32)).reshape(len(bricks), -1)
        size = 3 * len(points)
        made = [self._matrices(points[bricks[i : i + PARTS]], material) for i in range(0, len(bricks), PARTS)]
        stiffness, load = (np.concatenate(part) for part in zip(*made, strict=True))
        self.stiffness = _assembled(stiffness, unknowns, unknowns, (size, size))
        """(3 N, 3 N) ∫ BᵀC B."""
        self.load = _assembled(load, unknowns, bricks, (size, len(points)))
        """(3 N, N) ∫ BᵀC α φ: the forces of a rise of temperature at the nodes."""

    @staticmethod
    def _matrices(corners: np.ndarray, material: Material) -> tuple[np.ndarray, np.ndarray]:
        """(e, 81, 81) stiffness and (e, 81, 27) load of elements at (e, 27, 3)."""
        values, slopes = shape_functions()
        jacobian, measure = in_place(corners)
        strains = _strains(np.einsum("ngk,egki->egni", slopes, np.linalg.inv(jacobian)), axes_of(jacobian))
        e, g = measure.shape
        flat = strains.reshape(e, g * 6, -1)
        stress = (material.stiffness() @ strains * measure[..., None, None]).reshape(e, g * 6, -1)
        heat = np.einsum("egvc,v,ng->ecn", stress.reshape(strains.shape), material.strain(), values)
        return flat.transpose(0, 2, 1) @ stress, heat

    def held(self, nodes: np.ndarray, solver: Solving | None = None) -> "Held":
        """The body whose `nodes` cannot move."""
        free = np.ones(3 * len(self.points), bool)
        free[(3 * nodes[:, None] + np.arange(3)).ravel()] = False
        return self.fixed(~free, solver)

    def fixed(self, given: np.ndarray, solver: Solving | None = None) -> "Held":
        """The body whose displacements are 0 where `given` (3 N,)."""
        free = np.flatnonzero(~given)
        matrix = self.stiffness[free][:, free].tocsc()
        return Held(self, free, (solver or factorised)(matrix))


@dataclass(frozen=True)
class Held:
    """A body that can be solved for any number of times."""

    body: Bricks
    free: np.ndarray
    solve: Callable[[np.ndarray], np.ndarray]

    def heated(self, rise: np.ndarray) -> np.ndarray:
        """(N, 3) displacements by a rise of temperature (N,)."""
        return self.loaded(self.body.load @ rise)

    def loaded(self, forces: np.ndarray) -> np.ndarray:
        """(N, 3) displacements by forces (3 N,)."""
        u = np.zeros(len(forces))
        u[self.free] = self.solve(forces[self.free])
        return u.reshape(-1, 3)


def factorised(matrix: sp.csc_array) -> Callable[[np.ndarray], np.ndarray]:
    """Solves with a symmetric positive matrix, which needs no pivots."""
    return splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}).solve


def bricks_of(number: np.ndarray) -> np.ndarray:
    """(E, 27) bricks of nodes with these numbers (2 I + 1, 2 J + 1, 2 K + 1): (i, j, k) at 9 i + 3 j + k."""
    corners = np.meshgrid(*(np.arange(0, n - 1, 2) for n in number.shape), indexing="ij")
    steps = np.meshgrid(*(np.arange(3),) * 3, indexing="ij")
    return number[tuple(c.reshape(-1, 1) + d.reshape(1, -1) for c, d in zip(corners, steps, strict=True))]


def in_place(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(e, g, 3, 3) ∂x_i/∂ξ_k and (e, g) the measures of the Gauss points of elements at (e, 27, 3)."""
    jacobian = np.einsum("ngk,eni->egik", shape_functions()[1], corners)
    volume = np.linalg.det(jacobian)
    if not volume.min() > 0:
        raise LrsaError("the mesh has a brick that is turned inside out")
    return jacobian, volume * np.einsum("i,j,k->ijk", WEIGHTS, WEIGHTS, WEIGHTS).ravel()


def shares(points: np.ndarray, bricks: np.ndarray) -> np.ndarray:
    """(N,) ∫ φ: the volume that every node stands for."""
    return np.bincount(bricks.ravel(), (in_place(points[bricks])[1] @ shape_functions()[0].T).ravel())


def axes_of(jacobian: np.ndarray) -> np.ndarray:
    """(..., 3, 3) the axes of the material as columns, by ∂x/∂ξ (..., 3, 3)."""
    around, first = jacobian[..., 0], jacobian[..., 1]
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    third = np.cross(around, first)
    third /= np.linalg.norm(third, axis=-1, keepdims=True)
    return np.stack([first, np.cross(third, first), third], axis=-1)


def shape_functions() -> tuple[np.ndarray, np.ndarray]:
    """(27, g) values and (27, g, 3) slopes of the quadratic functions at the 27 Gauss points of [-1, 1]³."""
    x = GAUSS
    value = np.stack([x * (x - 1) / 2, 1 - x**2, x * (x + 1) / 2])  # (3, g)
    slope = np.stack([x - 0.5, -2 * x, x + 0.5])

    def product(*factors: np.ndarray) -> np.ndarray:
        return np.einsum("ag,bh,ci->abcghi", *factors).reshape(27, 27)

    slopes = [product(*(slope if k == axis else value for k in range(3))) for axis in range(3)]
    return product(value, value, value), np.stack(slopes, axis=-1)


def _strains(slopes: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(e, g, 6, 81) B: strains in the axes (e, g, 3, 3) of the functions with slopes (e, g, 27, 3)."""
    local = slopes @ axes  # (e, g, 27, a): along the axes
    e, g, n, _ = local.shape
    strains = np.empty((e, g, 6, n, 3))
    for a in range(3):
        strains[:, :, a] = local[..., a, None] * axes[:, :, None, :, a]
    for row, (a, b) in enumerate(SHEARS, start=3):
        strains[:, :, row] = (
            local[..., a, None] * axes[:, :, None, :, b] + local[..., b, None] * axes[:, :, None, :, a]
        )
    return strains.reshape(e, g, 6, 3 * n)


def _assembled(
    matrices: np.ndarray, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> sp.csr_array:
    """The sum of (E, r, c) matrices of elements with unknowns (E, r) and (E, c)."""
    r, c = (np.broadcast_to(v, matrices.shape).ravel() for v in (rows[:, :, None], columns[:, None, :]))
    return sp.coo_array((matrices.ravel(), (r, c)), shape).tocsr()
