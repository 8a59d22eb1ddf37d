"""Deformation of a composite air intake by heat: ∇·σ = 0, σ = C (ε(u) - α (T - T₀)), held at its inlet.

C and α are orthotropic (carbon fibres in epoxy), the fibres along the duct (`duct`). T is a random field on
the duct, given at the 8232 nodes of both surfaces of its wall and linear between them; asked for is the size
of the displacement |u| there. Quadratic bricks (`bricks`) with a third layer of nodes in the middle of the
wall: 42 × 24 of them would have these nodes, twice as many each way are solved for. The matrix is factorised
once. Elements of 1, 2 and 3 times as many each way differ from the last by 0.7 % and 0.07 %.

Published are the number of nodes and that the part is an air intake of a jet, not its shape, its layers or
the law of its temperatures: this is an analogue.
"""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from lrsa.pointset import Names, PointSet
from lrsa.problems.composite.bricks import Bricks, Held, Material, shares
from lrsa.problems.composite.duct import HEIGHT, LENGTH, RADIUS, WIDTH, Duct, duct, quarters

CARBON = Material(
    young=(126.0, 11.0, 11.0),
    shear=(3.93, 6.6, 6.6),
    poisson=(0.4, 0.28, 0.28),
    expansion=(-1e-6, 26e-6, 26e-6),
)
"""AS4 carbon fibres in 3501-6 epoxy, as in the World-Wide Failure Exercise."""
MODES = 8
"""Of the temperature around the duct, and half as many again along it."""
HEXAHEDRON = 12
"""VTK's type."""
NAMES = Names(
    ("x", "y", "z"),
    ("T",),
    ("D",),
    units={"x": "mm", "y": "mm", "z": "mm", "T": "°C", "D": "mm"},
)


@dataclass(frozen=True)
class Composite:
    """The benchmark: the temperature at the nodes of a fixed mesh to the deformation there."""

    names: ClassVar[Names] = NAMES
    finer: int = 2
    """How many times smaller the elements are, around and along the duct, than its nodes ask for."""
    initial: float = 20.0
    """T₀, °C: at which the duct has its shape."""
    mean: float = 150.0
    deviation: float = 40.0
    """Of the temperature of the middle of the wall, °C."""
    length: float = 150.0
    """Its correlation length, mm."""
    across: float = 8.0
    """Deviation of half the difference between outside and inside, °C."""

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random temperature and its deformation, float32; weights are volumes."""
        mesh, fine = duct(), duct(self.finer)
        draw = rng.standard_normal((2, 2, MODES + 1, 3 * MODES // 2 + 1))
        u = held(self.finer).heated(self.temperature(draw, fine) - self.initial)
        skin, cells = mesh.skin, quarters(mesh.shape[:2])
        return PointSet(
            x=mesh.points[skin].astype(np.float32),
            f=self.temperature(draw, mesh)[skin].astype(np.float32)[:, None],
            u=np.linalg.norm(self.at_skin(u), axis=1).astype(np.float32)[:, None],
            weights=volumes().astype(np.float32),
            cells=cells,
            cell_types=np.full(len(cells), HEXAHEDRON, np.uint8),
            names=NAMES,
        )

    def at_skin(self, values: np.ndarray) -> np.ndarray:
        """(8232, ...) of values at the nodes that are solved on."""
        grid = values.reshape(*duct(self.finer).shape, -1)
        return grid[:: self.finer, :: self.finer, ::2].reshape(-1, grid.shape[-1])

    def temperature(self, draw: np.ndarray, mesh: Duct) -> np.ndarray:
        """(N,) T at the nodes: waves around and along the duct with normal coefficients (2, 2, k, l).

        Their deviations are exp(-|wave number|² ℓ² / 4), as of a covariance exp(-r² / 2ℓ²) on a flat strip.
        """
        theta, s, zeta = mesh.parameters.T
        k, l = np.arange(draw.shape[2]), np.arange(draw.shape[3])  # noqa: E741
        radius = (WIDTH + HEIGHT + 2 * RADIUS) / 4
        square = np.square(k / radius)[:, None] + np.square(np.pi * l / LENGTH)
        deviations = np.exp(-square * self.length**2 / 4)
        deviations /= np.sqrt(np.square(deviations * np.where(l, np.sqrt(0.5), 1)).sum())
        around = np.stack([np.cos(theta[:, None] * k), np.sin(theta[:, None] * k)], axis=1)  # (N, 2, k)
        along = np.cos(np.pi * s[:, None] * l)
        outer, inner = (
            np.einsum("nak,akl,nl->n", around, deviations * d, along, optimize=True) for d in draw
        )
        return self.mean + self.deviation * outer + self.across * zeta * inner


@cache
def held(finer: int) -> Held:
    """The duct that cannot move at its inlet."""
    mesh = duct(finer)
    return Bricks(mesh.points, mesh.bricks, CARBON).held(mesh.inlet)


@cache
def volumes() -> np.ndarray:
    """(8232,) mm³ that each node stands for: half of the wall around it."""
    mesh = duct()
    through = shares(mesh.points, mesh.bricks).reshape(mesh.shape).sum(axis=2)
    return np.repeat(through / 2, 2)
