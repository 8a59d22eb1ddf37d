"""Pictures of tables: what is written in them can be read."""

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from made_cells import fill, work_in
from matplotlib.figure import Figure
from matplotlib.text import Text

from lrsa.experiments.ablation import ABLATION, COMPONENTS, crossing
from lrsa.experiments.beyond import EQUAL_TIME
from lrsa.experiments.plots import dots, logarithmic, marks, names, panels
from lrsa.experiments.table_standard import TABLE_STANDARD, error_over_time, unbeaten


def test_no_name_of_a_point_covers_another() -> None:
    """Points on a heap, and one by itself, whose name stays beside it; all are inside the axes."""
    points = {f"model {i}": (100.0 + i, 0.02 * 1.002**i) for i in range(8)} | {"alone": (1000.0, 0.1)}
    figure, (ax,) = panels(1)
    for place in points.values():
        ax.plot(*place, "o")
    ax.margins(0.12)
    logarithmic(ax, "x")
    logarithmic(ax, "y")
    figure.draw_without_rendering()
    names(ax, points)
    figure.draw_without_rendering()
    written = {text.get_text(): text for text in ax.texts}
    assert written.keys() == points.keys()
    boxes = [Text.get_window_extent(text) for text in written.values()]  # without the lines to the points
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert written["alone"].get_position()[1] == -2
    places = [ax.transData.transform(place) for place in points.values()]
    assert not any(box.contains(*place) for box in boxes for place in places)
    assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes)
    assert all(ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1 for box in boxes)


def test_of_many_models_those_are_named_that_none_beats_in_both(tmp_path: Path) -> None:
    points = {"quick": (1.0, 0.5), "both": (2.0, 0.1), "beaten": (3.0, 0.2), "best": (9.0, 0.05)}
    assert unbeaten(points) == {"quick", "both", "best"}
    work = work_in(tmp_path)
    errors = {"LRSA": 0.3, "Transolver": 0.2, "LNO": 0.1}
    fill(TABLE_STANDARD, work, lambda task: errors.get(task.row) if task.problem == "elasticity" else None)
    for front, shown in ((False, set(errors)), (True, {"LRSA", "LNO"})):
        figure = error_over_time(TABLE_STANDARD, work, front)
        assert figure is not None
        assert {text.get_text() for text in figure.axes[0].texts} == shown


@pytest.mark.parametrize("ratio", [1.01, 1.2, 1.9, 3.0, 5.5, 12.0, 90.0, 2000.0])
def test_numbers_of_an_axis_do_not_cover_each_other(ratio: float) -> None:
    rows = [("FLARE's mixer in our backbone", 0.0211), ("another", 0.0211 * ratio)]
    figure = dots(dict.fromkeys(("Elasticity", "Darcy", "Pipe"), rows), {}, {})
    figure.draw_without_rendering()
    ax = figure.axes[0]
    low, high = ax.get_xlim()
    shown = [tick.label1 for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len(shown) >= 2
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_rank_by_itself_is_no_curve(tmp_path: Path) -> None:
    """And a problem with neither a second rank nor a second component is not drawn at all."""
    work = work_in(tmp_path)
    fill(ABLATION, work, lambda task: 0.1 if task.problem == "darcy" and task.row == "LRSA" else None)
    assert crossing(ABLATION, work) is None
    fill(ABLATION, work, lambda task: 0.1 if task.problem == "darcy" and task.row == COMPONENTS[1] else None)
    ranks, components = _visible(crossing(ABLATION, work))
    assert (ranks, components) == (False, True)
    fill(ABLATION, work, lambda task: 0.2 if task.problem == "darcy" and task.row == "LRSA, rank 8" else None)
    assert _visible(crossing(ABLATION, work)) == [True, True]


def test_every_row_at_equal_time_has_a_colour_and_a_place_of_its_own(tmp_path: Path) -> None:
    rows = {row.label: [0.1, 0.2] for row in EQUAL_TIME.rows(work_in(tmp_path))}
    _, (ax,) = panels(1)
    marks(ax, ["Elasticity", "Darcy"], rows)
    assert len({line.get_color() for line in ax.lines}) == len(rows)
    first, second = zip(*(np.asarray(line.get_xdata()) for line in ax.lines), strict=True)
    assert len(set(first)) == len(rows)
    assert min(second) - max(first) > 0.15


def _visible(figure: Figure | None) -> list[bool]:
    assert figure is not None
    return [ax.get_visible() for ax in figure.axes]
