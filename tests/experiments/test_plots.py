"""Pictures of tables: what is written in them can be read."""

from itertools import combinations

from lrsa.experiments.plots import logarithmic, names, panels


def test_no_name_of_a_point_covers_another() -> None:
    """Points on a heap, and one by itself, whose name stays beside it."""
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
