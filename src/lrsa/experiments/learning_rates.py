"""LRSA and its rivals at three learning rates: does one lose only because the rate is not its own?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lrsa.experiments.experiment import Task
from lrsa.experiments.job import Job
from lrsa.experiments.page import Section
from lrsa.experiments.printed import STANDARD as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_irregular import by_error
from lrsa.experiments.table_standard import STANDARD

FACTORS = (0.3, 1.0, 2.0)
"""Of all learning rates of the recipe."""
MODELS = {
    "LRSA": "lrsa",
    "Transolver": "transolver",
    "FNO": "fno",
    "F-FNO": "f-fno",
    "LinearNO": "linear-no",
    "HPM": "hpm",
}
"""LRSA and the five that are nearest to it, each where the paper has it."""
TRIALS = {f"{label} x {factor:g}": (label, factor) for label in MODELS for factor in FACTORS}
PROBLEMS = ("elasticity", "plasticity", "airfoil", "pipe", "navier-stokes", "darcy")
SHARE = 2
"""Of the scale's epochs, one in so many."""


@dataclass(frozen=True)
class Trials(Table):
    """Each model at each rate for a while, then in full at the best of them."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        return [_at(job, TRIALS[row.label][1]) for job in super().jobs(work, row, column)]

    def tasks(self, work: Work) -> list[Task]:
        return [*super().tasks(work), *IN_FULL.tasks(work)]

    def numbers(self, work: Work) -> list[dict[str, Any]]:
        return [*super().numbers(work), *IN_FULL.numbers(work)]

    def best(self, work: Work, label: str, problem: str) -> float | None:
        """The factor of the smallest error of the held-out cases, once all are tried."""
        (column,) = (c for c in self.columns(work.study) if c.problem == problem)
        errors = {
            TRIALS[row.label][1]: values[0]
            for row in self.rows(work)
            if TRIALS[row.label][0] == label and (values := self.values(work, row, column))
        }
        return min(errors, key=errors.__getitem__) if len(errors) == len(FACTORS) else None


@dataclass(frozen=True)
class InFull(Table):
    """The training of the tables, but at the rates that the trials found best."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        factor = LEARNING_RATES.best(work, row.label, column.problem)
        return [] if factor is None else [_at(job, factor) for job in super().jobs(work, row, column)]


def _at(job: Job, factor: float) -> Job:
    """The training with all its learning rates times a factor."""
    asked = job.configuration()["train"]
    names = ("max_lr", "muon_lr") if asked["optimiser"] == "muon" else ("max_lr",)
    return replace(job, train={**job.train, **{name: factor * asked[name] for name in names}})


def columns(study: Study) -> list[Column]:
    return [Column(STANDARD[name], name, train={"epochs": study.epochs(name, SHARE)}) for name in PROBLEMS]


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
    rows=lambda work: [Row(label, model, on=frozenset(PRINTED[label])) for label, model in MODELS.items()],
    columns=lambda study: [Column(STANDARD[name], name) for name in PROBLEMS],
)
LEARNING_RATES = Trials(
    name="learning-rates",
    title="Three learning rates each",
    about="LRSA and its nearest rivals at three learning rates",
    lead="Does a rival lose because the learning rates of the recipe are LRSA's? Each of them at 0.3, 1 and 2"
    " times all rates of the recipe, for half the epochs. Relative L2 error of held-out training cases.",
    rows=lambda work: [
        Row(trial, MODELS[label], on=frozenset(PRINTED[label])) for trial, (label, _) in TRIALS.items()
    ],
    columns=columns,
    held_out=0.1,
    draw=by_error,
    caption="Error of the held-out cases.",
    more=_in_full,
    notes=("The tables train every model at 1 times the rates.",),
)
