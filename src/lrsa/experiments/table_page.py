"""A table of models and benchmarks as a page, as numbers and as a picture."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from lrsa.experiments.cells import Cell
from lrsa.experiments.study import Study
from lrsa.files import atomic
from lrsa.models.registry import get as get_model
from lrsa.models.registry import networks
from lrsa.problems.catalogue import get
from lrsa.report.figures import ACCENT, INK, SOFT, STYLE, WARM

matplotlib.use("Agg")
NAME = "table-standard"
ACROSS = 3
"""Panels in a row."""
COLORS = {"lrsa": WARM, "backbone": SOFT}
"""Of a model's point, by its family."""


def write_table(out: Path, study: Study, cells: Sequence[Cell]) -> Path:
    """Write the table of a study as .md, .json and .png; the path of the page."""
    out.mkdir(parents=True, exist_ok=True)
    with atomic(out / f"{study.named(NAME)}.json") as temporary:
        rows = [{k: v for k, v in asdict(cell).items() if k != "configuration"} for cell in cells]
        temporary.write_text(json.dumps({"command": study.command(NAME), "cells": rows}, indent=1) + "\n")
    with atomic(out / f"{study.named(NAME)}.md") as temporary:
        temporary.write_text(_page(study, cells))
    if _worth_a_picture(cells):
        with matplotlib.rc_context(STYLE):
            draw(cells).savefig(out / f"{study.named(NAME)}.png")
    return out / f"{study.named(NAME)}.md"


def by_problem(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """The measured cells, best first."""
    measured = [cell for cell in cells if cell.relative_l2 is not None]
    return {
        name: sorted((c for c in measured if c.problem == name), key=lambda c: c.relative_l2 or 0.0)
        for name in dict.fromkeys(cell.problem for cell in measured)
    }


def seconds_of(cell: Cell, group: Sequence[Cell]) -> float | None:
    """Of the training: its steps, in units of LRSA's step, at the pace of LRSA in this group."""
    lrsa = next((c for c in group if c.model == "lrsa" and c.step is not None), None)
    if lrsa is None or lrsa.step is None or cell.ratio is None or cell.steps is None:
        return None
    return cell.steps * cell.ratio * lrsa.step["lrsa"]


def _worth_a_picture(cells: Sequence[Cell]) -> bool:
    return any(
        sum(seconds_of(cell, group) is not None for cell in group) > 2 for group in by_problem(cells).values()
    )


def draw(cells: Sequence[Cell]) -> Figure:
    """Error against training time of every model, one panel for each benchmark."""
    groups = {name: group for name, group in by_problem(cells).items() if len(group) > 2}
    across, down = min(len(groups), ACROSS), -(-len(groups) // ACROSS)
    figure = Figure(figsize=(4.8 * across, 3.9 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax, (name, group) in zip(axes, groups.items(), strict=False):
        _panel(ax, name, group)
    for ax in axes[len(groups) :]:
        ax.set_visible(False)
    return figure


def _panel(ax: Axes, name: str, group: Sequence[Cell]) -> None:
    timed = [(seconds, cell) for cell in group if (seconds := seconds_of(cell, group)) is not None]
    best = float("inf")
    for seconds, cell in sorted(timed, key=lambda pair: pair[0]):
        color = COLORS.get(get_model(cell.model).family, ACCENT)
        error = cell.relative_l2 or 0.0
        ax.plot(seconds, error, "*" if cell.model == "lrsa" else "o", color=color, markersize=6)
        # A name for what no faster model beats, and for LRSA.
        if error < best or cell.model == "lrsa":
            ax.annotate(cell.model, (seconds, error), (4, 3), textcoords="offset points", fontsize=7)
        best = min(best, error)
    null = min((group[0].nulls or {}).values(), default=None)
    if null is not None:
        ax.axhline(null, color=INK, linewidth=0.8, linestyle=":", label="best null")
    ax.set(xscale="log", yscale="log", title=name, xlabel="training, s", ylabel="test relative L2")
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high > 3 * low else range(1, 10)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    ax.grid(linewidth=0.3)


def _page(study: Study, cells: Sequence[Cell]) -> str:
    threads = sorted({cell.threads for cell in cells})
    many = " or ".join("one thread" if n == 1 else f"{n} threads" for n in threads)
    sizes = (
        "the width of every model is that which gives it LRSA's number of parameters"
        if study.matched
        else "the sizes (width, depth, heads, rank) are those of the scale, unless a model was published"
        " smaller, so the parameters differ (`--matched` makes them equal by the width)"
    )
    lines = [
        f"# All models on the standard benchmarks, {study.scale} scale, *{study.source}* data",
        "",
        f"Made by `{study.command(NAME)}`, with `--only` where it holds a part of the models or benchmarks."
        f" Every row is one training on {many or 'one thread'}, recorded under `cells/` with its"
        f" configuration, its command and the versions. Source: *{study.source}*. Recipe:"
        f" *{study.settled}*, for all rows."
        " Cases, loss, optimiser, schedule and epochs are the same for every model; "
        + sizes
        + ". *backbone-X*"
        " is our backbone with that mixer; the others have their own published skeleton. A step is the time"
        " of one training step divided by LRSA's, the two taking turns in one process, the fastest of five"
        " each; *training* is the number of steps times that ratio times LRSA's step. Waiting is the share"
        " of the training steps in which the model waited for its batch. One seed: differences of a few"
        " percent mean nothing.",
        "",
        *([f"![error against training time]({study.named(NAME)}.png)"] if _worth_a_picture(cells) else []),
    ]
    for name, group in by_problem(cells).items():
        lines += _section(name, study, group)
        missing = [c for c in cells if c.problem == name and c.reason]
        lines += ["", *(f"- {c.model}: {c.reason}" for c in missing)] if missing else []
        lines += _untrained({c.model for c in cells if c.problem == name})
    versions = {f"{k} {v}" for cell in cells for k, v in cell.versions.items()}
    return "\n".join([*lines, "", f"Versions: {', '.join(sorted(versions))}.", ""])


def _untrained(seen: Collection[str]) -> list[str]:
    """The models that a table of several does not have yet."""
    others = [name for name in networks() if name not in seen]
    return ["", f"Not trained yet: {', '.join(others)}."] if others and len(seen) > 1 else []


def _section(name: str, study: Study, group: Sequence[Cell]) -> list[str]:
    problem = get(name)
    nulls = ", ".join(f"{key} {value:.4f}" for key, value in (group[0].nulls or {}).items())
    return [
        "",
        f"## {name.title()}",
        "",
        f"*{study.source}*, {study.scale} scale: {problem.scale(study.scale).about}. Null baselines: {nulls}."
        f" The paper's LRSA on the official files at paper scale: {problem.paper_error or 'nothing'}.",
        "",
        "| model | test relative L2 | parameters | step / LRSA's | training, s | waiting |",
        "|---|---|---|---|---|---|",
        *(_row(cell, group) for cell in group),
    ]


def _row(cell: Cell, group: Sequence[Cell]) -> str:
    seconds = seconds_of(cell, group)
    columns = [
        f"**{cell.model}**" if cell.model == "lrsa" else cell.model,
        f"{cell.relative_l2:.4f}",
        f"{cell.parameters:,}",
        "-" if cell.ratio is None else f"{cell.ratio:.2f}",
        "-" if seconds is None else f"{seconds:.0f}",
        f"{cell.waiting:.2%}",
    ]
    return f"| {' | '.join(columns)} |"
