"""Finite elements for steady incompressible flow: (u·∇)u - ν Δu + ∇p = f, ∇·u = 0.

Taylor-Hood on a grid of quadrilaterals: nine-node elements (Q2) for the velocity and for their own shape,
the four corners (Q1) for the pressure, 3 × 3 Gauss points, Newton. Where the velocity is not held, the
outlet is the natural one, ν ∂u/∂n = p n, which lets parabolic flow leave undisturbed.

To the momentum is added γ ∫ ∇·u ∇·φ (grad-div), which is zero for the exact flow. Without it the velocity has
the errors of the pressure, divided by ν: in the pipes of the benchmark four times the error.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.sparse as sp

from lrsa.errors import Failure, LrsaError
from lrsa.numerics.elements import GAUSS, Assembly, in_place, pairs
from lrsa.numerics.krylov import gmres, length

TOLERANCE = 1e-10
"""Largest residual, relative to the forces: far below what float32 shows (6e-8)."""
GRAD_DIV = 0.1
"""γ; between 0.05 and 0.2 the flows of the benchmark are most exact."""
STEPS = 25
"""Newton steps after which the flow is said not to settle; four or five are usual."""
KRYLOV = 40
"""Most iterations for one step, with the factors of an earlier one."""


class TaylorHood(Assembly):
    """The elements without their place.

    Unknowns are numbered u, v of node 0, of node 1, ..., then the pressure at every corner; those of an
    element are 18 velocities, then 4 pressures.
    """

    def __init__(self, held: np.ndarray) -> None:
        """`held` (2m + 1, 2n + 1) is True at the nodes of m × n elements whose velocity is given."""
        self.elements, self.corners = _elements(*held.shape)
        self.nodes = held.size
        self.unknowns = 2 * self.nodes + self.corners.max() + 1
        given = np.zeros(self.unknowns, bool)
        given[: 2 * self.nodes] = np.repeat(held.ravel(), 2)
        dofs = np.concatenate([pairs(self.elements), 2 * self.nodes + self.corners], axis=1)
        super().__init__(dofs, given, pivot=0.01)


class SteadyFlow:
    """The elements in their place, with a viscosity: residual, tangent, and the steady flow."""

    def __init__(self, space: TaylorHood, nodes: np.ndarray, viscosity: float) -> None:
        """`nodes` (V, 2) are positions."""
        if not 0 < viscosity < np.inf:
            raise LrsaError(f"the viscosity must be a positive number, not {viscosity}")
        self.space, self.viscosity = space, viscosity
        self.values, local, self.pressures = reference()
        jacobian = np.einsum("kng,eni->ikeg", local, nodes[space.elements])
        self.measure, self.slopes = in_place(jacobian, local)  # (E, 9), (E, 9 nodes, 2 × 9 points)
        self.adjoint = np.ascontiguousarray(self.slopes.transpose(0, 2, 1))
        self.linear = space.assemble(self._stokes())

    def solve(
        self,
        velocity: np.ndarray,
        load: np.ndarray | None = None,
        watch: Callable[[float], None] = lambda residual: None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The velocity (V, 2) and the pressure at the corners, from a velocity to begin with.

        Newton's steps, each solved by GMRES that the factors of an earlier tangent precondition: a step is as
        exact as it must be for the convergence to stay quadratic, and most flows are factorised once.

        Args:
            velocity: (V, 2) where it is held it stays; elsewhere a guess.
            load: (V, 2) forces on the nodes, ∫ f φ.
            watch: Called with the relative residual before every step and at the end.
        """
        space = self.space
        w = np.zeros(space.unknowns)
        w[: velocity.size] = velocity.ravel()
        factors = None
        for _ in range(STEPS):
            forces = self.forces(w)
            r = -forces
            r[: velocity.size] += 0 if load is None else load.ravel()
            # Where the velocity is held, `forces` are what the walls bear.
            residual = length(r[space.free]) / max(length(forces), 1e-300)
            watch(residual)
            if residual <= TOLERANCE:
                return w[: velocity.size].reshape(-1, 2), w[velocity.size :]
            if not np.isfinite(residual):
                break
            matrix = self.tangent(w)
            factors = factors or space.factor(matrix)
            exact = max(min(0.1, residual), 0.3 * TOLERANCE / residual)
            step, reached = gmres(matrix.dot, r[space.free], factors.solve, KRYLOV, exact)
            if not reached:
                factors = None
            w[space.free] += step
        raise Failure(f"the flow through a pipe does not settle to {TOLERANCE:g} in {STEPS} steps")

    def forces(self, w: np.ndarray) -> np.ndarray:
        """∫ (u·∇u)·φ + ν ∇u:∇φ + (γ ∇·u - p) ∇·φ for every φ, and -∫ ψ ∇·u for every ψ."""
        at, gradient = self._at_points(w)
        pressure = w[2 * self.space.nodes + self.space.corners] @ self.pressures  # (E, g)
        divergence = gradient[:, 0, :, 0] + gradient[:, 1, :, 1]
        flux = self.viscosity * gradient  # (E, k, g, i)
        for k in range(2):
            flux[:, k, :, k] += GRAD_DIV * divergence - pressure
        flux *= self.measure[:, None, :, None]
        advection = np.einsum("egk,ekgi->egi", at, gradient) * self.measure[..., None]
        momentum = self.values @ advection + self.slopes @ flux.reshape(-1, 18, 2)  # (E, 9, 2)
        mass = -(divergence * self.measure) @ self.pressures.T
        every = np.concatenate([momentum.reshape(-1, 18), mass], axis=1)
        return self.space.add(every)

    def tangent(self, w: np.ndarray) -> sp.csc_array:
        """The derivative of the forces by the free unknowns."""
        at, gradient = self._at_points(w)
        at = at * self.measure[..., None]
        gradient = gradient * self.measure[:, None, :, None]
        by_axis = self.adjoint.reshape(-1, 2, 9, 9)  # (E, k, g, n)
        carried = by_axis[:, 0] * at[..., :1] + by_axis[:, 1] * at[..., 1:]
        advection = self.values @ carried
        products = (self.values[:, None] * self.values).reshape(81, 9)
        matrices = np.empty((len(at), 9, 2, 9, 2))
        for i, j in np.ndindex(2, 2):
            block = (gradient[:, j, :, i] @ products.T).reshape(-1, 9, 9)
            matrices[:, :, i, :, j] = block + advection if i == j else block
        return self.space.matrix(self.linear + self.space.assemble(matrices.reshape(-1, 18, 18)))

    def _at_points(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(E, g, i) velocity and (E, k, g, i) its derivatives by x_k at the Gauss points."""
        u = w[: 2 * self.space.nodes].reshape(-1, 2)[self.space.elements]
        return self.values.T @ u, (self.adjoint @ u).reshape(-1, 2, 9, 2)

    def _stokes(self) -> np.ndarray:
        """(E, 22, 22) matrices of what is linear."""
        matrices = np.zeros((len(self.slopes), 22, 22))
        weighted = self.slopes * np.tile(self.measure, 2)[:, None]
        diffusion = self.viscosity * (weighted @ self.adjoint)
        by_axis = np.split(weighted, 2, axis=2), np.split(self.adjoint, 2, axis=1)
        for i in range(2):
            matrices[:, i:18:2, i:18:2] = diffusion
            block = by_axis[0][i] @ self.pressures.T
            matrices[:, i:18:2, 18:] = -block
            matrices[:, 18:, i:18:2] = -block.transpose(0, 2, 1)
        for i, j in np.ndindex(2, 2):
            matrices[:, i:18:2, j:18:2] += GRAD_DIV * (by_axis[0][i] @ by_axis[1][j])
        return matrices


@lru_cache(maxsize=1)
def reference() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At the Gauss points: the nine functions (n, g), their derivatives (2, n, g), the four corners' (4, g).

    Nodes are 3 × 3 row by row, ξ being the slower; so are the corners and the points.
    """
    s = GAUSS
    quadratic = np.stack([s * (s - 1) / 2, 1 - s**2, s * (s + 1) / 2])
    slope = np.stack([s - 0.5, -2 * s, s + 0.5])
    linear = np.stack([1 - s, 1 + s]) / 2
    derivatives = np.stack([np.kron(slope, quadratic), np.kron(quadratic, slope)])
    return np.kron(quadratic, quadratic), derivatives, np.kron(linear, linear)


def _elements(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(E, 9) nodes and (E, 4) corners, counted among the corners alone, of every element."""
    if rows < 3 or columns < 3 or rows % 2 == 0 or columns % 2 == 0:
        raise LrsaError(f"{rows} × {columns} nodes are no grid of nine-node elements: odd numbers, from 3 on")
    m, n = rows // 2, columns // 2
    first = (2 * np.arange(m)[:, None] * columns + 2 * np.arange(n)).reshape(-1, 1)
    corner = (np.arange(m)[:, None] * (n + 1) + np.arange(n)).reshape(-1, 1)
    return (
        first + (np.arange(3)[:, None] * columns + np.arange(3)).ravel(),
        corner + (np.arange(2)[:, None] * (n + 1) + np.arange(2)).ravel(),
    )
