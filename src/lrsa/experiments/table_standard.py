"""The paper's table of the standard benchmarks: eight baselines and LRSA, pointwise and with local mixing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lrsa.experiments.cells import null_errors
from lrsa.experiments.details import Group, seconds_of
from lrsa.experiments.experiment import Task
from lrsa.experiments.page import Grid, Section
from lrsa.experiments.plots import colour, logarithmic, names, panels
from lrsa.experiments.printed import STANDARD as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.models.registry import get as get_model
from lrsa.models.registry import networks
from lrsa.report.figures import INK

STANDARD = {
    "elasticity": "Elasticity",
    "plasticity": "Plasticity",
    "airfoil": "Airfoil",
    "pipe": "Pipe",
    "navier-stokes": "Navier-Stokes",
    "darcy": "Darcy",
}
GRIDS = frozenset(STANDARD) - {"elasticity"}
"""Those whose points are a grid of two axes, which local mixing needs."""
BASELINES = {
    "FNO": "fno",
    "F-FNO": "f-fno",
    "LSM": "lsm",
    "HPM": "hpm",
    "LNO": "lno",
    "Transolver": "transolver",
    "Transolver++": "transolver-plus",
    "LinearNO": "linear-no",
}
"""The paper's, by the name of the model that stands for each."""
POINTWISE = Row("LRSA", options={"local": "pointwise"}, small={"navier-stokes": {"frequencies": 4}})
"""Without a filter, only sinusoids of the coordinates tell how far apart two points of a frame are."""
LOCAL = Row("LRSA, local mixing", options={"local": "depthwise"}, on=GRIDS)


def rows(work: Work) -> list[Row]:
    """A baseline is run where the paper has a number for it."""
    published = [Row(label, model, on=frozenset(PRINTED[label])) for label, model in BASELINES.items()]
    return [*published, POINTWISE, LOCAL]


def columns(study: Study) -> list[Column]:
    return [Column(label, name) for name, label in STANDARD.items()]


def both_recipes(work: Work) -> list[Row]:
    """LRSA and Transolver, as this table does not train them."""
    other = "paper" if work.study.settled == "ours" else "ours"
    named = "the paper's recipe" if other == "paper" else "our recipe"
    return [
        replace(POINTWISE, label=f"LRSA, {named}", recipe=other),
        replace(LOCAL, label=f"LRSA, local mixing, {named}", recipe=other),
        Row("Transolver, " + named, "transolver", recipe=other),
    ]


def others(work: Work) -> list[Row]:
    """The models that the paper's table does not have."""
    named = {*BASELINES.values(), "lrsa"}
    return [_row_of(name) for name in networks() if name not in named]


def _row_of(name: str) -> Row:
    """On the problems whose points it takes."""
    return Row(name, name, on=None if "points" in get_model(name).data else GRIDS)


def _other(work: Work, row: str, problem: str) -> Task | None:
    """Any network that there is."""
    return Task(row, work.study.job(row, problem)) if row in networks() else None


def _more(table: Table, work: Work) -> list[Section]:
    shown = [row for row in rows(work) if row.label in (POINTWISE.label, LOCAL.label, "Transolver")]
    both = _only(table, [*shown, *both_recipes(work)], work)
    recipes = Section(
        "Both recipes",
        [
            "The paper trains with AdamW under OneCycle; ours has Muon on the hidden matrices. A table has"
            " one recipe for all its rows; LRSA and Transolver are shown with both."
        ],
        [both],
    )
    known = [row for row in others(work) if any(table.cells(work, row, c) for c in table.columns(work.study))]
    if not known:
        return [recipes]
    text = (
        "Models that are not in the paper's table; backbone-X is our backbone with that mixer, lrsa-fourier"
        " is LRSA with filters in Fourier space beside the 3 x 3 one."
    )
    return [recipes, Section("Other models", [text], [_only(table, known, work)])]


def _only(table: Table, some: Sequence[Row], work: Work) -> Grid:
    return Table("", "", "", lambda work: some, table.columns, printed=PRINTED).grid(work)


def error_over_time(table: Table, work: Work) -> Figure | None:
    """Error against training time of every row, one panel for each problem."""
    groups = {name: group for name, group in table.groups(work).items() if len(group) > 1}
    if not groups:
        return None
    figure, axes = panels(len(groups), 4.4, 3.5)
    points = [
        _panel(ax, STANDARD.get(name, name), group, work.cells)
        for ax, (name, group) in zip(axes, groups.items(), strict=True)
    ]
    figure.draw_without_rendering()  # lays it out
    for ax, named in zip(axes, points, strict=True):
        names(ax, named)
    return figure


def _panel(ax: Axes, title: str, group: Group, folder: Path) -> dict[str, tuple[float, float]]:
    """Its points by their names."""
    timed = [(seconds, *pair) for pair in group if (seconds := seconds_of(pair[1], group)) is not None]
    points = {label: (seconds, cell.relative_l2 or 0.0) for seconds, label, cell in timed}
    for label, place in points.items():
        ax.plot(*place, "*" if label.startswith("LRSA") else "o", color=colour(label), markersize=6)
    ax.margins(0.12)
    null = min(null_errors([group[0][1]], folder).values(), default=None)
    if null is not None:
        ax.axhline(null, color=INK, linewidth=0.8, linestyle=":")
    ax.set(title=title, xlabel="training, s", ylabel="test relative L2")
    logarithmic(ax, "x")
    logarithmic(ax, "y")
    ax.grid(linewidth=0.3)
    return points


TABLE_STANDARD = Table(
    name="table-standard",
    title="Standard benchmarks",
    about="the paper's table of the standard benchmarks, eight baselines and LRSA",
    lead="Does LRSA have the smallest error on all six standard benchmarks? Test relative L2; below each"
    " number the one that the paper prints.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=error_over_time,
    caption="Error against training time; dotted: the best null baseline. Stars are LRSA.",
    more=_more,
    also=both_recipes,
    beside=others,
    other=_other,
    notes=(
        "LRSA is the paper's block, which mixes no neighbours; LRSA with local mixing adds a depthwise 3 x 3"
        " convolution where the points are a grid, which the paper's does not have. On Navier-Stokes the"
        " former is shown four sinusoids of each coordinate at the small scales; the latter, whose filter"
        " knows the neighbours, learns more from raw ones.",
        "Cases, loss, optimiser, schedule and epochs are the same for every row. The sizes (width, depth,"
        " heads, rank) are those of the scale, unless a model was published smaller; --matched makes the"
        " parameters equal by the width.",
        "On Plasticity F-FNO and LSM have time as a third axis, as published: a step sees all frames of two"
        " cases, where it sees single frames in the other rows.",
        "All rows have the learning rates of the recipe; what others would give LRSA and its rivals is on the"
        " page learning-rates.",
        "One seed: differences of a few percent mean nothing.",
    ),
)
