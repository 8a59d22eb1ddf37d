"""The paper's ablations: what the latent attention and the two-sided factors are worth, and the rank."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.page import Page, Plot, Section
from lrsa.experiments.plots import bars, curves
from lrsa.experiments.printed import ABLATION as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_standard import STANDARD

RANKS = (8, 16, 32, 64, 128, 256)
SMALL = ("elasticity", "darcy", "navier-stokes")
"""The problems at the small scales; at the scale of the paper, all six."""
COMPONENTS = ("LRSA", "without latent attention", "symmetric factors")


def rows(work: Work) -> list[Row]:
    return [
        Row("LRSA"),
        Row("without latent attention", options={"latent_attention": False}),
        Row("symmetric factors", options={"symmetric": True}),
        *(Row(f"LRSA, rank {rank}", options={"rank": rank}) for rank in RANKS),
        *(Row(f"Transolver, rank {rank}", "backbone-transolver", {"rank": rank}) for rank in RANKS),
    ]


def columns(study: Study) -> list[Column]:
    return [Column(STANDARD[name], name) for name in (STANDARD if study.scale == "paper" else SMALL)]


def crossing(table: Table, work: Work) -> Figure | None:
    """The error over the rank, one panel for each problem; below, the components."""
    shown = [
        c for c in table.columns(work.study) if _ranks(table, work, c) or len(_components(table, work, c)) > 1
    ]
    if not shown:
        return None
    figure = Figure(figsize=(4.2 * len(shown), 6.4), layout="constrained")
    axes = figure.subplots(2, len(shown), squeeze=False)
    for i, column in enumerate(shown):
        _rank_panel(axes[0, i], table, work, column)
        _component_panel(axes[1, i], table, work, column)
    return figure


def _ranks(table: Table, work: Work, column: Column) -> dict[str, list[tuple[float, float]]]:
    """(rank, error) of each model; nothing where all have one rank, which tells nothing of the others."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in table.rows(work):
        model, _, rank = row.label.partition(", rank ")
        if rank and (values := table.values(work, row, column)):
            found.setdefault(model, []).append((float(rank), values[0]))
    return found if any(len(curve) > 1 for curve in found.values()) else {}


def _components(table: Table, work: Work, column: Column) -> dict[str, float]:
    named = {row.label: row for row in table.rows(work)}
    found = {label: table.values(work, named[label], column) for label in COMPONENTS}
    return {label: values[0] for label, values in found.items() if values}


def _rank_panel(ax: Axes, table: Table, work: Work, column: Column) -> None:
    series = _ranks(table, work, column)
    if not series:
        ax.set_visible(False)
        return
    curves(ax, column.label, series, "rank M")
    ax.legend()


def _component_panel(ax: Axes, table: Table, work: Work, column: Column) -> None:
    found = _components(table, work, column)
    if len(found) < 2:
        ax.set_visible(False)
        return
    names = [label.replace("without latent attention", "no latent\nattention") for label in found]
    bars(
        ax, column.label, [n.replace(" factors", "\nfactors") for n in names], {"LRSA": list(found.values())}
    )
    ax.set_ylabel("test relative L2")


ABLATION = Table(
    name="ablation",
    title="Ablations: latent attention, symmetry of the factors, rank",
    about="no latent attention, symmetric factors, rank 8 to 256",
    lead="What are the latent attention and the two-sided factors worth, and how many latents does it take?"
    " The first row is LRSA as the scale has it; Transolver is its mixer in our backbone, its rank the"
    " number of slices.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=crossing,
    caption="Above: error over the rank. Below: the components.",
)


class FigureAblation(Experiment):
    """The paper's figure of it alone."""

    name = "figure-ablation"
    about = "the paper's figure of rank and components"

    def tasks(self, work: Work) -> list[Task]:
        return ABLATION.tasks(work)

    def page(self, work: Work) -> Page:
        study, figure = work.study, crossing(ABLATION, work)
        text = [] if figure else ["Nothing is recorded yet."]
        plots = (
            [Plot("", "error over the rank, and without components", ABLATION.caption, figure)]
            if figure
            else []
        )
        return Page(
            self.name,
            "Figure: rank and components",
            "Top: sensitivity to the number of latents. Bottom: LRSA, without its latent attention, and with"
            " symmetric factors. The numbers are in the table of ablations.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data",
            [Section(text=text, plots=plots)],
        )
