"""A table of trainings: rows are models or changes of one, columns are problems or ways to test on one.

Every training is a cell (`cells`), so what another table has is not trained again.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from matplotlib.figure import Figure

from lrsa.evaluation.null import DEFINITIONS
from lrsa.experiments.cells import Cell, at_stride, null_errors, recorded
from lrsa.experiments.details import details, paces
from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.job import Job
from lrsa.experiments.page import MISSING, Grid, Page, Plot, Section, Value, around, number
from lrsa.experiments.printed import REMARKS, Printed
from lrsa.experiments.study import Study, Work
from lrsa.pointset import Stride
from lrsa.problems.catalogue import CATALOGUE, get
from lrsa.training.recipes import Recipe


@dataclass(frozen=True)
class Row:
    """A model, or a change of one."""

    label: str
    model: str = "lrsa"
    options: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1
    """Trainings, of the seeds 0, 1, ...; more than one are given by mean and deviation."""
    recipe: Recipe | None = None
    """Another than the study's."""
    on: frozenset[str] | None = None
    """The problems it is for; None: all. Its other places stay empty."""
    printed: str | None = None
    """The row of the paper that it stands beside, where that is called otherwise."""
    small: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Problem -> further options on it, where the configuration is not the published one."""


@dataclass(frozen=True)
class Column:
    """A problem, and what is asked of a training on it."""

    label: str
    problem: str
    key: str = ""
    """Of the printed values; by default the problem."""
    metric: str = ""
    """Of the problem's; by default the relative L2 error of the test cases."""
    stride: Stride | None = None
    """At which the test cases are, if not as trained."""
    samples: int | None = None
    """Training cases, if not those of the scale."""
    train: Mapping[str, Any] = field(default_factory=dict)
    """Over what all rows have."""
    largest: bool = False
    """Whether larger values are better."""
    seeds: int | None = None
    """Of a row with several, no more than these."""

    @property
    def value(self) -> str:
        """The name of its value among the metrics of a cell; empty: the relative L2 error."""
        return at_stride(self.stride) if self.stride is not None else self.metric


