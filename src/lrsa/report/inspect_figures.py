"""Figures of an inspection: where latents write from and are read, and how fast the interaction decays."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from lrsa.analysis.inspect import MAPS, Inspection, LayerView
from lrsa.pointset import PointSet
from lrsa.report.figures import ACCENT, INK, SOFT, STYLE, WARM
from lrsa.report.pictures import Picture, draw_pictures

matplotlib.use("Agg")
LAYERS = 3
"""Layers whose latents are drawn: the first, one in the middle, the last."""
FLOOR = 1e-6
"""Singular values below this share of the first are left out."""


def draw_inspection(inspection: Inspection, folder: Path) -> list[Path]:
    """`latents.png` and `effective-rank.png` in a folder (`RUN/figures`)."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "latents.png", folder / "effective-rank.png"]
    with matplotlib.rc_context(STYLE):
        _latents(inspection).savefig(paths[0])
        _ranks(inspection).savefig(paths[1])
    return paths


def _latents(inspection: Inspection) -> Figure:
    count = len(inspection.layers)
    chosen = sorted({round(i) for i in np.linspace(0, count - 1, min(LAYERS, count))})
    tall = _height(inspection.case)
    figure = Figure(figsize=(1.5 * MAPS + 0.5, len(chosen) * (2 * 1.35 * tall + 0.95)), layout="constrained")
    parts = figure.subfigures(len(chosen), 1, squeeze=False)[:, 0]
    for part, index in zip(parts, chosen, strict=True):
        view = inspection.layers[index]
        part.suptitle(
            f"Layer {index + 1} of {count}: effective rank {_words(view)} of {view.latents} latents",
            color=INK,
            fontsize=10,
        )
        _layer(part, view, inspection.case)
    figure.supxlabel(
        "written from: the weight of a point in the latent, 1 is a plain mean.   "
        "read at: the share of the latent in what a point reads.",
        fontsize=8.5,
        color=SOFT,
    )
    return figure


def _layer(part: SubFigure, view: LayerView, case: PointSet) -> None:
    """Above: the points that a latent takes from. Below: the points that read it."""
    grid = part.subplots(2, MAPS, squeeze=False)
    pictures = [_picture(case, m.write, "YlGnBu") for m in view.maps]
    pictures += [_picture(case, m.read, "YlOrBr") for m in view.maps]
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    places = [grid[row, column] for row in range(2) for column in range(len(view.maps))]
    for axes, picture, image in zip(places, pictures, draw_pictures(pictures), strict=True):
        axes.imshow(image, interpolation="bilinear")
        axes.set_xlabel(f"{_number(picture.low)} to {_number(picture.high)}", fontsize=7.5, labelpad=2)
    for axes, shown in zip(grid[0], view.maps, strict=False):
        axes.set_title(f"head {shown.head + 1}, latent {shown.latent + 1}", fontsize=8.5, color=SOFT)
    for axes, word in zip(grid[:, 0], ("written from", "read at"), strict=True):
        axes.set_ylabel(word, fontsize=9)


def _picture(case: PointSet, values: np.ndarray, cmap: str) -> Picture:
    """Weights from 0 up; maps of either sign around 0."""
    top = float(np.abs(values).max()) or 1.0
    if values.min() < -1e-9 * top:
        return Picture(case, values, -top, top, "RdBu_r")
    return Picture(case, values, 0.0, top, cmap)


def _height(case: PointSet) -> float:
    """Of a picture over its width, within bounds: cases may be long or flat."""
    extent = np.ptp(case.x[:, :2], axis=0) if case.x.shape[1] > 1 else np.ones(2)
    return float(np.clip(extent[1] / max(extent[0], 1e-12), 0.35, 1.3))


def _ranks(inspection: Inspection) -> Figure:
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _decay(left, inspection.layers)
    _per_layer(right, inspection.layers)
    return figure


def _decay(axes: Axes, layers: Sequence[LayerView]) -> None:
    colours = matplotlib.colormaps["viridis"](np.linspace(0.05, 0.85, len(layers)))
    for i, (view, colour) in enumerate(zip(layers, colours, strict=True)):
        sigma = view.singular_values
        if not sigma.shape[-1]:
            continue
        share = sigma / np.maximum(sigma[:, :1], 1e-300)
        # The geometric mean over heads: the scale is logarithmic.
        mean = np.exp(np.log(np.maximum(share, 1e-300)).mean(0))
        shown = mean > FLOOR
        axes.plot(
            np.arange(1, len(mean) + 1)[shown],
            mean[shown],
            color=colour,
            linewidth=1.6,
            label=f"layer {i + 1}",
        )
    axes.set(yscale="log", xlabel="k", ylabel="σₖ / σ₁", title="Singular values of K = U G Vᵀ, mean of heads")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(which="major")
    axes.set_axisbelow(True)
    if len(layers) <= 8:
        axes.legend(ncols=1 + len(layers) // 5)


def _per_layer(axes: Axes, layers: Sequence[LayerView]) -> None:
    number = np.arange(1, len(layers) + 1)
    mean = np.array([view.effective_rank.mean() for view in layers])
    axes.plot(number, mean, "-", color=ACCENT, linewidth=1.8, label="mean of heads")
    heads = np.concatenate([view.effective_rank for view in layers])
    places = np.repeat(number, [len(view.effective_rank) for view in layers])
    axes.plot(places, heads, "o", color=ACCENT, markersize=4, alpha=0.45, linewidth=0, label="a head")
    whole = np.array([np.nan if v.jacobian_rank is None else v.jacobian_rank for v in layers])
    if np.isfinite(whole).any():
        axes.plot(
            number, whole, "s--", color=WARM, markersize=4, linewidth=1.2, label="Jacobian of the layer"
        )
    seen = np.concatenate([heads, whole])
    top = float(np.nanmax(seen)) if np.isfinite(seen).any() else 1.0
    latents = max(view.latents for view in layers)
    if latents < 3 * top:
        axes.axhline(latents, color=SOFT, linestyle=":", linewidth=1.2, label="latents M")
    axes.set(xlabel="layer", title=f"Effective rank, of M = {latents} latents", xlim=(0.6, len(layers) + 0.4))
    axes.set_ylim(0, 1.15 * max(top, latents if latents < 3 * top else 0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(which="major", axis="y")
    axes.set_axisbelow(True)
    axes.legend()


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 or not value else f"{value:.2g}"


def _words(view: LayerView) -> str:
    mean = view.effective_rank.mean()
    return "unknown" if np.isnan(mean) else f"{mean:.1f}"
