"""The benchmark as Markdown."""

from collections.abc import Iterator, Sequence

from lrsa.bench.results import BARS, Results, Row
from lrsa.bench.settings import BY_KERNELS, SETTINGS, Setting


def markdown(results: Results) -> str:
    """Bars, then a table for every setting, precision and number of threads, then what was left out."""
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    lines = [
        "# Speed and memory",
        "",
        f"{_commands(results)}; {versions}. Times are the best of interleaved rounds in one process, +x %"
        " says how far the median round is above it; ratios are of the best. A training step is forward,"
        " backward and optimiser (fused AdamW) on one synthetic case. Operations are by formula from the"
        " layer shapes, a step three times the forward pass. The share is of the rate of one matrix"
        " product (N × d) (d × d) in the model's own turns, d its width. Peak memory is what two training"
        " steps need beyond the loaded model, in a process of their own that gives back at once what it"
        " frees. All rows are plain torch; the last columns are the same model by kernels: its step beside"
        " that by torch, its inference, and its peak beside Transolver's.",
        "",
        "![Step time and peak memory relative to Transolver](bench.png)",
        "",
        *_bars(results),
    ]
    for key in dict.fromkeys((r.setting, r.precision, r.threads) for r in results.rows):
        lines += ["", *_table(results, *key)]
    if results.left_out:
        lines += [
            "",
            "## Left out",
            "",
            "| setting | models | reason |",
            "|---|---|---|",
            *_left_out(results),
        ]
    return "\n".join(lines) + "\n"


def _commands(results: Results) -> str:
    """One command, or each with its settings."""
    every = dict.fromkeys(results.commands.values())
    if len(every) == 1:
        return f"`{next(iter(every))}`"
    return "; ".join(
        f"{', '.join(name for name, one in results.commands.items() if one == command)}: `{command}`"
        for command in every
    )


def _left_out(results: Results) -> Iterator[str]:
    for key in dict.fromkeys((setting, reason) for setting, _, reason in results.left_out):
        models = [model for setting, model, reason in results.left_out if (setting, reason) == key]
        yield f"| {key[0]} | {', '.join(models)} | {key[1]} |"


def _bars(results: Results) -> Iterator[str]:
    keys = sorted({(r.precision, r.threads) for r in results.rows if r.precision == "fp32"}, reverse=True)
    lines = [line for bar in BARS for key in keys if (line := bar.line(results, *key))]
    if lines:
        yield "| LRSA / Transolver | threads | measured | bar | | operations and rates |"
        yield "|---|---:|---:|---:|---|---|"
        yield from lines


def _table(results: Results, setting: str, precision: str, threads: int) -> Iterator[str]:
    rows = [r for r in results.rows if (r.setting, r.precision, r.threads) == (setting, precision, threads)]
    reference = results.find(setting, "transolver", precision, threads)
    shape = SETTINGS.get(setting)
    yield f"## {setting}, {precision}, {threads} thread{'s' if threads > 1 else ''}"
    yield ""
    yield f"{_shape(shape)}Matrix product: {_rates(rows)}."
    yield ""
    yield (
        "| model | size | parameters | GFLOP | step, ms | / Transolver | forward, ms | inference, ms"
        " | share | peak, MB | / Transolver | attention"
        " | by kernels: step, ms | / torch | inference, ms | share | peak, MB | / Transolver |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|"
    for row in sorted(rows, key=lambda r: r.step):
        if not row.label.endswith(BY_KERNELS):
            fast = results.find(setting, row.label + BY_KERNELS, precision, threads)
            yield f"{_line(row, reference)} {_gain(row, fast, reference)} |"


def _shape(setting: Setting | None) -> str:
    if setting is None:
        return ""
    points = "points" if setting.grid is None else f"points of a grid {setting.grid[0]} × {setting.grid[1]}"
    return f"{setting.points} {points}, batch {setting.batch}. "


def _rates(rows: Sequence[Row]) -> str:
    widths = sorted({r.width for r in rows})
    best = {width: max(r.matmul for r in rows if r.width == width) for width in widths}
    return ", ".join(f"{best[width] / 1e9:.0f} GFLOP/s at width {width}" for width in widths)


def _line(row: Row, reference: Row | None) -> str:
    label = row.label
    if row.compile_seconds is not None:
        label += f" in {row.compile_seconds:.0f} s"
    theirs = reference.probe.peak if reference else 0
    cells = [
        label,
        row.size,
        f"{row.probe.parameters:,}",
        f"{row.probe.flops / 1e9:.1f}",
        f"{1e3 * row.step:.0f} +{row.spread:.0%}",
        f"{row.step / reference.step:.2f}" if reference else "-",
        f"{1e3 * min(row.times.forward):.0f}",
        f"{1e3 * min(row.times.inference):.0f}",
        f"{row.share:.2f}",
        f"{row.probe.peak / 1e6:.0f}" if row.probe.peak else "-",
        f"{row.probe.peak / theirs:.2f}" if row.probe.peak and theirs else "-",
        ", ".join(name.removeprefix("_scaled_dot_product_") for name in row.probe.kernels) or "-",
    ]
    return f"| {' | '.join(cells)} |"


def _gain(row: Row, fast: Row | None, reference: Row | None) -> str:
    """The same model by kernels."""
    if fast is None:
        return " | ".join("-" * 6)
    theirs = reference.probe.peak if reference else 0
    cells = [
        f"{1e3 * fast.step:.0f} +{fast.spread:.0%}",
        f"{fast.step / row.step:.2f}",
        f"{1e3 * min(fast.times.inference):.0f}",
        f"{fast.share:.2f}",
        f"{fast.probe.peak / 1e6:.0f}" if fast.probe.peak else "-",
        f"{fast.probe.peak / theirs:.2f}" if fast.probe.peak and theirs else "-",
    ]
    return " | ".join(cells)
