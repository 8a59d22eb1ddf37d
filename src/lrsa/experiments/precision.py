"""Precision of training and evaluation: fp32, bf16 and fp16, for LRSA and Transolver."""

import math

from matplotlib.figure import Figure

from lrsa.experiments.plots import bars, panels
from lrsa.experiments.printed import PRECISION as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_standard import STANDARD
from lrsa.problems.catalogue import get

PRECISIONS = ("fp32", "bf16", "fp16")
SMALL = ("elasticity", "darcy")
FEW, EPOCHS = 100, 10
"""Cases and epochs at the small scales: a CPU is slow in half precision."""
MODELS = {"LRSA": "lrsa", "Transolver": "transolver"}


def rows(work: Work) -> list[Row]:
    return [
        Row(f"{label}, {precision}", model, train={"precision": precision})
        for label, model in MODELS.items()
        for precision in PRECISIONS
    ]


def columns(study: Study) -> list[Column]:
    if study.scale == "paper":
        return [Column(label, name) for name, label in STANDARD.items()]
    return [
        Column(
            STANDARD[name],
            name,
            samples=min(FEW, get(name).scale(study.scale).samples),
            train={"epochs": min(EPOCHS, int(get(name).scale(study.scale).train.get("epochs", EPOCHS)))},
        )
        for name in SMALL
    ]


def errors(table: Table, work: Work) -> Figure | None:
    """Bars of every problem; a cross where the training diverged."""
    shown = [
        c for c in table.columns(work.study) if any(table.cells(work, row, c) for row in table.rows(work))
    ]
    if not shown:
        return None
    named = {row.label: row for row in table.rows(work)}
    figure, axes = panels(len(shown), 4.0, 2.9)
    for ax, column in zip(axes, shown, strict=True):
        series = {
            label: [(table.values(work, named[f"{label}, {p}"], column) or [math.nan])[0] for p in PRECISIONS]
            for label in MODELS
        }
        bars(ax, column.label, PRECISIONS, series)
        ax.set_ylabel("test relative L2")
        ax.legend()
    return figure


TABLE_PRECISION = Table(
    name="precision",
    title="Precision of training and evaluation",
    about="fp32, bf16 and fp16 in training and evaluation",
    lead="Does LRSA keep its accuracy in half precision, and does Transolver lose it? Training and"
    " evaluation are in the precision of the row.",
    rows=rows,
    columns=columns,
    printed=PRINTED,
    draw=errors,
    caption="A cross: diverged, or not run.",
    notes=(
        f"At the small scales the first {FEW} cases and at most {EPOCHS} epochs: on a CPU bf16 and fp16 are"
        " several times slower than fp32.",
        "A CPU decides how far the error drifts in half precision; whether a training diverges on a GPU,"
        " with its fused kernels, it does not decide.",
    ),
)
