"""The study behind our recipe: one change at a time, judged by held-out training cases."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lrsa.experiments.cells import Cell, recorded
from lrsa.experiments.experiment import Task
from lrsa.experiments.job import Job
from lrsa.experiments.page import Grid, Section, Value
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.experiments.table_irregular import by_error
from lrsa.experiments.table_standard import STANDARD
from lrsa.problems.catalogue import get

TRAIN: Mapping[str, Mapping[str, Any]] = {
    "AdamW for all weights": {"optimiser": "adamw"},
    "Muon 0.005": {"muon_lr": 0.005},
    "Muon 0.02": {"muon_lr": 0.02},
    "AdamW 1e-3 on the rest": {"max_lr": 1e-3},
    "AdamW 4e-3 on the rest": {"max_lr": 4e-3},
    "warm-up 0.3": {"warmup": 0.3},
    "clipping 0.1": {"clip": 0.1},
    "batches of 2": {"batch_size": 2},
    "batches of 8": {"batch_size": 8},
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
    "depth 3, width 80": {"depth": 3, "width": 80, "ffn_hidden": 160},
    "depth 4, width 64": {"depth": 4, "width": 64, "ffn_hidden": 128},
    "depth 8, width 48": {"depth": 8, "width": 48, "ffn_hidden": 96},
}
JUDGES = {name: STANDARD[name] for name in ("elasticity", "darcy", "navier-stokes")} | {
    "obstacle-flow": "Obstacle flow"
}
"""One of each kind: points, a coefficient, frames, and shapes to a vector field, not of the paper."""
OURS = Row("ours", recipe="ours")
IN_TIME = "navier-stokes"
FRAMES: Mapping[str, Mapping[str, Any]] = {
    "no noise on the frames": {"noise": 0.0},
    "noise 0.025": {"noise": 0.025},
    "noise 0.15": {"noise": 0.15},
    "the next frame, not its change": {"change": False},
}
FLARE = "FLARE's mixer in our backbone"
TIMED = frozenset({"batches of 2", "batches of 8", "2 heads", "8 heads", "rank 16", "rank 64", FLARE})
TIMED |= {label for label in OPTIONS if label.startswith("depth")}
"""The rows whose cases take more or less time than those of the recipe."""
SHARE = 2
"""Of the scale's epochs one in so many: a hundred trainings are the longest study there is."""
HELD_OUT = 0.1
"""Of the training cases, which decide."""
CLOSE = 1.1
"""Times the best error of a problem: up to there one seed does not decide."""


@dataclass(frozen=True)
class Changes(Table):
    """The recipe and changes of it; what the recipe has on a problem anyway has no place there."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        made, own = super().jobs(work, row, column), super().jobs(work, OURS, column)
        anyway = row.label != OURS.label and bool(made) and made[0].key == own[0].key
        return [] if anyway else made


@dataclass(frozen=True)
class OneByOne(Changes):
    """Each change by one seed, then those near the best of a problem by another, and in full."""

    def tasks(self, work: Work) -> list[Task]:
        return [task for part in (super(), TWO_SEEDS, IN_FULL, EQUAL_TIME) for task in part.tasks(work)]

    def numbers(self, work: Work) -> list[dict[str, Any]]:
        return [row for part in (super(), TWO_SEEDS, IN_FULL, EQUAL_TIME) for row in part.numbers(work)]

    def close(self, work: Work, column: Column) -> set[str]:
        """The rows near the best of a problem, once all of them are tried; the best is one of them.

        None where that is the recipe itself: it stays, whatever comes second.
        """
        asked = [row for row in self.rows(work) if self.jobs(work, row, column)]
        errors = {row.label: values[0] for row in asked if (values := self.values(work, row, column))}
        if any(row.label not in errors and not self.cells(work, row, column) for row in asked):
            return set()
        best = min(errors.values(), default=math.inf)
        if best == errors.get(OURS.label):
            return set()
        return {label for label, error in errors.items() if error <= CLOSE * best}


@dataclass(frozen=True)
class TwoSeeds(Changes):
    """The changes that one seed does not tell from the best."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        return super().jobs(work, row, column) if row.label in RECIPE.close(work, column) else []


@dataclass(frozen=True)
class InFull(Changes):
    """The same changes and the recipe, for all epochs of the scale."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        close = RECIPE.close(work, _short(work.study, column))
        return super().jobs(work, row, column) if close and row.label in {OURS.label, *close} else []


@dataclass(frozen=True)
class EqualTime(Changes):
    """The sizes and batches, each for as many steps as take the time of the recipe's training."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        (own,) = super().jobs(work, OURS, column)
        if row == OURS:
            return [own]
        made = []
        for job in super().jobs(work, row, column):
            cell = recorded(job, work.cells)
            if (base := recorded(own, work.cells)) and base.steps and cell and cell.ratio and cell.steps:
                made.append(replace(job, train={**job.train, **_within(base.steps / cell.ratio, cell)}))
        return made


