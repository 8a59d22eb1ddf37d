"""Figures with axes and words: comparisons, samples, training, and how the errors are spread."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from lrsa.pointset import PointSet
from lrsa.report.pictures import (
    ERROR,
    FIELD,
    Picture,
    draw_pictures,
    moves,
    picture_of,
    placed,
    shown_points,
)

INK, SOFT, ACCENT, WARM = "#1c2530", "#5d6b7a", "#1f6f8b", "#c4622d"
GREYS = (("#7b8794", "--"), ("#7b8794", ":"), ("#7b8794", "-."))
"""Colour and line of the null baselines."""
SIZE = 2.6
"""Inches of one panel."""
Words = tuple[str, str]
"""What stands at the two axes of a chart."""
MOST = 0.99
"""Share of the points whose errors the scale of the error reaches; the largest error is printed."""
TARGETS = 6
"""Targets of which pictures are drawn, at the most."""
CHART = (4.4, 2.9)
"""Inches of one chart: its words stay legible at the width of a phone."""
STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.edgecolor": "#b6c0ca",
    "axes.labelcolor": SOFT,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#e6eaef",
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 170,
}


def comparison(case: PointSet, truth: np.ndarray, prediction: np.ndarray, channel: int = 0) -> list[Picture]:
    """Truth, prediction and error (N,) of one field: the first two on the scale of the truth."""
    first = picture_of(case, truth, channel)
    error = np.abs(prediction - truth)
    seen = error if first.known is None else error[first.known]
    return [
        first,
        Picture(case, prediction, first.low, first.high, FIELD, first.known),
        Picture(case, error, 0.0, _most(seen) or 1.0, ERROR, first.known, float(seen.max(initial=0.0))),
    ]


def _most(errors: np.ndarray) -> float:
    """What most errors are below: one bad point does not make the rest look white."""
    return float(np.quantile(errors, MOST)) or float(errors.max()) if errors.size else 0.0


def draw_comparison(
    path: Path,
    labels: Sequence[str],
    rows: Sequence[Sequence[Picture]],
    images: Sequence[np.ndarray],
    name: str,
) -> None:
    """Rows of truth, prediction and error, each with its scale; `images` are their pictures in order."""
    heads = (f"{name}: truth", "prediction", "|error|")
    with _figure(path, (3.5 * SIZE, 1.02 * SIZE * len(rows))) as figure:
        grid = figure.subplots(len(rows), 3, squeeze=False)
        pictures = [picture for row in rows for picture in row]
        for i, (axes, picture, image) in enumerate(zip(grid.flat, pictures, images, strict=True)):
            _place(figure, axes, picture, image)
            most = "" if picture.largest is None else f" (largest {picture.largest:.3g})"
            axes.set_title(heads[i % 3] + most)
        for axes, label in zip(grid[:, 0], labels, strict=True):
            axes.set_ylabel(label, visible=True)


def draw_samples(path: Path, cases: Sequence[PointSet]) -> None:
    """The first input and all targets of a few cases, where they have them."""
    pictures = [sample_pictures(case, TARGETS) for case in cases]
    heads = list(pictures[0])
    flat = [row[head] for head in heads for row in pictures]
    with _figure(path, (1.15 * SIZE * len(cases), 1.05 * SIZE * len(heads))) as figure:
        grid = figure.subplots(len(heads), len(cases), squeeze=False)
        for i, (axes, picture, image) in enumerate(zip(grid.flat, flat, draw_pictures(flat), strict=True)):
            _place(figure, axes, picture, image)
            axes.set_title(heads[i // len(cases)])


def sample_pictures(case: PointSet, targets: int = 1) -> dict[str, Picture]:
    """What a case looks like: its first input that varies where it is drawn and the first targets, beginning
    with one that varies; the last target of moving points; or its points."""
    names, made = case.names, {}
    channel = -1 if moves(names) else _varying(case, case.u)
    target = names.targets[channel] if names.targets else "target"
    if case.f is not None and case.f.shape[1]:
        chosen = _varying(case, case.f)
        made[names.inputs[chosen] if names.inputs else "input"] = _input(case, chosen)
    elif case.u is not None and case.u.ndim == 3:
        made[f"{target}, first frame"] = picture_of(case, case.u[0, :, channel])
    if case.u is not None:
        u = case.u[-1] if case.u.ndim == 3 else case.u
        rest = [] if moves(names) else [k for k in range(u.shape[-1]) if k != channel]
        for k in [channel, *rest[: targets - 1]]:
            label = names.targets[k] if names.targets else f"target {k}" if k > 0 else target
            shown = label if case.u.ndim == 2 else f"{label}, last frame"
            made[shown] = picture_of(placed(case, u), u[:, k], k)
    return made or {"points": _whole(case, case.x[:, -1])}


def draw_training(path: Path, rows: Sequence[Mapping[str, float]], nulls: Mapping[str, float]) -> None:
    """Loss and validation error over epochs, with the null baselines as levels."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        epochs = [row["epoch"] for row in rows]
        mark = {"marker": "o", "markersize": 3} if len(rows) < 25 else {}
        axes.plot(epochs, [row["loss"] for row in rows], label="training loss", color=ACCENT, **mark)
        if validated := [(row["epoch"], row["validation"]) for row in rows if "validation" in row]:
            axes.plot(*zip(*validated, strict=True), label="validation relative L2", color=WARM, **mark)
        for (colour, style), (name, value) in zip(GREYS, nulls.items(), strict=False):
            axes.axhline(value, linestyle=style, color=colour, linewidth=1.2, label=name)
        _logarithmic(axes)
        axes.set(xlabel="epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes)


def draw_errors(path: Path, errors: Sequence[float], nulls: Mapping[str, Sequence[float]]) -> None:
    """The error of every case, from the best to the worst; each null baseline in its own order."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        ordered = np.sort([e for e in errors if not np.isnan(e)])
        rank = np.arange(1, len(ordered) + 1)
        for (colour, style), (name, values) in zip(GREYS, nulls.items(), strict=False):
            axes.plot(rank, np.sort(values)[: len(rank)], style, color=colour, linewidth=1.2, label=name)
        mark = {"marker": "o", "markersize": 3.5} if len(rank) < 60 else {}
        axes.plot(rank, ordered, color=ACCENT, linewidth=1.8, label="surrogate", **mark)
        if ordered.min() > 0:
            _logarithmic(axes)
        axes.set(xlabel="test case, from best to worst", ylabel="relative L2")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes)


def draw_scatter(path: Path, truth: np.ndarray, prediction: np.ndarray, name: str) -> None:
    """Predicted against true values (n,) of one field; the diagonal is exact."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        low, high = float(min(truth.min(), prediction.min())), float(max(truth.max(), prediction.max()))
        axes.plot([low, high], [low, high], color="#8a96a3", linewidth=1, zorder=1)
        axes.scatter(truth, prediction, s=5, alpha=0.35, color=ACCENT, linewidths=0, zorder=2)
        axes.set(xlabel=f"{name}: truth", ylabel="prediction")
        axes.grid()
        axes.set_axisbelow(True)


def draw_parity(
    path: Path, truth: np.ndarray, prediction: np.ndarray, widths: np.ndarray | None, name: str
) -> None:
    """A quantity of every case (S,), predicted against true, with half its interval where there is one."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        ends = [float(f(v)) for f, v in ((np.nanmin, truth), (np.nanmax, truth))]
        axes.plot(ends, ends, color="#8a96a3", linewidth=1, zorder=1)
        axes.errorbar(
            truth, prediction, widths, fmt="o", markersize=3.5, color=ACCENT, ecolor="#9cc3d1", elinewidth=1
        )
        axes.set(xlabel=f"{name}: truth", ylabel="prediction")
        axes.grid()
        axes.set_axisbelow(True)


def draw_curve(
    path: Path, along: np.ndarray, lines: np.ndarray, truth: np.ndarray, prediction: np.ndarray, words: Words
) -> None:
    """A field on curves (N,) over a coordinate, true and predicted; `lines` (K, 2) join the points."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        for values, colour, style, label in (
            (truth, SOFT, "-", "truth"),
            (prediction, ACCENT, "--", "prediction"),
        ):
            pieces = list(np.stack([along, values], axis=1)[lines])
            axes.add_collection(
                LineCollection(pieces, colors=colour, linestyles=style, linewidths=1.5, label=label)
            )
        axes.autoscale_view()
        axes.set(xlabel=words[0], ylabel=words[1])
        _finish(axes)


