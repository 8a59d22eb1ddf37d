"""Limited training data: a fifth, three fifths and all cases of Darcy and Navier-Stokes."""

from matplotlib.figure import Figure

from lrsa.experiments.plots import curves, panels
from lrsa.experiments.printed import LIMITED as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.problems.catalogue import get

PROBLEMS = {"darcy": "Darcy", "navier-stokes": "Navier-Stokes"}
SHARES = {200: 0.2, 600: 0.6, 1000: 1.0}
"""The paper's training cases, as shares of all."""


def rows(work: Work) -> list[Row]:
    return [Row("Transolver", "transolver"), Row("LNO", "lno"), Row("HPM", "hpm"), Row("LRSA")]


def columns(study: Study) -> list[Column]:
    made = []
    for name, label in PROBLEMS.items():
        every = get(name).scale(study.scale).samples
        for printed, share in SHARES.items():
            count = max(1, round(share * every))
            made.append(Column(f"{label}, {count}", name, f"{name} {printed}", samples=count))
    return made


def _draw(table: Table, work: Work) -> Figure | None:
    shown = table.columns(work.study)
    figure, axes = panels(len(PROBLEMS), 4.6, 3.4)
    for ax, (name, label) in zip(axes, PROBLEMS.items(), strict=True):
        here = [c for c in shown if c.problem == name]
        series = {
            row.label: [(float(c.samples or 0), v[0]) for c in here if (v := table.values(work, row, c))]
            for row in table.rows(work)
        }
        if not any(series.values()):
            ax.set_visible(False)
            continue
        curves(ax, label, series, "training cases")
    shown_axes = [ax for ax in axes if ax.get_visible()]
    if not shown_axes:
        return None
    shown_axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


LIMITED_DATA = Table(
    name="limited-data",
    title="Limited training data",
    about="a fifth, three fifths and all training cases of Darcy and Navier-Stokes",
    lead="How does the error fall with the number of training cases? The paper: HPM is ahead on"
    " Navier-Stokes with 200 cases, LRSA everywhere else.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=_draw,
    caption="Error over the number of training cases, with the same number of epochs.",
    notes=("The shares are the paper's: 200, 600 and 1000 of 1000 cases.",),
)