def _within(steps: float, cell: Cell) -> dict[str, int]:
    """So many steps in all, in epochs of equal length, none of which sees a case twice."""
    whole = (cell.steps or 0) / cell.configuration["train"]["epochs"]
    epochs = math.ceil(steps / whole)
    return {"epochs": epochs, "steps": round(steps / epochs)}


def rows(work: Work) -> list[Row]:
    """All of them by our recipe, whatever that of the other tables."""
    made = [
        OURS,
        *(Row(label, train=train) for label, train in TRAIN.items()),
        *(Row(label, options=options) for label, options in OPTIONS.items()),
        Row(FLARE, "backbone-flare"),
    ]
    if work.study.job("lrsa", IN_TIME).configuration()["train"]["windows"]:
        on = frozenset({IN_TIME})
        made += [Row(label, train=train, on=on) for label, train in FRAMES.items()]
        made.append(Row("a filter that ends at the edges", options={"periodic": False}, on=on))
    return [replace(row, recipe="ours") for row in made]


def columns(study: Study) -> list[Column]:
    return [_short(study, column) for column in _whole(study)]


def _whole(study: Study) -> list[Column]:
    return [Column(label, name) for name, label in JUDGES.items() if study.scale in get(name).scales]


def _short(study: Study, column: Column) -> Column:
    return replace(column, train={"epochs": study.epochs(column.problem, SHARE)})


def _more(table: Table, work: Work) -> Sequence[Section]:
    lead = (
        f"Mean and deviation of all that are up to {CLOSE - 1:.0%} above the best of their problem, where"
        " that is not the recipe itself."
    )
    full = (
        "The same and the recipe, two seeds, for all epochs of the scale: here what learns fast is not"
        " favoured."
    )
    timed = "What takes longer may be worth less than more steps: here all have the time of the recipe."
    parts = [(TWO_SEEDS, lead), (IN_FULL, full), (EQUAL_TIME, timed)]
    sections = [Section(part.title, [text], [_asked(part, work).grid(work)]) for part, text in parts]
    return [*(section for section in sections if section.grids[0].rows), _steps(table, work)]


def _asked(table: Table, work: Work) -> Table:
    """Its rows that have a place at all."""
    columns = table.columns(work.study)
    asked = [row for row in table.rows(work) if any(table.jobs(work, row, column) for column in columns)]
    return replace(table, rows=lambda work: asked)


def _steps(table: Table, work: Work) -> Section:
    columns = table.columns(work.study)
    changed = [row for row in table.rows(work) if row.options or row.label in TIMED]
    grid = Grid(
        ["", *(column.label for column in columns)],
        [(row.label, [_ratio(table.cells(work, row, column)) for column in columns]) for row in changed],
    )
    return Section("Time of a step", ["That of the recipe = 1."], [grid])


def _ratio(cells: Sequence[Cell]) -> Value:
    ratio = cells[0].ratio if cells else None
    return Value(kind="missing") if ratio is None else Value(f"{ratio:.2f}")


TWO_SEEDS = TwoSeeds(
    "two-seeds",
    "Two seeds, where one does not decide",
    "",
    rows=lambda work: [replace(row, seeds=2) for row in rows(work)],
    columns=columns,
    held_out=HELD_OUT,
)
IN_FULL = InFull(
    "in-full",
    "In full",
    "",
    rows=lambda work: [replace(row, seeds=2) for row in rows(work)],
    columns=_whole,
    held_out=HELD_OUT,
)
EQUAL_TIME = EqualTime(
    "equal-time",
    "At equal time",
    "",
    rows=lambda work: [row for row in rows(work) if row == OURS or row.label in TIMED],
    columns=columns,
    held_out=HELD_OUT,
)
RECIPE = OneByOne(
    name="recipe",
    title="Our recipe, one change at a time",
    about="what makes them learn, one change at a time",
    lead="The first row is the recipe itself at the scale's sizes; a place is empty where the recipe has that"
    " anyway. All rows see the cases equally often. Relative L2 error of held-out training cases.",
    rows=rows,
    columns=columns,
    held_out=HELD_OUT,
    draw=by_error,
    caption="Error of the held-out cases.",
    more=_more,
    notes=(
        "For half of the scale's epochs, rounded down, each with its whole schedule: what learns fast is"
        " favoured a little.",
    ),
)