@dataclass(frozen=True)
class Table(Experiment):
    """Rows and columns, what the paper prints, and what is drawn."""

    name: str
    title: str
    about: str
    rows: Callable[[Work], Sequence[Row]]
    columns: Callable[[Study], Sequence[Column]]
    lead: str = ""
    printed: Printed = field(default_factory=dict)
    draw: Callable[["Table", Work], Figure | None] | None = None
    caption: str = ""
    held_out: float = 0.0
    """Share of the training cases that decide instead of the test cases."""
    notes: Sequence[str] = ()
    more: Callable[["Table", Work], Sequence[Section]] | None = None
    """Sections of its own."""
    also: Callable[[Work], Sequence[Row]] = lambda work: ()
    """Rows that such a section needs."""
    beside: Callable[[Work], Sequence[Row]] = lambda work: ()
    """Rows that are shown where they are recorded."""
    other: Callable[[Work, str, str], Task | None] = lambda work, row, problem: None
    """A training that may be asked for by name."""

    def jobs(self, work: Work, row: Row, column: Column) -> list[Job]:
        """Of a place; none where it stays empty."""
        if column.problem not in CATALOGUE or (row.on is not None and column.problem not in row.on):
            return []
        problem = get(column.problem)
        if work.study.scale not in problem.scales or (
            work.study.source == "official" and problem.official is None
        ):
            return []
        base = work.study.job(row.model, column.problem)
        held = {"validation": self.held_out} if self.held_out else {}
        train = {**column.train, **row.train, **held}
        small = row.small.get(column.problem, {}) if work.study.scale != "paper" else {}
        return [
            replace(
                base,
                recipe=row.recipe or base.recipe,
                options={**row.options, **small},
                train={**train, **({"seed": seed} if seed else {})},
                samples=column.samples,
            )
            for seed in range(min(row.seeds, column.seeds or row.seeds))
        ]

    def tasks(self, work: Work) -> list[Task]:
        columns, found = self.columns(work.study), []
        for problem in dict.fromkeys(column.problem for column in columns):
            for row in (*self.rows(work), *self.also(work)):
                found += self._tasks(work, row, [c for c in columns if c.problem == problem])
        return found

    def shown(self, work: Work) -> list[Task]:
        places = [(row, column) for row in self.beside(work) for column in self.columns(work.study)]
        return [
            *self.tasks(work),
            *(task for row, column in places for task in self._tasks(work, row, [column])),
        ]

    def extra(self, work: Work, row: str, problem: str) -> Task | None:
        return self.other(work, row, problem)

    def _tasks(self, work: Work, row: Row, columns: Sequence[Column]) -> list[Task]:
        """One for each training: places that differ in what is asked of it share it."""
        tasks: dict[str, Task] = {}
        for column in columns:
            for job in self.jobs(work, row, column):
                task = tasks.setdefault(job.key, Task(row.label, job))
                strides = task.strides if column.stride is None else (*task.strides, column.stride)
                tasks[job.key] = replace(task, strides=strides, metrics=task.metrics or bool(column.metric))
        return list(tasks.values())

    def cells(self, work: Work, row: Row, column: Column) -> list[Cell]:
        """What is recorded of a place."""
        found = (recorded(job, work.cells) for job in self.jobs(work, row, column))
        return [cell for cell in found if cell is not None]

    def value(self, cell: Cell, column: Column) -> float | None:
        """What a place shows of a cell."""
        if column.value:
            return (cell.metrics or {}).get(column.value)
        return cell.validation if self.held_out else cell.relative_l2

    def values(self, work: Work, row: Row, column: Column) -> list[float]:
        """Of all seeds that are recorded."""
        found = (self.value(cell, column) for cell in self.cells(work, row, column))
        return [value for value in found if value is not None]

    def page(self, work: Work) -> Page:
        study, every = work.study, self._recorded(work)
        plot = self.draw(self, work) if self.draw and every else None
        plots = [Plot("", self.title, self.caption, plot)] if plot is not None else []
        main = Section(plots=plots, grids=[self.grid(work)], notes=self._notes(work))
        costs = None if self.held_out else details(self.groups(work), self.paces(work))
        sections = [main, *(self.more(self, work) if self.more else ()), costs, self._versions(every)]
        return Page(
            self.name,
            self.title,
            self.lead,
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data · recipe: {study.settled}",
            [section for section in sections if section is not None],
            {"rows": self.numbers(work)},
        )

    def groups(self, work: Work) -> dict[str, list[tuple[str, Cell]]]:
        """Problem -> the measured rows, each training once."""
        found: dict[str, dict[str, tuple[str, Cell]]] = {}
        for task in self.tasks(work):
            cell = recorded(task.job, work.cells)
            if cell is not None and cell.relative_l2 is not None:
                found.setdefault(task.problem, {}).setdefault(task.job.key, (task.row, cell))
        return {problem: list(group.values()) for problem, group in found.items()}

    def paces(self, work: Work) -> dict[str, float]:
        """Problem -> seconds of LRSA's step, for all times of this page."""
        every = {problem: list(group) for problem, group in self.groups(work).items()}
        for column in self.columns(work.study):
            for row in self.beside(work):
                every.setdefault(column.problem, []).extend(
                    (row.label, cell) for cell in self.cells(work, row, column)
                )
        return paces(every)

    def grid(self, work: Work) -> Grid:
        """All rows beside what the paper prints, the best of each column marked, the null baselines below."""
        columns, rows = self.columns(work.study), self.rows(work)
        means = {
            (row.label, i): statistics.mean(values)
            for row in rows
            for i, column in enumerate(columns)
            if (values := self.values(work, row, column))
        }
        order = {
            i: sorted((v for (_, j), v in means.items() if j == i), reverse=column.largest)
            for i, column in enumerate(columns)
        }
        made = []
        for row in rows:
            places = []
            for i, column in enumerate(columns):
                rank = order[i].index(means[row.label, i]) if (row.label, i) in means else -1
                kind = {0: "best", 1: "second"}.get(rank, "") if len(order[i]) > 2 else ""
                places.append(self._place(work, row, column, kind))
            made.append((row.label, places))
        return Grid(["", *(c.label for c in columns)], [*made, *self._nulls(work)])

    def _place(self, work: Work, row: Row, column: Column, kind: str) -> Value:
        key = column.key or column.problem
        printed = number(self.printed.get(row.printed or row.label, {}).get(key))
        cells, values = self.cells(work, row, column), self.values(work, row, column)
        if values:
            mean = statistics.mean(values)
            text = around(mean, statistics.stdev(values)) if len(values) > 1 else number(mean)
            if len(values) < (wanted := len(self.jobs(work, row, column))):
                text += f" ({len(values)} of {wanted})"
            return Value(text, printed, kind, cells[0].command)
        if reason := next((cell.reason for cell in cells if cell.reason), ""):
            return Value("diverged" if "became" in reason else "refused", printed, "missing", reason)
        if column.problem not in CATALOGUE:
            return Value("no data" if printed else "", printed, "missing", "not in the catalogue")
        asked = bool(self.jobs(work, row, column))
        return Value(MISSING if asked else "", printed if asked else "", "missing")

    def _nulls(self, work: Work) -> list[tuple[str, list[Value]]]:
        """What knows nothing, by column; the error at other strides and metrics have none."""
        found: dict[str, list[Value]] = {name: [] for name in DEFINITIONS}
        for column in self.columns(work.study):
            nulls: dict[str, float] = {}
            if not column.value and not self.held_out:
                cells = (cell for row in self.rows(work) for cell in self.cells(work, row, column))
                nulls = null_errors(cells, work.cells)
            for name, places in found.items():
                known = nulls.get(name)
                places.append(Value(number(known), kind="missing" if known is None else ""))
        return [(name, places) for name, places in found.items() if any(place.text for place in places)]

    def _notes(self, work: Work) -> list[str]:
        columns = [c for c in self.columns(work.study) if c.problem in CATALOGUE]
        sizes = [
            f"{name}: {get(name).scale(work.study.scale).about}."
            for name in dict.fromkeys(c.problem for c in columns if c.samples is None)
            if work.study.scale in get(name).scales
        ]
        missing = sorted({c.problem for c in self.columns(work.study) if c.problem not in CATALOGUE})
        absent = [f"Not in the catalogue yet: {', '.join(missing)}."] if missing else []
        reasons = {
            f"{row.label} on {column.problem}: {cell.reason}"
            for row in self.rows(work)
            for column in columns
            for cell in self.cells(work, row, column)
            if cell.reason
        }
        remarks = REMARKS.get(self.name, ()) if self.printed else ()
        return [*self.notes, *sizes, *absent, *sorted(reasons), *(f"The paper: {r}" for r in remarks)]

    def _recorded(self, work: Work) -> list[Cell]:
        return [c for task in self.tasks(work) if (c := recorded(task.job, work.cells)) is not None]

    def numbers(self, work: Work) -> list[dict[str, Any]]:
        rows = []
        for row in (*self.rows(work), *self.also(work), *self.beside(work)):
            for column in self.columns(work.study):
                for cell in self.cells(work, row, column):
                    kept = {k: v for k, v in asdict(cell).items() if k != "configuration"}
                    printed = self.printed.get(row.printed or row.label, {}).get(column.key or column.problem)
                    value = self.value(cell, column)
                    place = {"row": row.label, "column": column.label, "value": value, "printed": printed}
                    rows.append({**place, **kept})
        return rows

    def _versions(self, cells: Sequence[Cell]) -> Section | None:
        if not cells:
            return None
        versions = sorted({f"{name} {version}" for cell in cells for name, version in cell.versions.items()})
        threads = sorted({cell.threads for cell in cells})
        many = " or ".join("one thread" if n == 1 else f"{n} threads" for n in threads)
        recorded = (
            f"Every training ran on {many} and is recorded with its configuration, its command and the"
            " versions, shared by all tables."
        )
        below = " Below a number: what the paper prints, which is of the official files at paper scale."
        return Section(
            notes=[recorded + (below if self.printed else ""), f"Versions: {', '.join(versions)}."]
        )
