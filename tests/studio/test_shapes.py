"""What is drawn of a mesh: its surface with the right values, warped, cut and thresholded."""

from dataclasses import replace

import numpy as np
import pytest
import pyvista
from cylinder import cylinder
from small import grid_cases, ragged_cases

from lrsa.pointset import PointSet
from lrsa.studio.shapes import VALUE, Clip, Look, Shape, cells_of, vector_groups

CUBE = np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 3, indexing="ij"), -1).reshape(-1, 3)


def cube(surface: np.ndarray | None = None) -> PointSet:
    return PointSet(CUBE.astype(np.float32), grid=(5, 5, 5), surface=surface)


@pytest.mark.parametrize("case", [cylinder(1, 1, 6, 16), grid_cases(1)[0], cube()])
def test_every_drawn_point_has_the_value_of_its_point(case: PointSet):
    """Whatever the cells are: f(x) is drawn at x."""
    shape = Shape(case)
    drawn = shape.drawn(shape.points @ np.array([1.0, 2.0, 3.0]), Look())
    assert drawn.n_points
    assert np.allclose(drawn[VALUE], drawn.points @ np.array([1.0, 2.0, 3.0]), atol=1e-5)


def test_a_flat_cloud_is_drawn_as_discs_around_its_points():
    shape = Shape(ragged_cases(1)[0])
    drawn = shape.drawn(shape.points @ np.array([1.0, 2.0, 3.0]), Look())
    discs = np.asarray(drawn.points).reshape(len(shape.points), -1, 3)
    assert np.allclose(discs.mean(axis=1), shape.points, atol=1e-5)
    assert np.allclose(
        drawn[VALUE].reshape(discs.shape[:2]), (shape.points @ np.array([1.0, 2.0, 3.0]))[:, None]
    )


def test_points_around_a_body_are_drawn_where_they_are_asked_for():
    """Of a body whose surface alone is a mesh, the points of the flow are in no cell."""
    ball = pyvista.Sphere(theta_resolution=8, phi_resolution=8)
    around = np.array([[3.0, 0, 0], [0, 3, 0], [0, 0, 3]], np.float32)
    cells = np.asarray(ball.faces).reshape(-1, 4)[:, 1:]
    case = PointSet(np.concatenate([np.asarray(ball.points), around]), cells=cells)
    shape = Shape(case)
    assert shape.has_body
    values = shape.points @ np.array([1.0, 2.0, 3.0])
    for body, count in ((True, ball.n_points), (False, len(case))):
        drawn = shape.drawn(values, Look(body=body))
        assert drawn.n_points == count
        assert np.allclose(drawn[VALUE], drawn.points @ np.array([1.0, 2.0, 3.0]), atol=1e-5)
        assert shape.bounds(body).max() == pytest.approx(0.5 if body else 3)


def test_of_a_volume_only_the_outside_is_drawn():
    drawn = Shape(cube()).drawn(np.zeros(125), Look())
    assert drawn.n_points == 125 - 27
    assert drawn.area == pytest.approx(6)


def test_a_plane_across_a_volume_shows_its_inside():
    """The cut is at the place, and has the values that are there."""
    shape = Shape(cube())
    drawn = shape.drawn(shape.points[:, 0], Look(clips=(Clip(0, 0.4),)))
    assert drawn.bounds[1] == pytest.approx(0.4)
    assert drawn[VALUE].max() == pytest.approx(0.4)
    other = shape.drawn(shape.points[:, 0], Look(clips=(Clip(0, 0.4, above=True),)))
    assert other[VALUE].min() == pytest.approx(0.4)


def test_a_threshold_leaves_whole_cells_between_its_ends():
    shape = Shape(cube())
    drawn = shape.drawn(shape.points[:, 2], Look(threshold=(0.25, 0.5)))
    assert (drawn[VALUE].min(), drawn[VALUE].max()) == (0.25, 0.5)
    assert shape.drawn(shape.points[:, 2], Look(threshold=(7, 8))).n_points == 0


def test_a_threshold_may_be_about_another_field():
    """The error is drawn where the field lies between the ends."""
    shape = Shape(cube())
    drawn = shape.drawn(shape.points[:, 0], Look(threshold=(0.25, 0.5)), by=shape.points[:, 2])
    assert drawn.bounds[4:] == pytest.approx((0.25, 0.5))
    assert np.allclose(drawn[VALUE], drawn.points[:, 0])


def test_what_is_not_known_is_not_drawn():
    shape = Shape(cube())
    values = np.where(shape.points[:, 0] > 0.5, np.nan, 1.0)
    drawn = shape.drawn(values, Look())
    assert drawn.bounds[1] == 0.5
    assert np.isfinite(drawn[VALUE]).all()


def test_of_a_body_in_a_volume_only_its_faces_are_drawn():
    shape = Shape(cube(surface=CUBE[:, 2] == 0))
    assert shape.has_body
    drawn = shape.drawn(shape.points[:, 0], Look(body=True))
    assert drawn.area == pytest.approx(1)
    assert np.allclose(drawn[VALUE], drawn.points[:, 0])
    half = shape.drawn(shape.points[:, 0], Look((Clip(0, 0.4),), body=True))
    assert half.area == pytest.approx(0.4)
    assert shape.drawn(np.zeros(125), Look(body=False)).area == pytest.approx(6)


def test_points_that_moved_are_drawn_where_they_are():
    shape = Shape(cube())
    drawn = shape.drawn(np.zeros(125), Look(), shape.points + np.float32(2))
    assert drawn.bounds[0] == 2


def test_a_plane_in_other_axes_lies_flat():
    case = grid_cases(1)[0]
    upright = replace(case, x=np.insert(case.x, 1, 3.0, axis=1))  # x and z
    assert Shape(upright).flat
    assert np.array_equal(Shape(upright).points, Shape(case).points)


def test_a_body_that_is_a_speck_is_looked_at_from_nearby():
    case = cylinder(1, 0, 30, 16)
    assert np.ptp(Shape(case).bounds()[0]) == pytest.approx(10)
    far = replace(case, x=np.where(case.surface[:, None], 1, 20) * case.x)  # pyright: ignore
    assert np.ptp(Shape(far).bounds()[0]) == pytest.approx(6)


def test_cells_of_a_grid_fill_it():
    cells, types = cells_of(cube())
    assert cells.shape == (64, 8)
    assert set(types) == {12}
    assert Shape(cube()).mesh.volume == pytest.approx(1)


@pytest.mark.parametrize(
    ("names", "axes", "found"),
    [
        (("p", "U_x", "U_y"), 2, {"U": (1, 2)}),
        (("u", "v", "p"), 2, {"uv": (0, 1)}),
        (("d0", "d1", "d2", "s"), 3, {"d": (0, 1, 2)}),
        (("x", "y"), 2, {}),
        (("a", "b", "c"), 2, {}),
    ],
)
def test_components_of_a_vector_are_known_by_their_names(
    names: tuple[str, ...], axes: int, found: dict[str, tuple[int, ...]]
):
    assert vector_groups(names, axes) == found
