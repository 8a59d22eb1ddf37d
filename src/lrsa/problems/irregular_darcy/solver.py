"""Darcy flow in an irregular domain: -∇·(a ∇u) = 1, u = 0 on the whole boundary.

The domain is a pentagon in the unit square whose lower side is a concave arc, with a slit cut into it, given
by its mesh of 2290 nodes (`studies/irregular_darcy_mesh.py` made it). The published mesh and the condition on
its boundary are not known: this is an analogue, and u = 0, on arc and slit too, is a choice.

a is a thresholded Gaussian random field (12 where it is >= 0, 3 elsewhere), drawn on a grid of the unit
square as in Darcy flow there and interpolated before the threshold. The grid is about as fine as the mesh:
finer features of the coefficient would change the solution without being seen at the nodes.

Linear elements (`triangles`) on the mesh, each of its triangles divided into 4^refinement; the points are the
nodes of the mesh. Refinements of 0, 1 and 2 err by about 0.8 %, 0.25 % and 0.08 % in L2.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy.ndimage import map_coordinates

from lrsa.numerics.random_fields import cosine_field
from lrsa.numerics.triangles import Triangles, refined
from lrsa.pointset import Names, PointSet

MESH = Path(__file__).with_name("mesh.npz")
TRIANGLE = 5
"""VTK's type."""


@dataclass(frozen=True)
class IrregularDarcy:
    """The benchmark: the coefficient a at the nodes of a fixed mesh to the pressure u there."""

    refinement: int = 2
    """How often the triangles of the mesh are divided into four, to solve on."""
    resolution: int = 64
    """Cells along each axis of the grid on which the random field is drawn."""
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
        """One random coefficient and its solution, float32; weights are areas."""
        mesh, fine = domain(0), domain(self.refinement)
        field = interpolated(cosine_field(rng, self.resolution, self.tau, self.alpha), fine.nodes)
        u = fine.solve(fine.laminate(field, self.low, self.high), fine.shares())
        count = len(mesh.nodes)
        a = np.where(field[:count] >= 0, self.high, self.low)
        return PointSet(
            x=mesh.nodes.astype(np.float32),
            f=a.astype(np.float32).reshape(-1, 1),
            u=u[:count].astype(np.float32).reshape(-1, 1),
            weights=mesh.shares().astype(np.float32),
            cells=mesh.triangles,
            cell_types=np.full(len(mesh.triangles), TRIANGLE, np.uint8),
            names=self.names,
        )


@lru_cache(maxsize=3)
def domain(refinement: int) -> Triangles:
    """The mesh that is solved on: all that is the same for every coefficient."""
    return refined(MESH, refinement)


def interpolated(field: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(V,) a field (s, s) at the cell centres of the unit square, by cubic splines at places (V, 2).

    Beyond the outermost centres the field goes on mirrored, as the cosines of which it is made do.
    """
    return map_coordinates(field, places.T * len(field) - 0.5, order=3, mode="reflect")
