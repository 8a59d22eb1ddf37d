"""The camera shows all of a field, and a ray goes where the picture was clicked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrsa.studio.cameras import Camera

BOX = np.array([[0.0, 2.0], [-1.0, 1.0], [0.0, 0.5]])
places = st.floats(-1, 1)
aspects = st.floats(0.3, 4)


def seen(camera: Camera, points: np.ndarray, aspect: float) -> np.ndarray:
    """(n, 2) where points (n, 3) are in the picture, from -1 to 1."""
    eye, target = np.array(camera.position), np.array(camera.focal_point)
    along = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(along, camera.view_up)
    right /= np.linalg.norm(right)
    up = np.cross(right, along)
    away = points - eye
    if camera.parallel_projection:
        half = np.full(len(points), camera.parallel_scale)
    else:
        half = away @ along * np.tan(np.radians(camera.view_angle) / 2)
    return np.stack([away @ right / half / aspect, away @ up / half], axis=1)


@given(aspect=aspects, flat=st.booleans(), foot=st.floats(0, 0.4))
def test_all_of_the_box_is_in_the_picture_and_above_its_foot(aspect: float, flat: bool, foot: float):
    box = BOX * np.array([[1], [1], [0]]) if flat else BOX
    corners = np.stack(np.meshgrid(*box, indexing="ij"), -1).reshape(-1, 3)
    where = seen(Camera.fitted(box, aspect, flat, foot), corners, aspect)
    assert np.abs(where[:, 0]).max() <= 1
    assert where[:, 1].max() <= 1
    assert where[:, 1].min() >= -1 + 1.5 * foot


@given(across=places, up=places, aspect=aspects, flat=st.booleans())
def test_a_ray_meets_what_is_seen_at_its_place(across: float, up: float, aspect: float, flat: bool):
    camera = Camera.fitted(BOX, aspect, flat)
    origin, direction = camera.ray(across, up, aspect)
    point = origin + 3 * np.linalg.norm(np.array(camera.position) - camera.focal_point) * direction
    assert seen(camera, point[None], aspect)[0] == pytest.approx([across, up], abs=1e-6)


def test_the_browser_and_the_server_mean_the_same_camera():
    camera = Camera.fitted(BOX, 1.5, False)
    assert Camera.from_browser(camera.to_browser()) == camera
