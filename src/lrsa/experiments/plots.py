"""Pictures of tables."""

import math
from collections.abc import Container, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import Bbox

from lrsa.report.figures import ACCENT, INK, SOFT, WARM

ACROSS = 3
"""Panels in a row."""
NAME_SIZE, LINE, MARK = 7, 8, 3
"""Of the names of points: size, height of a line, half a mark; in 1/72 inch."""
BESIDE = [(shift, up * LINE / 2 - 2) for k in range(40) for up in (k, -k) for shift in (6, -6)]
"""Where a name may be, from its point: right or left of it, and ever higher or lower."""
POINTS_PER_INCH = 72
NARROW, FEW = 0.8, 3
"""Decades below which an axis has its numbers as if it were linear, and how many spaces between them."""
PALE = "#b9c4ce"
HUES = (ACCENT, WARM, "#6a8f3c", "#8a5a9e", "#b08a2e", "#4b6cb7", "#a34d6b", "#5d6b7a", "#3fa7a3", "#d28fb5")


def colour(label: str) -> str:
    """LRSA, our recipe and Transolver have their own."""
    return ACCENT if label.startswith(("LRSA", "ours")) else WARM if label.startswith("Transolver") else SOFT


def panels(count: int, width: float = 4.2, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """So many axes, at most three in a row."""
    across, down = min(count, ACROSS), -(-count // ACROSS)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).ravel())
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count]


def dots(
    groups: Mapping[str, Sequence[tuple[str, float]]],
    printed: Mapping[str, Mapping[str, float]],
    nulls: Mapping[str, float],
) -> Figure:
    """For every column, its rows from the best to the worst; hollow: what the paper prints."""
    most = max(len(group) for group in groups.values())
    figure, axes = panels(len(groups), height=1.0 + 0.24 * most)
    for ax, (name, group) in zip(axes, groups.items(), strict=True):
        ordered = sorted(group, key=lambda pair: -pair[1])
        for y, (label, value) in enumerate(ordered):
            ax.plot(value, y, "o", color=colour(label), markersize=6)
            if (theirs := printed.get(name, {}).get(label)) is not None:
                ax.plot(theirs, y, "o", markerfacecolor="none", markeredgecolor=PALE, markersize=6)
                ax.plot([theirs, value], [y, y], color=PALE, linewidth=0.7, zorder=0)
        if name in nulls:
            ax.axvline(nulls[name], color=INK, linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(ordered)), [label for label, _ in ordered])
        ax.set(title=name, xlabel="error", ylim=(-0.6, len(ordered) - 0.4))
        logarithmic(ax, "x")
        ax.tick_params(axis="y", length=0)
    return figure


