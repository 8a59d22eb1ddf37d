"""The paper's efficiency figure: step time, split in forward and the rest, and peak memory, per setting."""

from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lrsa.bench.results import Results, Row
from lrsa.files import atomic
from lrsa.report.figures import ACCENT, SOFT, STYLE, WARM

matplotlib.use("Agg")


def draw(results: Results, path: Path) -> None:
    """Relative to Transolver in fp32 where it was measured; at the first number of threads of the run."""
    threads = results.rows[0].threads if results.rows else 0
    rows = [r for r in results.rows if r.threads == threads]
    settings = list(dict.fromkeys(r.setting for r in rows))
    if not settings:
        return
    most = max(sum(r.setting == s for r in rows) for s in settings)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.4 * len(settings), 1.6 + 0.42 * most), layout="constrained")
        panels = figure.subplots(2, len(settings), squeeze=False)
        for column, setting in enumerate(settings):
            here = sorted((r for r in rows if r.setting == setting), key=lambda r: -r.step)
            reference = results.find(setting, "transolver", "fp32", threads)
            _steps(panels[0, column], here, reference)
            _peaks(panels[1, column], here, reference)
            panels[0, column].set_title(f"{setting}, {threads} thread{'s' if threads > 1 else ''}")
        with atomic(path) as temporary:
            figure.savefig(temporary, format="png")


def _steps(axes: Axes, rows: list[Row], reference: Row | None) -> None:
    unit = reference.step if reference else 1.0
    forward = [min(r.times.forward) / unit for r in rows]
    rest = [r.step / unit - f for r, f in zip(rows, forward, strict=True)]
    axes.barh(_names(rows), forward, color=_colours(rows), label="forward")
    axes.barh(_names(rows), rest, left=forward, color=_colours(rows), alpha=0.5, label="backward, optimiser")
    axes.set_xlabel("step / Transolver (dark: forward)" if reference else "step, s (dark: forward)")
    _mark(axes, reference)


def _peaks(axes: Axes, rows: list[Row], reference: Row | None) -> None:
    if reference and not reference.probe.peak:
        reference = None
    unit = reference.probe.peak if reference else 1e6
    rows = sorted((r for r in rows if r.probe.peak), key=lambda r: -r.probe.peak)
    axes.barh(_names(rows), [r.probe.peak / unit for r in rows], color=_colours(rows))
    axes.set_xlabel("peak memory / Transolver" if reference else "peak memory, MB")
    _mark(axes, reference)


def _mark(axes: Axes, reference: Row | None) -> None:
    if reference:
        axes.axvline(1, color=SOFT, linewidth=0.8, linestyle=":")
    axes.tick_params(axis="y", length=0, labelsize=7.5)


def _names(rows: list[Row]) -> list[str]:
    several = len({r.precision for r in rows}) > 1
    return [f"{r.label} {r.precision}" if several else r.label for r in rows]


def _colours(rows: list[Row]) -> list[str]:
    return [{"lrsa": ACCENT, "transolver": WARM}.get(r.label.split()[0], SOFT) for r in rows]
