"""The paper's table of the standard benchmarks: eight baselines and LRSA, pointwise and with local mixing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lrsa.experiments.cells import null_errors
from lrsa.experiments.details import Group, seconds_of
from lrsa.experiments.experiment import Task
from lrsa.experiments.page import Plot, Section
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
DEEP = Row(
    "LRSA, eight layers",
    options={**LOCAL.options, "depth": 8, "width": 48},
    on=GRIDS - {"navier-stokes"},
)
"""What the study of the recipe prefers on grids by held-out cases at equal epochs, though not at equal time:
the filter of a layer sees one neighbour. The scales of Navier-Stokes have it anyway."""


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
    """The models that the paper's table does not have, and LRSA of another size."""
    named = {*BASELINES.values(), "lrsa"}
    return [*(_row_of(name) for name in networks() if name not in named), DEEP]


def _row_of(name: str) -> Row:
    """On the problems whose points it takes."""
    return Row(name, name, on=None if "points" in get_model(name).data else GRIDS)


def _other(work: Work, row: str, problem: str) -> Task | None:
    """Any network that there is, and LRSA of another size."""
    if row in networks():
        return Task(row, work.study.job(row, problem))
    jobs = TABLE_STANDARD.jobs(work, DEEP, Column("", problem)) if row == DEEP.label else []
    return Task(row, jobs[0]) if jobs else None


def _more(table: Table, work: Work) -> list[Section]:
    shown = [row for row in rows(work) if row.label in (POINTWISE.label, LOCAL.label, "Transolver")]
    both = _only(table, [*shown, *both_recipes(work)], work).grid(work)
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
        "Models that are not in the paper's table; backbone-X is our backbone with that mixer, lrsa-dilated"
        " is LRSA with 3 x 3 filters of four reaches, lrsa-fourier with filters in Fourier space beside the"
        " 3 x 3 one. With eight layers LRSA has local mixing, a width of 48 and the FFN of the scale; the"
        " study of the recipe, with a narrower FFN, prefers it on grids by held-out cases at equal epochs,"
        " not at equal time: the filter of one layer sees one neighbour."
    )
    everyone = _only(table, [*rows(work), *known], work)
    every = error_over_time(everyone, work, front=True, pace=table.paces(work))
    caption = "All models. Named: LRSA, and those that no other beats in both error and time."
    plots = [Plot("all", "Error over time, all models", caption, every)] if every else []
    return [recipes, Section("Other models", [text], [_only(table, known, work).grid(work)], plots)]


def _only(table: Table, some: Sequence[Row], work: Work) -> Table:
    return Table("", "", "", lambda work: some, table.columns, printed=PRINTED)


def error_over_time(
    table: Table, work: Work, front: bool = False, pace: Mapping[str, float] | None = None
) -> Figure | None:
    """Error against training time of every row, one panel for each problem; all named, or the front.

    The seconds of LRSA's step are those of the table, unless it is a part of a page that has its own.
    """
    groups = {name: group for name, group in table.groups(work).items() if len(group) > 1}
    pace = table.paces(work) if pace is None else pace
    if not groups:
        return None
    figure, axes = panels(len(groups), 4.4, 3.5)
    points = [
        _panel(ax, STANDARD.get(name, name), group, pace.get(name), work.cells)
        for ax, (name, group) in zip(axes, groups.items(), strict=True)
    ]
    figure.draw_without_rendering()  # lays it out
    for ax, placed in zip(axes, points, strict=True):
        names(ax, placed, unbeaten(placed) | {label for label in placed if _own(label)} if front else None)
    return figure


def unbeaten(points: Mapping[str, tuple[float, float]]) -> set[str]:
    """Of (seconds, error), those to which no other point is equal or better in both."""
    return {
        label
        for label, (seconds, error) in points.items()
        if not any(s <= seconds and e <= error and (s, e) != (seconds, error) for s, e in points.values())
    }


def _panel(
    ax: Axes, title: str, group: Group, pace: float | None, folder: Path
) -> dict[str, tuple[float, float]]:
    """Its points by their names."""
    timed = [(seconds, *pair) for pair in group if (seconds := seconds_of(pair[1], pace)) is not None]
    points = {label: (seconds, cell.relative_l2 or 0.0) for seconds, label, cell in timed}
    for label, place in points.items():
        ax.plot(*place, "*" if _own(label) else "o", color=colour(label), markersize=6)
    ax.margins(0.12)
    null = min(null_errors([group[0][1]], folder).values(), default=None)
    if null is not None:
        ax.axhline(null, color=INK, linewidth=0.8, linestyle=":")
    ax.set(title=title, xlabel="training, s", ylabel="test relative L2")
    logarithmic(ax, "x")
    logarithmic(ax, "y")
    ax.grid(linewidth=0.3)
    return points


def _own(label: str) -> bool:
    return label.startswith("LRSA")


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
