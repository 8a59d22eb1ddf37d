"""Pictures: which way is up, what curves look like, scales that one bad point does not spoil."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.report.axes import choose_up, upward
from lrsa.report.figures import _place, comparison, draw_samples, sample_pictures
from lrsa.report.pictures import Picture, draw_pictures
from lrsa.report.render import cropped, stacked
from lrsa.report.triangles import segments_of


@pytest.fixture(autouse=True)
def _find_it():
    yield
    choose_up("auto")


def car(up: int) -> np.ndarray:
    """Points on a box that is 4 long and 1.8 wide, with a cabin on top of one end; `up` is upwards."""
    rng = np.random.default_rng(0)
    along, across, height = rng.uniform(0, 4, 3000), rng.uniform(-0.9, 0.9, 3000), rng.uniform(0, 1, 3000)
    height = np.where(along < 2, 1.6 * height, height)
    axes = {(up + 1) % 3: along, (up + 2) % 3: across, up: height}
    return np.stack([axes[i] for i in range(3)], axis=1)


@pytest.mark.parametrize("up", [0, 1, 2])
def test_a_vehicle_stands_on_its_wheels_whichever_axis_its_file_calls_up(up: int):
    assert upward(car(up)) == up


def test_a_ball_stands_on_z_and_a_named_axis_is_taken():
    ball = np.random.default_rng(0).standard_normal((3000, 3))
    assert upward(ball / np.linalg.norm(ball, axis=1, keepdims=True)) == 2
    choose_up("y")
    assert upward(car(2)) == 1
    with pytest.raises(LrsaError, match="x, y, z or auto"):
        choose_up("w")


def test_one_bad_point_does_not_end_the_scale_of_the_error_and_is_printed():
    x = np.random.default_rng(0).random((500, 2)).astype(np.float32)
    case = PointSet(x, u=x[:, :1], names=Names(("x", "y"), (), ("p",)))
    wrong = x[:, 0] + 0.01
    wrong[3] += 7
    *_, error = comparison(case, x[:, 0], wrong)
    assert error.high == pytest.approx(0.01, rel=0.01)
    assert error.largest == pytest.approx(7.01, rel=0.01)


@pytest.mark.parametrize(("low", "high"), [(-575.0, -205.0), (0.264, 0.297), (101_250.0, 101_420.0)])
def test_labels_of_a_scale_differ_and_are_plain_numbers(low: float, high: float):
    figure = Figure()
    picture = Picture(PointSet(np.zeros((4, 2))), np.zeros(4), low, high)
    _place(figure, figure.add_subplot(), picture, np.zeros((4, 4, 4), np.uint8))
    figure.canvas.draw()
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert len(set(labels)) == len(labels) > 2
    assert not any("e" in label for label in labels)


def test_views_are_stacked_without_margins_and_nothing_is_lost():
    one, two = np.zeros((20, 30, 4), np.uint8), np.zeros((20, 30, 4), np.uint8)
    one[5:9, 2:22], two[1:3, 4:8] = 255, 255
    made = stacked([one, two])
    assert made.shape[1] == 20
    assert (made[..., 3] > 0).sum() == (one[..., 3] > 0).sum() + (two[..., 3] > 0).sum()
    assert cropped(two).shape == (2, 4, 4)


def test_a_curve_is_drawn_over_its_coordinate():
    n = 40
    angle = 2 * np.pi * np.arange(n) / n
    x = np.stack([np.cos(angle), 0.1 * np.sin(angle)], 1).astype(np.float32)
    cells = np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)
    case = PointSet(x, u=np.sin(angle)[:, None].astype(np.float32), cells=cells)
    assert segments_of(case) is not None
    (image,) = draw_pictures([sample_pictures(case)["target"]])
    height, width = image.shape[:2]
    assert height > 0.6 * width  # the curve itself is ten times as long as it is high


def test_the_picture_of_a_data_set_shows_all_targets(tmp_path: Path):
    x = np.random.default_rng(0).random((60, 2)).astype(np.float32)
    u = np.stack([x[:, 0], x[:, 1], x.sum(1)], 1)
    case = PointSet(x, u=u, names=Names(("x", "y"), (), ("a", "b", "c")))
    assert list(sample_pictures(case, 6)) == ["a", "b", "c"]
    assert list(sample_pictures(case)) == ["a"]
    draw_samples(tmp_path / "one.png", [case])
    height, width = imread(tmp_path / "one.png").shape[:2]
    assert height > 1.8 * width
