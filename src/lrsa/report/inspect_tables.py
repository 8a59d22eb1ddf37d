"""An inspection in tables, for the console."""

import math

from rich.table import Table

from lrsa.analysis.cost import shares
from lrsa.analysis.inspect import Inspection
from lrsa.console import console


def print_inspection(inspection: Inspection) -> None:
    """The tables of `lrsa inspect`."""
    mixers = ", ".join(dict.fromkeys(view.mixer for view in inspection.layers))
    console.print(f"{inspection.run}: {inspection.name}, {len(inspection.case)} points, {mixers}")
    ranks = Table(title="Effective rank of the interaction K = U G Vᵀ", title_justify="left")
    for name in ("layer", "latents M", "heads", "mean", "lowest", "highest", "Jacobian"):
        ranks.add_column(name, justify="right")
    for i, view in enumerate(inspection.layers):
        ours = view.effective_rank
        found = [float(value) for value in (ours.mean(), ours.min(), ours.max())]
        found.append(math.nan if view.jacobian_rank is None else view.jacobian_rank)
        words = ("-" if math.isnan(value) else f"{value:.1f}" for value in found)
        ranks.add_row(str(i + 1), str(view.latents), str(len(ours)), *words)
    console.print(ranks)
    console.print(
        "exp of the entropy of the singular values; K at fixed routing, the Jacobian with all of it"
    )
    costs = Table(title="Cost of one forward pass of this case", title_justify="left")
    for name in ("step", "MFLOP", "share", "ms", "share of time"):
        costs.add_column(name, justify="left" if name == "step" else "right")
    work, clock = ([getattr(c, name) for c in inspection.cost] for name in ("flops", "seconds"))
    for cost, flops, seconds in zip(inspection.cost, shares(work), shares(clock), strict=True):
        costs.add_row(
            cost.step,
            f"{cost.flops / 1e6:.1f}",
            f"{flops:.0%}",
            f"{1e3 * cost.seconds:.2f}",
            f"{seconds:.0%}",
        )
    costs.add_section()
    costs.add_row("all", f"{sum(work) / 1e6:.1f}", "", f"{1e3 * sum(clock):.2f}", "")
    console.print(costs)
    for note in inspection.notes:
        console.print(note)