def curves(
    ax: Axes,
    title: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    xlabel: str,
    printed: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> None:
    """Error over something that doubles; dashed: what the paper prints."""
    for i, (label, points) in enumerate(series.items()):
        hue = colour(label) if colour(label) != SOFT else HUES[2 + i % (len(HUES) - 2)]
        if points:
            ax.plot(*zip(*sorted(points), strict=True), "o-", color=hue, markersize=4, label=label)
        if theirs := (printed or {}).get(label):
            ax.plot(*zip(*sorted(theirs), strict=True), "--", color=hue, linewidth=0.9, alpha=0.6)
    ax.set(title=title, xlabel=xlabel, ylabel="test relative L2")
    logarithmic(ax, "y")
    ax.set_xscale("log", base=2)
    places = sorted({x for points in series.values() for x, _ in points})
    ax.set_xticks(places, [f"{x:g}" for x in places])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(linewidth=0.5)


def names(ax: Axes, points: Mapping[str, tuple[float, float]], some: Container[str] | None = None) -> None:
    """The name of each point, or of some, beside it: it covers no point and no name, and is inside the axes
    if it can be. A line leads to one that is farther away.

    The figure is laid out.
    """
    scale = POINTS_PER_INCH / ax.figure.dpi
    frame = Bbox(ax.bbox.get_points() * scale)
    places = {label: ax.transData.transform(place) * scale for label, place in points.items()}
    taken = [Bbox.from_bounds(x - MARK, y - MARK, 2 * MARK, 2 * MARK) for x, y in places.values()]
    for label, (x, y) in sorted(places.items(), key=lambda pair: pair[1][1]):
        if some is not None and label not in some:
            continue
        width = TextPath((0, 0), label, size=NAME_SIZE).get_extents().x1 + MARK
        boxes = {shift: _box(x, y, *shift, width) for shift in BESIDE}
        free = [shift for shift, box in boxes.items() if not box.count_overlaps(taken)] or BESIDE[:1]
        inside = (shift for shift in free if _holds(frame, boxes[shift]))
        shift = next(inside, free[0])
        taken.append(boxes[shift])
        side = "right" if shift[0] < 0 else "left"
        line = {"arrowstyle": "-", "color": PALE, "linewidth": 0.6} if abs(shift[1]) > LINE else None
        ax.annotate(
            label,
            points[label],
            shift,
            textcoords="offset points",
            ha=side,
            fontsize=NAME_SIZE,
            arrowprops=line,
        )


def _holds(frame: Bbox, box: Bbox) -> bool:
    return frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1


def _box(x: float, y: float, right: float, up: float, width: float) -> Bbox:
    """Of a name of this width, so far from its point; it ends there where that is to the left."""
    return Bbox.from_bounds(x + right - (width if right < 0 else 0), y + up - 1, width, LINE)


def bars(ax: Axes, title: str, names: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """Groups of bars from 0; where a value is missing there is a cross."""
    width, hues = 0.8 / max(len(series), 1), _hues(list(series))
    for i, (label, values) in enumerate(series.items()):
        places = [x + (i - (len(series) - 1) / 2) * width for x in range(len(names))]
        known = [value if math.isfinite(value) else 0.0 for value in values]
        hue = hues[i]
        ax.bar(places, known, width * 0.92, color=hue, label=label)
        for x, value in zip(places, values, strict=True):
            if not math.isfinite(value):
                ax.plot(x, 0, "x", color=hue, markersize=7, clip_on=False)
    ax.set_xticks(range(len(names)), names)
    ax.set_title(title)
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])  # room for a legend
    ax.tick_params(axis="x", length=0)


def factors(ax: Axes, title: str, names: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """Groups of bars from 1, down where less and up where more, each with its value; a cross where it has
    none."""
    width, hues = 0.8 / len(series), _hues(list(series))
    ax.axhline(1, color=INK, linewidth=0.8)
    for i, (label, values) in enumerate(series.items()):
        places = [x + (i - (len(series) - 1) / 2) * width for x in range(len(names))]
        ax.bar(places, [v - 1 for v in values], width * 0.92, bottom=1, color=hues[i], label=label)
        for x, value in zip(places, values, strict=True):
            if math.isfinite(value):
                side = "bottom" if value >= 1 else "top"
                ax.annotate(
                    f"{value:.2f}" if value < 10 else f"{value:.0f}",
                    (x, value),
                    (0, 2 if value >= 1 else -2),
                    textcoords="offset points",
                    ha="center",
                    va=side,
                    fontsize=NAME_SIZE,
                )
            else:
                ax.plot(x, 1, "x", color=hues[i], markersize=7)
    ax.set_xticks(range(len(names)), names)
    ax.set_title(title)
    logarithmic(ax, "y")
    ax.margins(y=0.15)
    ax.tick_params(axis="x", length=0)


def marks(ax: Axes, names: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """A mark for every row beside the others of its column, where columns differ by orders of magnitude."""
    hues, apart = _hues(list(series)), min(0.12, 0.8 / len(series))
    for i, (label, values) in enumerate(series.items()):
        places = [x + apart * (i - (len(series) - 1) / 2) for x in range(len(names))]
        ax.plot(places, values, "o", color=hues[i], label=label, markersize=6)
    ax.set_xticks(range(len(names)), names)
    ax.set(xlim=(-0.6, len(names) - 0.4), ylabel="test relative L2")
    logarithmic(ax, "y")
    ax.grid(axis="y", linewidth=0.5)
    ax.tick_params(axis="x", length=0)


def _hues(labels: Sequence[str]) -> list[str]:
    """Of LRSA and Transolver their own, if that tells all apart."""
    own = [colour(label) for label in labels]
    return own if len(set(own)) == len(own) else [HUES[i % len(HUES)] for i in range(len(labels))]


def logarithmic(ax: Axes, which: str) -> None:
    """With numbers that are read at a glance."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    low, high = ax.get_xlim() if which == "x" else ax.get_ylim()
    decades = math.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 2 else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs) if decades > NARROW else MaxNLocator(FEW))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
