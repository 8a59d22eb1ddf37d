"""Numbers of a whole field: integrals that are known exactly."""

from dataclasses import replace

import numpy as np
import pytest
import pyvista
from cylinder import cylinder
from small import ragged_cases

from lrsa.pointset import PointSet
from lrsa.studio.summaries import body_faces, measures, summary


def numbers(case: PointSet, values: np.ndarray) -> dict[str, float]:
    rows = summary(case, values, values, measures(case), body_faces(case))
    assert all(row["prediction"] == row["truth"] for row in rows)
    return {row["name"]: float(row["prediction"]) for row in rows}


def test_the_lift_of_a_cylinder_is_speed_times_circulation():
    """Kutta and Joukowski: L = U Γ, and no drag; by 512 sides to a thousandth."""
    case = cylinder(1.5, 2.0, 4, 512)
    assert case.u is not None
    found = numbers(case, case.u[:, 2])
    assert found["force y"] == pytest.approx(3.0, rel=1e-3)
    assert found["force x"] == pytest.approx(0, abs=1e-4)


def test_a_constant_pressure_lifts_nothing_and_weight_is_carried():
    """On a closed surface ∫ -p n dA is 0 for p = 1, and minus the volume upwards for p = z."""
    ball = pyvista.Sphere(radius=1.0, theta_resolution=60, phi_resolution=60)
    case = PointSet(np.asarray(ball.points), cells=np.asarray(ball.faces).reshape(-1, 4)[:, 1:])
    assert numbers(case, np.ones(len(case)))["force z"] == pytest.approx(0, abs=1e-6)
    assert numbers(case, case.x[:, 2])["force z"] == pytest.approx(-ball.volume, rel=1e-3)


def test_the_mean_counts_the_domain_and_not_the_points():
    """On rings that grow, the points are dense inside: the mean of r² over the annulus is (R² + 1) / 2."""
    case = cylinder(1, 0, 40, 200)
    squared = (case.x**2).sum(1)
    assert numbers(case, squared)["mean"] == pytest.approx((25 + 1) / 2, rel=2e-3)
    assert squared.mean() < 9


def test_a_cloud_has_a_mean_and_no_force():
    case = ragged_cases(1)[0]
    assert case.u is not None
    found = numbers(case, case.u[:, 0])
    assert found["mean"] == pytest.approx(case.u.mean(), rel=1e-4)
    assert list(found) == ["mean", "smallest", "largest"]


def test_a_plane_in_space_has_the_force_of_the_plane():
    case = cylinder(1.5, 2.0, 4, 64)
    assert case.u is not None
    lifted = replace(case, x=np.pad(case.x, ((0, 0), (0, 1)), constant_values=2.0))
    assert numbers(lifted, case.u[:, 2]) == pytest.approx(numbers(case, case.u[:, 2]), abs=1e-4)
