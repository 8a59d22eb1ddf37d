"""Zero-shot resolution: trained on one sampling of Airfoil, tested on coarser ones, axis by axis."""

from matplotlib.figure import Figure

from lrsa.experiments.plots import HUES, colour, logarithmic, panels
from lrsa.experiments.printed import RESOLUTION as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_standard import LOCAL, POINTWISE
from lrsa.problems.catalogue import get

SHAPE = (221, 51)
SAMPLINGS = {"221x51": (1, 1), "111x51": (2, 1), "221x26": (1, 2), "111x26": (2, 2)}
"""Of the paper, by the stride along each axis over that of the training."""


def rows(work: Work) -> list[Row]:
    return [Row("Transolver", "transolver"), Row("HPM", "hpm"), POINTWISE, LOCAL]


def columns(study: Study) -> list[Column]:
    own = get("airfoil").scale(study.scale).stride[study.source]
    made = []
    for key, steps in SAMPLINGS.items():
        stride = (own * steps[0], own * steps[1])
        points = "x".join(str(-(-n // step)) for n, step in zip(SHAPE, stride, strict=True))
        trained = steps == (1, 1)
        label = f"{points} (trained)" if trained else points
        made.append(Column(label, "airfoil", key, stride=None if trained else stride))
    return made


def _draw(table: Table, work: Work) -> Figure | None:
    figure, (ax,) = panels(1, 6.4, 3.4)
    shown = table.columns(work.study)
    for row in table.rows(work):
        points = [(k, v[0]) for k, c in enumerate(shown) if (v := table.values(work, row, c))]
        if points:
            hue = colour(row.label) if row is not LOCAL else HUES[2]
            hue = HUES[3] if row.label == "HPM" else hue
            ax.plot(*zip(*points, strict=True), "o-", color=hue, label=row.label)
            if theirs := table.printed.get(row.label):
                values = [theirs[c.key] for c in shown]
                ax.plot(range(len(shown)), values, "--", color=hue, alpha=0.5, linewidth=0.9)
    if not ax.lines:
        return None
    ax.set_xticks(range(len(shown)), [c.label for c in shown])
    ax.set(ylabel="test relative L2")
    logarithmic(ax, "y")
    ax.grid(axis="y", linewidth=0.5)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


RESOLUTION = Table(
    name="resolution",
    title="Other resolutions, without training",
    about="trained on one sampling of Airfoil, tested on coarser ones",
    lead="Trained on one sampling of the airfoils, tested on every second point along one axis, the other,"
    " and both. The paper: LRSA degrades least.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=_draw,
    caption="Solid: ours; dashed: printed.",
    notes=(
        "At small scales the training has a stride of its own, and the tests twice that along each axis;"
        " below them is what the paper prints for the analogous sampling.",
        "Our small scales show the model how far each node lies from its mean place over the training cases;"
        " a coarser sampling keeps some of the trained nodes, and so has their means.",
    ),
)
