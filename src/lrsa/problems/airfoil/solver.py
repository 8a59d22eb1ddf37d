"""Transonic flow around an airfoil: the steady Euler equations, ∇·F(U) = 0, γ = 1.4, ρ = p = 1 far away.

The airfoil is a NACA-0012 in a box whose eight corners move vertically at random; the flow comes at Mach 0.8
along the chord. Cell-centred finite volumes of second order (`airfoil_flow`) on a C-grid (`airfoil_mesh`),
brought to rest by implicit steps (`airfoil_implicit`).

The grid is the published one, which is coarse at the leading edge: the Mach number differs from that on fine
grids by some percent, as it must in the published data. The points are its nodes, at which the states of the
cells around are averaged, or extrapolated to the wall.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lrsa.geometry.measures import shared_areas
from lrsa.pointset import Names, PointSet
from lrsa.problems.airfoil.flow import GAMMA
from lrsa.problems.airfoil.implicit import steady_flow
from lrsa.problems.airfoil.mesh import (
    NAMES,
    CellMetrics,
    Cells,
    c_grid,
    chord_stations,
    connect,
    measure,
)


@dataclass(frozen=True)
class Airfoil:
    """The benchmark: the shape of the airfoil, known by the nodes of its grid, to the Mach number there."""

    tolerance: float = 3e-6
    """The iteration ends when a step changes the Mach number by less than this, relative, in L2. What is then
    left to change is 50 to 100 times as much, most of it far down the wake."""
    around: int = 120
    """Cells along the airfoil."""
    behind: int = 50
    """Cells along the wake."""
    layers: int = 50
    """Cells from the airfoil to the far field."""
    first: float = 2 / 120
    """Height of the first layer."""
    displacement: float = 0.05
    """Largest displacement of a corner of the box."""
    mach: float = 0.8
    """Of the flow far away."""

    names: ClassVar[Names] = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random airfoil and the Mach number around it, float32; weights are areas."""
        return self.solve(self.displacements(rng))

    def displacements(self, rng: np.random.Generator) -> np.ndarray:
        """(8,) random ones; the first corner stays where it is, as published."""
        return np.append(0.0, self.displacement * rng.uniform(-1, 1, 7))

    def solve(self, displacements: np.ndarray) -> PointSet:
        """The case with these displacements (8,): four below from the left, four above from the right."""
        nodes = self.nodes(displacements)
        cells, geometry = connect(self.behind, self.around, self.layers), measure(nodes, self.behind)
        w = steady_flow(cells, geometry, free_stream(self.mach, 0.0), self.tolerance)
        u = mach_number(at_nodes(w, cells, self.behind, geometry.areas.shape))
        grid = u.shape
        surface = np.zeros(grid, bool)
        surface[self.behind : grid[0] - self.behind, 0] = True
        return PointSet(
            x=nodes.reshape(-1, 2).astype(np.float32),
            u=u.reshape(-1, 1).astype(np.float32),
            weights=shared_areas(geometry.areas).ravel().astype(np.float32),
            surface=surface.ravel(),
            grid=grid,
            names=self.names,
        )

    def nodes(self, displacements: np.ndarray) -> np.ndarray:
        """(221, 51, 2) the nodes of the grid."""
        return c_grid(displacements, chord_stations(self.around), self.behind, self.layers, self.first)


def free_stream(mach: float, incidence: float) -> tuple[float, float, float, float]:
    """(ρ, u, v, p) with ρ = p = 1, the incidence in degrees."""
    speed, angle = mach * np.sqrt(GAMMA), np.radians(incidence)
    return 1.0, float(speed * np.cos(angle)), float(speed * np.sin(angle)), 1.0


def mach_number(w: np.ndarray) -> np.ndarray:
    """(…, 4) states -> (…) |velocity| over the speed of sound √(γp/ρ)."""
    return np.hypot(w[..., 1], w[..., 2]) / np.sqrt(GAMMA * w[..., 3] / w[..., 0])


def lift_and_drag(
    w: np.ndarray, cells: Cells, geometry: CellMetrics, mach: float, incidence: float
) -> tuple[float, float]:
    """The coefficients of the pressure on the airfoil, for a chord of 1."""
    pressure = 0.5 * (w[cells.wall[:, 0], 3] + w[cells.wall[:, 2], 3]) - 1
    force = pressure @ geometry.wall / (0.5 * GAMMA * mach**2)
    cos, sin = np.cos(np.radians(incidence)), np.sin(np.radians(incidence))
    return float(force[1] * cos - force[0] * sin), float(force[0] * cos + force[1] * sin)


def at_nodes(w: np.ndarray, cells: Cells, behind: int, shape: tuple[int, int]) -> np.ndarray:
    """(C + ghosts, 4) states -> (I + 1, J + 1, 4): means of the four cells around every node.

    The ghost beyond the wall is the linear extrapolation; that of the far field is the state on the boundary.
    """
    count, layers = shape
    padded = np.empty((count + 2, layers + 2, 4))
    padded[1:-1, 1:-1] = w[: count * layers].reshape(count, layers, 4)
    outer, left, right = np.split(w[cells.far[:, 1]], [count, count + layers])
    # Twice the boundary less the cell, so that the mean of both is the boundary.
    padded[1:-1, -1] = 2 * outer - padded[1:-1, -2]
    padded[0, 1:-1], padded[-1, 1:-1] = 2 * left - padded[1, 1:-1], 2 * right - padded[-2, 1:-1]
    padded[1:-1, 0] = padded[-2:0:-1, 1]  # across the cut
    padded[1 + behind : 1 + count - behind, 0] = w[cells.wall[:, 2]]
    for i, inner in ((0, 1), (-1, -2)):
        padded[i, 0], padded[i, -1] = padded[-1 - i, 1], padded[inner, -1]
    nodes = (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4
    # The cut, the trailing edge included, belongs to both sides.
    above, below = nodes[: behind + 1, 0], nodes[count - behind :, 0][::-1]
    above[:] = below[:] = (above + below) / 2
    return nodes
