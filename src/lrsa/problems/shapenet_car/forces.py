"""The drag coefficient as published: pressure over the surface along z, and a term of its velocities.

    F = -Σ (p̄ + μ g) n_z A,    C_D = 2 F / (ρ v² A_x)

p̄ is the mean of the corners of a quadrilateral, g = Σ Δw/|Δx| over three of its differences (no wall shear,
and 0 where the surface has no velocity), A_x the area of the convex hull of the car as seen along z.
"""

import numpy as np
from scipy.spatial import ConvexHull

from lrsa.errors import LrsaError
from lrsa.objectives.integrals import at_faces, coefficients, force
from lrsa.pointset import PointSet
from lrsa.problems.shapenet_car.features import DENSITY, SPEED, VISCOSITY

DIFFERENCES = np.array([[-1, 1, 1, -1], [-1, -1, 1, 1], [-1, 1, -1, 1]])
"""Of the corners of a quadrilateral: along it, across it, and what is left."""
SMALLEST = 1e-8


def drag(case: PointSet, u: np.ndarray | None = None) -> float:
    """Of the fields u (N, 4), predicted or by default the true ones."""
    u = case.u if u is None else u
    if case.cells is None or case.surface is None or u is None:
        raise LrsaError("drag needs the quadrilaterals of the surface and the fields of a case")
    x, u = case.x.astype(float), u.astype(float)
    corners = x[case.cells]
    pressure = at_faces(u[:, 3], case.cells) + VISCOSITY * _differences(corners, u[case.cells, 2])
    load = force(corners, pressure)
    return coefficients(
        load, np.array([0, 0, SPEED]), frontal_area(x[case.surface]), DENSITY, up=np.array([0, 1.0, 0])
    ).drag


def frontal_area(points: np.ndarray) -> float:
    """Of the convex hull of (x, y) of points (N, 3)."""
    return float(ConvexHull(points[:, :2]).volume)


def _differences(corners: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(Q,) g of quadrilaterals (Q, 4, 3) with velocities (Q, 4) along z."""
    lengths = np.linalg.norm(np.einsum("kc,qcd->qkd", DIFFERENCES, corners), axis=-1)
    return (w @ DIFFERENCES.T / (lengths + SMALLEST)).sum(1)
