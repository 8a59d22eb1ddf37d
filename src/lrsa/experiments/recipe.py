"""The study behind our recipe: one change at a time, judged by held-out training cases."""

from collections.abc import Mapping
from typing import Any

from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_irregular import by_error
from lrsa.experiments.table_standard import STANDARD

TRAIN: Mapping[str, Mapping[str, Any]] = {
    "AdamW for all weights": {"optimiser": "adamw"},
    "Muon 0.005": {"muon_lr": 0.005},
    "Muon 0.02": {"muon_lr": 0.02},
    "AdamW 1e-3 on the rest": {"max_lr": 1e-3},
    "AdamW 4e-3 on the rest": {"max_lr": 4e-3},
    "warm-up 0.3": {"warmup": 0.3},
    "clipping 0.1": {"clip": 0.1},
    "no symmetries": {"symmetry": ""},
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "raw coordinates": {"frequencies": 0},
    "4 frequencies": {"frequencies": 4},
    "8 frequencies": {"frequencies": 8},
    "2 heads": {"heads": 2},
    "8 heads": {"heads": 8},
    "rank 16": {"rank": 16},
    "rank 64": {"rank": 64},
    "depth 6, width 48": {"depth": 6, "width": 48, "ffn_hidden": 96},
    "depth 3, width 80": {"depth": 3, "width": 80, "ffn_hidden": 160},
}
JUDGES = {name: STANDARD[name] for name in ("elasticity", "darcy", "navier-stokes")} | {
    "obstacle-flow": "Obstacle flow"
}
"""One of each kind: points, a coefficient, frames, and shapes to a vector field, not of the paper."""


def rows(work: Work) -> list[Row]:
    changed = [Row(label, train=train) for label, train in TRAIN.items()]
    return [Row("ours"), *changed, *(Row(label, options=options) for label, options in OPTIONS.items())]


def columns(study: Study) -> list[Column]:
    return [Column(label, name) for name, label in JUDGES.items()]


RECIPE = Table(
    name="recipe",
    title="Our recipe, one change at a time",
    about="what makes them learn, one change at a time",
    lead="The first row is the recipe itself at the scale's sizes; all rows make the same number of steps."
    " Relative L2 error of held-out training cases.",
    rows=rows,
    columns=columns,
    held_out=0.1,
    draw=by_error,
    caption="Error of the held-out cases.",
)
