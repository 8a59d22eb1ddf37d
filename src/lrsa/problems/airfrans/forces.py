"""Lift and drag of an airfoil by the fields at the nodes of its mesh: pressure, and the shear ν ∂u/∂n."""

import numpy as np

from lrsa.errors import LrsaError
from lrsa.objectives.integrals import Coefficients, at_faces, coefficients, force, plane_wall, wall_shear
from lrsa.pointset import PointSet
from lrsa.problems.airfrans.profile import VISCOSITY


def lift_and_drag(case: PointSet, u: np.ndarray | None = None) -> Coefficients:
    """Of the fields u (N, 4), predicted or by default the true ones, for a chord of 1."""
    u = case.u if u is None else u
    if case.cells is None or case.surface is None or case.f is None or u is None:
        raise LrsaError("lift and drag need the cells, the surface and the fields of a case")
    sides, beside = plane_wall(case.cells, case.surface)
    x, u = case.x.astype(float), u.astype(float)
    shear = wall_shear(x[sides], x[beside], u[beside, :2], VISCOSITY)
    load = force(x[sides], at_faces(u[:, 2], sides), shear)
    return coefficients(load, case.f[0, :2].astype(float))
