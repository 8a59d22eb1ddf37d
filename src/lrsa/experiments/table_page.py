"""A table of models and benchmarks as a page, as numbers and as a picture."""

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from lrsa.files import atomic
from lrsa.models.listing import list_models
from lrsa.models.registry import get as get_model
from lrsa.problems.catalogue import get
from lrsa.report.figures import ACCENT, INK, SOFT, STYLE, WARM

matplotlib.use("Agg")
ACROSS = 3
"""Panels in a row."""
COLORS = {"lrsa": WARM, "backbone": SOFT}
"""Of a model's point, by its family."""


def write_table(
    out: Path, scale: str, threads: int, cells: Sequence[Mapping[str, Any]], versions: Mapping[str, str]
) -> Path:
    """Write table-standard-SCALE.md, .json and .png of runs on so many threads; the path of the page."""
    out.mkdir(parents=True, exist_ok=True)
    stem = f"table-standard-{scale}"
    with atomic(out / f"{stem}.json") as temporary:
        temporary.write_text(json.dumps({"versions": versions, "cells": list(cells)}, indent=1) + "\n")
    with atomic(out / f"{stem}.md") as temporary:
        temporary.write_text(_page(scale, threads, stem, cells, versions))
    if _worth_a_picture(cells):
        with matplotlib.rc_context(STYLE):
            draw(cells).savefig(out / f"{stem}.png")
    return out / f"{stem}.md"


def by_benchmark(cells: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The measured cells, best first."""
    names = dict.fromkeys(cell["benchmark"] for cell in cells if cell["relative_l2"] is not None)
    return {
        name: sorted(
            (c for c in cells if c["benchmark"] == name and c["relative_l2"] is not None),
            key=lambda c: c["relative_l2"],
        )
        for name in names
    }


def _worth_a_picture(cells: Sequence[Mapping[str, Any]]) -> bool:
    return any(len(group) > 2 for group in by_benchmark(cells).values())


def draw(cells: Sequence[Mapping[str, Any]]) -> Figure:
    """Error and step time of every model, one panel for each benchmark."""
    groups = by_benchmark(cells)
    rows = max(map(len, groups.values()), default=1)
    across = min(len(groups), ACROSS)
    down = -(-len(groups) // ACROSS)
    figure = Figure(figsize=(4.6 * across, (1.2 + 0.19 * rows) * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, (name, group) in zip(axes, groups.items(), strict=False):
        _panel(ax, name, group)
    for ax in axes[len(groups) :]:
        ax.set_visible(False)
    return figure


def _panel(ax: Axes, name: str, group: Sequence[Mapping[str, Any]]) -> None:
    for y, cell in enumerate(group):
        color = COLORS.get(get_model(cell["model"]).family, ACCENT)
        ax.plot(cell["relative_l2"], y, "o", color=color, markersize=5)
    null = min(group[0]["nulls"].values(), default=None)
    if null is not None:
        ax.axvline(null, color=INK, linewidth=0.8, linestyle=":")
        ax.annotate("best null", (null, -0.9), fontsize=7, ha="center", color=INK)
    ax.set(xscale="log", title=name, xlabel="test relative L2", ylim=(len(group) - 0.3, -1.4))
    ax.set_yticks(range(len(group)), [cell["model"] for cell in group], fontsize=7)
    low, high = ax.get_xlim()
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high > 3 * low else range(1, 10)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y", linewidth=0.3)


def _page(
    scale: str, threads: int, stem: str, cells: Sequence[Mapping[str, Any]], versions: Mapping[str, str]
) -> str:
    many = "one thread" if threads == 1 else f"{threads} threads"
    lines = [
        f"# All models on the standard benchmarks, {scale} scale",
        "",
        f"Made by `lrsa reproduce table-standard --scale {scale}`, with `--only` where it holds a part of"
        " the models or benchmarks; every row is one run of `lrsa train"
        f" BENCHMARK --model MODEL --scale {scale} --threads {threads}`, training seed 0, on data"
        " *generated* by our solvers with seed 0. Cases, loss, optimiser, schedule and epochs are the same"
        " for every model; the sizes (width, depth, heads, rank) are those of the scale, unless a model was"
        " published smaller, so the parameters differ (`--matched` chooses the width that makes them equal)."
        " *backbone-X* is our backbone with that mixer; the others have their own published skeleton. A step"
        " is the time of one training step divided by LRSA's, the two taking turns in one process on"
        f" {many}, the fastest of five each. Waiting is the share of the training steps in which the"
        " model waited for its batch. One seed: differences of a few percent mean nothing.",
        "",
        *([f"![error of every model]({stem}.png)"] if _worth_a_picture(cells) else []),
    ]
    for name, group in by_benchmark(cells).items():
        lines += _section(name, scale, group)
        missing = [c for c in cells if c["benchmark"] == name and c["reason"]]
        lines += ["", *(f"- {c['model']}: {c['reason']}" for c in missing)] if missing else []
        lines += _untrained({c["model"] for c in cells if c["benchmark"] == name})
    return "\n".join([*lines, "", f"Versions: {', '.join(f'{k} {v}' for k, v in versions.items())}.", ""])


def _untrained(seen: Collection[str]) -> list[str]:
    """The models that a table of several does not have yet."""
    others = [name for name in list_models() if name not in seen]
    return ["", f"Not trained yet: {', '.join(others)}."] if others and len(seen) > 1 else []


def _section(name: str, scale: str, group: Sequence[Mapping[str, Any]]) -> list[str]:
    benchmark = get(name)
    nulls = ", ".join(f"{key} {value:.4f}" for key, value in group[0]["nulls"].items())
    row = "| {} | {:.4f} | {:,} | {} | {:.2%} |"
    return [
        "",
        f"## {name.title()}",
        "",
        f"*generated*, {scale} scale: {benchmark.scale(scale).about}. Null baselines: {nulls}. The paper's"
        f" LRSA on the official files at paper scale: {benchmark.paper_error or 'nothing'}.",
        "",
        "| model | test relative L2 | parameters | step / LRSA's | waiting |",
        "|---|---|---|---|---|",
        *(
            row.format(
                f"**{c['model']}**" if c["model"] == "lrsa" else c["model"],
                c["relative_l2"],
                c["parameters"],
                "-" if c["step"] is None else f"{c['step']:.2f}",
                c["waiting"],
            )
            for c in group
        ),
    ]
