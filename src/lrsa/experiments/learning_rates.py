"""LRSA and its rivals at three learning rates: does one lose only because the rate is not its own?"""

from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_irregular import by_error
from lrsa.experiments.table_standard import STANDARD
from lrsa.problems.catalogue import get
from lrsa.training.recipes import settings_of

FACTORS = (0.3, 1.0, 2.0)
"""Of all learning rates of the recipe."""
MODELS = {
    "LRSA": "lrsa",
    "Transolver": "transolver",
    "F-FNO": "f-fno",
    "LinearNO": "linear-no",
    "LSM": "lsm",
    "HPM": "hpm",
}
"""LRSA and the five that are nearest to it."""
PROBLEMS = ("pipe", "darcy")
SHARE = 2
"""Of the scale's epochs, one in so many."""


def rows(work: Work) -> list[Row]:
    rates = {k: v for k, v in settings_of(work.study.settled).items() if k in ("max_lr", "muon_lr")}
    return [
        Row(f"{label} x {factor:g}", model, train={k: factor * v for k, v in rates.items()})
        for label, model in MODELS.items()
        for factor in FACTORS
    ]


def columns(study: Study) -> list[Column]:
    made = []
    for name in PROBLEMS:
        epochs = get(name).scale(study.scale).train["epochs"]
        made.append(Column(STANDARD[name], name, train={"epochs": max(1, epochs // SHARE)}))
    return made


LEARNING_RATES = Table(
    name="learning-rates",
    title="Three learning rates each",
    about="LRSA and its nearest rivals at three learning rates",
    lead="Does a rival lose because the learning rates of the recipe are LRSA's? Each of them at 0.3, 1 and 2"
    " times all rates of the recipe, for half the epochs. Relative L2 error of held-out training cases.",
    rows=rows,
    columns=columns,
    held_out=0.1,
    draw=by_error,
    caption="Error of the held-out cases.",
    notes=("The tables train every model at 1 times the rates.",),
)
