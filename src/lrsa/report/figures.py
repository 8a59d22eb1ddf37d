"""Pictures of fields on points, and of training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from lrsa.data.pointset import PointSet

matplotlib.use("Agg")
SIZE = 2.9
"""Inches of one panel."""
STYLE: dict[Any, Any] = {"font.size": 9, "axes.titlesize": 9, "figure.dpi": 110, "savefig.bbox": "tight"}


def draw_field(axes: Axes, case: PointSet, values: np.ndarray, cmap: str, low: float, high: float) -> Any:
    """One scalar (N,) at the points of a case: on its grid, its triangles, or as dots."""
    x = case.x
    axes.set(xticks=[], yticks=[])
    options: dict[str, Any] = {"cmap": cmap, "vmin": low, "vmax": high}
    if x.shape[1] == 1:
        axes.set(yticks=[low, high])
        return axes.scatter(x[:, 0], values, c=values, s=4, **options)
    axes.set_aspect("equal")
    if case.grid is not None and len(case.grid) == 2:
        a, b, c = (v.reshape(case.grid) for v in (x[:, 0], x[:, 1], values))
        return axes.pcolormesh(a, b, c, shading="gouraud", rasterized=True, **options)
    if case.cells is not None and case.cells.shape[1] == 3 and x.shape[1] == 2:
        mesh = Triangulation(x[:, 0], x[:, 1], case.cells)
        return axes.tripcolor(mesh, values, shading="gouraud", rasterized=True, **options)
    return axes.scatter(x[:, 0], x[:, 1], c=values, s=max(1.0, 4000 / len(x)), linewidths=0, **options)


def draw_comparison(
    path: Path, rows: Sequence[tuple[str, PointSet, np.ndarray, np.ndarray]], channel: str
) -> None:
    """Truth, prediction and error side by side; rows of (label, case, truth (N,), prediction (N,))."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * SIZE, 0.92 * SIZE * len(rows)), layout="constrained")
        grid = figure.subplots(len(rows), 3, squeeze=False)
        for axes, (label, case, truth, prediction) in zip(grid, rows, strict=True):
            low, high = float(truth.min()), float(truth.max())
            error = np.abs(prediction - truth)
            panels = (
                (f"{channel}: truth", truth, "viridis", low, high),
                ("prediction", prediction, "viridis", low, high),
                ("|error|", error, "magma", 0.0, float(error.max()) or 1.0),
            )
            for panel, (title, values, cmap, start, end) in zip(axes, panels, strict=True):
                drawn = draw_field(panel, case, values, cmap, start, end)
                panel.set_title(title)
                figure.colorbar(drawn, ax=panel, shrink=0.85, format="%.2g")
            axes[0].set_ylabel(label)
        _save(figure, path)


def draw_samples(path: Path, cases: Sequence[PointSet]) -> None:
    """The first input and the first target of a few cases, one row each."""
    shown = [case for case in cases if case.u is not None]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(SIZE * len(shown), 2 * 0.95 * SIZE), layout="constrained")
        grid = figure.subplots(2, len(shown), squeeze=False)
        for column, case in zip(grid.T, shown, strict=True):
            assert case.u is not None
            u = case.u[-1] if case.u.ndim == 3 else case.u
            f = case.f if case.f is not None else case.u[0] if case.u.ndim == 3 else case.x
            for axes, values, names in (
                (column[0], f, case.names.inputs),
                (column[1], u, case.names.targets),
            ):
                field = values[:, 0]
                drawn = draw_field(axes, case, field, "viridis", float(field.min()), float(field.max()))
                axes.set_title(names[0] if names else "")
                figure.colorbar(drawn, ax=axes, shrink=0.85, format="%.2g")
        _save(figure, path)


def draw_training(path: Path, rows: Sequence[dict[str, float]], nulls: dict[str, float]) -> None:
    """Loss and validation error over epochs, with the null baselines as levels."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(2.2 * SIZE, 1.1 * SIZE), layout="constrained")
        axes = figure.subplots()
        epochs = [row["epoch"] for row in rows]
        axes.semilogy(epochs, [row["loss"] for row in rows], label="training loss", color="tab:blue")
        if rows and "validation" in rows[0]:
            axes.semilogy(
                epochs,
                [row["validation"] for row in rows],
                label="validation relative L2",
                color="tab:orange",
            )
        for style, (name, value) in zip(("--", ":", "-."), nulls.items(), strict=False):
            axes.axhline(value, linestyle=style, color="gray", linewidth=1, label=name)
        axes.set(xlabel="epoch")
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
