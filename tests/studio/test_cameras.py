"""The camera shows all of a field, a ray goes where the picture was clicked, and panels find their place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrsa.studio.cameras import Camera
from lrsa.studio.stage import FOOT, Stage

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


@given(
    aspect=aspects, flat=st.booleans(), foot=st.floats(0, 0.4), head=st.floats(0, 0.2), up=st.integers(0, 2)
)
def test_all_of_the_box_is_in_the_picture_between_foot_and_head(
    aspect: float, flat: bool, foot: float, head: float, up: int
):
    """And it fills the picture: one of its sides is near an edge of what is free."""
    box = BOX * np.array([[1], [1], [0]]) if flat else BOX
    corners = np.stack(np.meshgrid(*box, indexing="ij"), -1).reshape(-1, 3)
    where = seen(Camera.fitted(box, aspect, flat, foot, head, up), corners, aspect)
    assert np.abs(where[:, 0]).max() <= 1
    assert where[:, 1].max() <= 1 - 1.5 * head
    assert where[:, 1].min() >= -1 + 1.5 * foot
    filled = np.ptp(where, axis=0) / (2, 2 * (1 - foot - head))
    assert filled.max() > 0.6


@pytest.mark.parametrize("up", [0, 1, 2])
def test_the_upward_axis_points_upwards(up: int):
    ends = np.zeros((2, 3))
    ends[1, up] = 0.1
    low, high = seen(Camera.fitted(BOX, 1.0, False, up=up), ends, 1.0)
    assert high[1] > low[1]
    assert high[0] == pytest.approx(low[0], abs=0.02)


@pytest.mark.parametrize(
    ("extent", "width", "rows"),
    [((1, 1), 1000, False), ((4, 1), 1000, True), ((1, 4), 1000, False), ((1, 1), 376, True)],
)
def test_panels_stand_as_they_show_most(extent: tuple[float, float], width: float, rows: bool):
    """What is long lies in rows, and so does everything on a phone; the page is never left for it."""
    stage = Stage.arranged(width, 700, 3, extent)
    assert stage.rows == rows
    assert stage.height <= 700 or width < 700
    across, down = stage.panel
    assert (across, down) == ((width, stage.height / 3) if rows else (width / 3, stage.height))
    box = np.array([[0, extent[0]], [0, extent[1]], [0, 0]], float)
    corners = np.stack(np.meshgrid(*box, indexing="ij"), -1).reshape(-1, 3)
    where = seen(stage.camera(box, True, 2), corners, stage.aspect)
    assert where[:, 1].min() * down / 2 >= FOOT - down / 2 - 1


@given(across=places, up=places, aspect=aspects, flat=st.booleans())
def test_a_ray_meets_what_is_seen_at_its_place(across: float, up: float, aspect: float, flat: bool):
    camera = Camera.fitted(BOX, aspect, flat)
    origin, direction = camera.ray(across, up, aspect)
    point = origin + 3 * np.linalg.norm(np.array(camera.position) - camera.focal_point) * direction
    assert seen(camera, point[None], aspect)[0] == pytest.approx([across, up], abs=1e-6)


def test_the_browser_and_the_server_mean_the_same_camera():
    camera = Camera.fitted(BOX, 1.5, False)
    assert Camera.from_browser(camera.to_browser()) == camera
