"""Pictures of tables: what is written in them can be read."""

from itertools import combinations
from pathlib import Path

from made_cells import fill, work_in
from matplotlib.figure import Figure

from lrsa.experiments.ablation import ABLATION, COMPONENTS, crossing
from lrsa.experiments.plots import logarithmic, names, panels


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
