"""LRSA and its rivals at three learning rates: does one lose only because the rate is not its own?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lrsa.experiments.cells import Job
from lrsa.experiments.experiment import Task
from lrsa.experiments.page import Section
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


@dataclass(frozen=True)
class Trials(Table):
    """Each model at each rate for a while, then in full at the best of them."""

    def tasks(self, work: Work) -> list[Task]:
        return [*super().tasks(work), *IN_FULL.tasks(work)]

    def numbers(self, work: Work) -> list[dict[str, Any]]:
        return [*super().numbers(work), *IN_FULL.numbers(work)]

    def best(self, work: Work, label: str, problem: str) -> float | None:
        """The factor of the smallest error of the held-out cases, once all are tried."""
        (column,) = (c for c in self.columns(work.study) if c.problem == problem)
        errors = {
            factor: values[0]
            for factor in FACTORS
            if (values := self.values(work, _trial(work.study, label, factor), column))
        }
        return min(errors, key=errors.__getitem__) if len(errors) == len(FACTORS) else None


@dataclass(frozen=True)
class InFull(Table):
    """The training of the tables, but at the rates that the trials found best."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        factor = LEARNING_RATES.best(work, row.label, column.problem)
        if factor is None:
            return []
        return [
            replace(job, train={**job.train, **_rates(work.study, factor)})
            for job in super().jobs(work, row, column)
        ]


def _rates(study: Study, factor: float) -> dict[str, float]:
    rates = ("max_lr", "muon_lr")
    return {name: factor * value for name, value in settings_of(study.settled).items() if name in rates}


def _trial(study: Study, label: str, factor: float) -> Row:
    return Row(f"{label} x {factor:g}", MODELS[label], train=_rates(study, factor))


def rows(work: Work) -> list[Row]:
    return [_trial(work.study, label, factor) for label in MODELS for factor in FACTORS]


def columns(study: Study) -> list[Column]:
    made = []
    for name in PROBLEMS:
        epochs = get(name).scale(study.scale).train["epochs"]
        made.append(Column(STANDARD[name], name, train={"epochs": max(1, epochs // SHARE)}))
    return made


def _in_full(table: Table, work: Work) -> Sequence[Section]:
    said = [
        f"{label} on {STANDARD[problem]}: {factor:g} times the rates."
        for label in MODELS
        for problem in PROBLEMS
        if (factor := LEARNING_RATES.best(work, label, problem)) is not None
    ]
    if not said:
        return []
    lead = "All epochs of the scale at the rates whose trial had the smallest error; here the test cases."
    return [Section("In full, at the best of the three", [lead], [IN_FULL.grid(work)], notes=said)]


IN_FULL = InFull(
    "in-full",
    "In full, at the best of the three",
    "",
    rows=lambda work: [Row(label, model) for label, model in MODELS.items()],
    columns=lambda study: [Column(STANDARD[name], name) for name in PROBLEMS],
)
LEARNING_RATES = Trials(
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
    more=_in_full,
    notes=("The tables train every model at 1 times the rates.",),
)
