"""Pictures of tables: what is written in them can be read."""

from itertools import combinations, pairwise
from pathlib import Path

import pytest
from made_cells import fill, work_in
from matplotlib.figure import Figure

from lrsa.experiments.ablation import ABLATION, COMPONENTS, crossing
from lrsa.experiments.plots import dots, logarithmic, names, panels


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
    boxes = [text.get_window_extent() for text in written.values()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert written["alone"].get_position()[1] == -2
    marks = [ax.transData.transform(place) for place in points.values()]
    assert not any(box.contains(*mark) for box in boxes for mark in marks)
    assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes)


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


def _visible(figure: Figure | None) -> list[bool]:
    assert figure is not None
    return [ax.get_visible() for ax in figure.axes]