def draw_samplings(path: Path, points: Sequence[float], series: Mapping[str, Sequence[float]]) -> None:
    """Errors over the mean number of points."""
    with _figure(path, CHART) as figure:
        axes = figure.subplots()
        for (name, values), colour in zip(series.items(), (ACCENT, WARM), strict=False):
            shown = [(n, v) for n, v in zip(points, values, strict=True) if v > 0]
            axes.plot(*zip(*shown, strict=True) if shown else ([], []), "o-", color=colour, label=name)
        axes.set(xscale="log", xlabel="points of a case (mean)")
        axes.set_xticks(points, [f"{n:.0f}" for n in points], minor=False)
        axes.set_xticks([], minor=True)
        _logarithmic(axes)
        _finish(axes)


def _varying(case: PointSet, values: np.ndarray | None) -> int:
    """The first channel of (..., N, c) that is not constant where it is drawn, or else the first."""
    if values is None or not values.shape[-1]:
        return 0
    drawn = values.reshape(-1, *values.shape[-2:])[-1][shown_points(case)]
    return int(np.argmax(np.ptp(drawn, axis=0) > 0)) if len(drawn) else 0


def _input(case: PointSet, channel: int) -> Picture:
    """Only the points at which it is known, of which there may be few."""
    assert case.f is not None
    values = case.f[:, channel]
    known = np.arange(len(case)) if case.f_mask is None else np.flatnonzero(case.f_mask[:, channel])
    return _whole(case, values) if len(known) in (0, len(case)) else _whole(case.subset(known), values[known])


def _whole(case: PointSet, values: np.ndarray) -> Picture:
    return Picture(case, values, float(values.min()), float(values.max()))


def _place(figure: Figure, axes: Axes, picture: Picture, image: np.ndarray) -> None:
    axes.imshow(image, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    scale = ScalarMappable(Normalize(picture.low, picture.high), picture.cmap)
    beyond = "max" if picture.largest is not None and picture.largest > picture.high else "neither"
    bar = figure.colorbar(scale, ax=axes, shrink=0.8, format="%.6g", aspect=16, extend=beyond)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]


def _logarithmic(axes: Axes) -> None:
    """A logarithmic scale with a few plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _finish(axes: Axes) -> None:
    axes.grid(which="major")
    axes.set_axisbelow(True)
    axes.legend()


@contextmanager
def _figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        figure.savefig(path, bbox_inches="tight", pad_inches=0.05)
