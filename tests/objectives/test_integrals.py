"""Forces and moments against what is known in closed form."""

import numpy as np
import pytest

from lrsa.objectives.integrals import (
    area_vectors,
    at_faces,
    coefficients,
    force,
    moment,
    wall_shear,
)

RNG = np.random.default_rng(0)


def circle(n: int, radius: float = 1.0) -> np.ndarray:
    """(n, 2, 2) segments, clockwise: the fluid is on their left."""
    angles = -np.linspace(0, 2 * np.pi, n + 1)
    points = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return np.stack([points[:-1], points[1:]], axis=1)


def sphere(n: int) -> np.ndarray:
    """(2n², 4, 3) quadrilaterals of the unit sphere, counter-clockwise from outside; some touch a pole."""
    theta, phi = np.linspace(0, np.pi, n + 1), np.linspace(0, 2 * np.pi, 2 * n + 1)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    x = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1)
    return np.stack([x[:-1, :-1], x[1:, :-1], x[1:, 1:], x[:-1, 1:]], axis=-2).reshape(-1, 4, 3)


def order(errors: list[float]) -> float:
    return float(np.log2(errors[0] / errors[1]))


def test_a_cylinder_with_circulation_has_the_lift_of_kutta_and_joukowski_and_no_drag() -> None:
    """p = ½ ρ (U² - u²), u = -2 U sin θ - Γ/2πa: the lift is ρ U Γ, whatever the angle of the stream."""
    speed, circulation, angle = 2.0, 3.0, 0.3
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    errors = []
    for n in (100, 200):
        faces = circle(n)
        middle = faces.mean(axis=1)
        theta = np.arctan2(middle[:, 1], middle[:, 0])
        pressure = 0.5 * (speed**2 - (2 * speed * np.sin(theta) + circulation / (2 * np.pi)) ** 2)
        found = coefficients(force(faces @ turn.T, pressure), turn @ [speed, 0], area=2.0)
        assert abs(found.drag) < 1e-12
        errors.append(abs(found.lift - speed * circulation / (0.5 * speed**2 * 2.0)))
    assert errors[1] < 1e-3
    assert order(errors) == pytest.approx(2, abs=0.05)


def test_a_sphere_has_its_buoyancy_and_no_drag_in_potential_flow() -> None:
    """p = -z: the weight of the volume 4π/3. p = ½(1 - 9/4 sin²θ): nothing."""
    errors = []
    for n in (40, 80):
        faces = sphere(n)
        z = faces.mean(axis=1)[:, 2]
        lifted = force(faces, -z)
        errors.append(abs(lifted[2] - 4 * np.pi / 3))
        assert np.abs(lifted[:2]).max() < 1e-12
        assert np.abs(force(faces, 0.5 * (1 - 2.25 * (1 - z**2)))).max() < 1e-12
    assert errors[1] < 5e-3
    assert order(errors) == pytest.approx(2, abs=0.05)


def test_stokes_drag_of_a_sphere_is_six_pi_a_third_of_it_by_pressure() -> None:
    """p = -3/2 cos θ, τ = 3/2 sin θ along the surface, for μ = a = U = 1 and a stream along z."""
    faces = sphere(80)
    middle = faces.mean(axis=1)
    n = middle / np.linalg.norm(middle, axis=1, keepdims=True)
    shear = 1.5 * (np.array([0, 0, 1.0]) - n[:, 2:] * n)
    pressure = -1.5 * n[:, 2]
    assert force(faces, pressure)[2] == pytest.approx(2 * np.pi, rel=1e-3)
    assert force(faces, pressure, shear)[2] == pytest.approx(6 * np.pi, rel=1e-3)
    stream = np.array([0, 0, 1.0])
    drag = coefficients(force(faces, pressure, shear), stream, np.pi, up=np.array([1.0, 0, 1.0])).drag
    assert drag == pytest.approx(12, rel=1e-3)


def test_the_same_pressure_all_around_presses_a_closed_body_nowhere() -> None:
    faces = sphere(12) + 0.02 * RNG.standard_normal(3)
    ones = np.ones(len(faces))
    assert np.abs(force(faces, ones)).max() < 1e-12
    assert np.abs(moment(faces, ones, about=RNG.standard_normal(3))).max() < 1e-12
    triangles = np.concatenate([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    assert np.abs(area_vectors(triangles).sum(0)).max() < 1e-12
    areas = np.linalg.norm(area_vectors(sphere(80)), axis=1)
    assert areas.sum() == pytest.approx(4 * np.pi, rel=1e-3)


def test_the_moment_about_another_point_differs_by_the_force_times_the_arm() -> None:
    faces, shift = circle(30) + np.array([3.0, 1.0]), np.array([0.5, -2.0])
    pressure, shear = RNG.standard_normal(30), RNG.standard_normal((30, 2))
    f = force(faces, pressure, shear)
    difference = moment(faces, pressure, shear) - moment(faces, pressure, shear, about=shift)
    assert difference == pytest.approx(shift[0] * f[1] - shift[1] * f[0])
    body, at = sphere(6), np.array([0.3, 0.1, -0.4])
    loads = RNG.standard_normal(len(body)), RNG.standard_normal((len(body), 3))
    turned = moment(body, *loads) - moment(body, *loads, about=at)
    assert np.allclose(turned, np.cross(at, force(body, *loads)))


def test_the_same_shear_around_a_circle_turns_it_by_its_circumference() -> None:
    faces = circle(400, radius=2.0)
    vectors = area_vectors(faces)
    along = np.stack([-vectors[:, 1], vectors[:, 0]], axis=1) / np.linalg.norm(vectors, axis=1)[:, None]
    turned = moment(faces, np.zeros(400), along)
    assert abs(turned) == pytest.approx(2 * np.pi * 2.0 * 2.0, rel=1e-4)


def test_the_shear_of_a_linear_profile_is_exact_and_forgets_what_flows_through_the_wall() -> None:
    """u = G (n·x) t over a wall in any direction, of segments and of quadrilaterals."""
    for corners in (circle(7), sphere(3)):
        vectors = area_vectors(corners)
        corners = corners[np.linalg.norm(vectors, axis=1) > 1e-3]
        vectors = area_vectors(corners)
        normal = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        along = corners[:, 1] - corners[:, 0]
        along -= (along * normal).sum(1, keepdims=True) * normal
        heights = RNG.uniform(1e-3, 2e-3, (*corners.shape[:2], 1))
        near = (
            corners.mean(axis=1)[:, None]
            + along[:, None] * RNG.random(heights.shape)
            + heights * normal[:, None]
        )
        velocity = 5.0 * heights * along[:, None] + 3.0 * normal[:, None]
        assert np.allclose(wall_shear(corners, near, velocity, 0.1), 0.5 * along, atol=1e-9)


def test_values_at_points_become_means_over_faces_and_other_faces_are_refused() -> None:
    assert np.array_equal(at_faces(np.arange(6.0), np.array([[0, 1], [2, 5]])), [0.5, 3.5])
    with pytest.raises(ValueError, match=r"\(1, 5, 3\)"):
        area_vectors(np.zeros((1, 5, 3)))
