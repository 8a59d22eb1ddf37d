"""Charts of the page, as SVG that is drawn here and shown as it is."""

import io
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from lrsa.report.figures import ACCENT, INK, STYLE, WARM
from lrsa.studio.words import short

PLAIN: dict[Any, Any] = {**STYLE, "svg.fonttype": "none", "text.parse_math": False}
"""Words stay words: in the font of the page, and with every sign that is in a name."""
COLOURS = (ACCENT, WARM, "#6b4c9a", "#3f8f4f", "#b8860b", "#a23b72", INK, "#7b8794")
PIXELS, MARGINS = 84, 74
"""Of an inch of a chart, and of the page beside it."""
NARROWEST, WIDEST = 300, 1526
SIDE = 9
"""Inches from which on the names stand beside the chart."""
Curve = Sequence[Mapping[str, float]]


def loss_chart(curves: Mapping[str, Curve], width: float = 1000) -> str:
    """Loss (thin) and validation error (thick) of runs against the epoch, for a page of this width."""
    with matplotlib.rc_context(PLAIN):
        inches = min(max(width - MARGINS, NARROWEST), WIDEST) / PIXELS
        figure = Figure(figsize=(inches, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for i, (name, rows) in enumerate(curves.items()):
            colour = COLOURS[i % len(COLOURS)]
            measured = [row for row in rows if "validation" in row]
            epochs = [row["epoch"] for row in rows]
            axes.plot(epochs, [row["loss"] for row in rows], color=colour, linewidth=0.9, alpha=0.6)
            axes.plot(
                [row["epoch"] for row in measured] or epochs[:1],
                [row["validation"] for row in measured] or [rows[0]["loss"]],
                color=colour,
                linewidth=2,
                label=name,
                marker="o" if len(rows) == 1 else None,
            )
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.yaxis.set_minor_formatter(FuncFormatter(partial(_between, axes)))
        axes.tick_params(axis="y", which="minor", labelsize=matplotlib.rcParams["ytick.labelsize"])
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss (thin), validation (thick)")
        axes.grid(True)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1)) if inches > SIDE else axes.legend()
        return _svg(figure, "Loss and validation error of the chosen runs")


def _between(axes: Any, value: float, _: int) -> str:
    """2 and 5 between the powers of ten, where there are few of these."""
    low, high = axes.get_ylim()
    leading = round(value / 10 ** np.floor(np.log10(value)))
    return short(value) if high < 200 * low and leading in (2, 5) else ""


def line_chart(sampled: Mapping[str, np.ndarray], field: str, unit: str) -> str:
    """A field along a line: prediction, and truth where it is known."""
    with matplotlib.rc_context(PLAIN):
        figure = Figure(figsize=(5, 2.8), layout="constrained")
        axes = figure.add_subplot()
        looks: dict[str, dict[str, Any]] = {
            "truth": {"color": INK, "linewidth": 1.2, "linestyle": "--"},
            "prediction": {"color": ACCENT, "linewidth": 2},
        }
        for name, look in looks.items():
            if name in sampled:
                axes.plot(sampled["distance"], sampled[name], label=name, **look)
        axes.set_xlabel(f"distance{f' [{unit}]' if unit else ''}")
        axes.set_ylabel(field)
        axes.grid(True)
        axes.legend()
        return _svg(figure, f"{field} along the line")


def _svg(figure: Figure, title: str) -> str:
    """The drawing alone, as wide as its place, with a name for those who do not see it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Title": title}, transparent=True)
    text = file.getvalue()
    tag = text.index("<svg")
    end = text.index(">", tag)
    box = text[text.index("viewBox", tag) : end]
    box = box[: box.index('"', box.index('"') + 1) + 1]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box}'
    return f'{head} width="100%" role="img" aria-label="{escape(title)}">{text[end + 1 :]}'
