"""Numbers of a whole field: integrals that are known exactly."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pyvista
from cylinder import cylinder
from small import ragged_cases

from lrsa.pointset import PointSet
from lrsa.studio.exploring import Exploration
from lrsa.studio.summaries import Numbers, body_faces, force_unit, measures, summary
from lrsa.studio.words import short

pytest_plugins = ["studio_runs"]


def numbers(case: PointSet, values: np.ndarray) -> dict[str, float]:
    *rows, error = summary(case, values, values, measures(case), body_faces(case))
    assert all(row["prediction"] == row["truth"] for row in rows)
    assert error == {"name": "relative L2 error", "prediction": "0", "truth": ""}
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


def test_the_page_has_the_force_of_pressures_alone_and_the_quantities_of_the_run(runs: Path):
    """Named in the run's configuration, as `lrsa evaluate` counts them."""
    made = Exploration(runs / "flow")
    made.config = replace(made.config, train=replace(made.config.train, quantities="top=max:p"))
    opened = made.choose(0)
    counted, found = Numbers.of(made, opened), made.predict(made.start())
    rows = {field: {row["name"]: row for row in counted.rows(field, made.start(), found)} for field in "up"}
    assert "force y [m²/s² m]" in rows["p"]
    assert not any("force" in name for name in rows["u"])
    for field in "up":
        assert rows[field]["top"]["prediction"] == short(float(found.u[:, 2].max()), 5)
        assert rows[field]["top"]["truth"] == short(float(opened.case.u[:, 2].max()), 5)  # pyright: ignore
    away = made.predict((1.0, 0.0))
    assert all(row["truth"] == "" for row in counted.rows("p", (1.0, 0.0), away))


def test_the_relative_error_is_that_of_the_field():
    case = cylinder(1, 0, 4, 8)
    rows = summary(case, 1.1 * case.x[:, 0], case.x[:, 0], measures(case), [])
    assert float(rows[-1]["prediction"]) == pytest.approx(0.1, rel=1e-3)


@pytest.mark.parametrize(
    ("pressure", "length", "axes", "unit"),
    [("Pa", "m", 3, "N"), ("Pa", "m", 2, "N/m"), ("MPa", "mm", 3, "MPa mm²"), ("", "m", 3, "")],
)
def test_units_of_forces(pressure: str, length: str, axes: int, unit: str):
    assert force_unit(pressure, length, axes) == unit
