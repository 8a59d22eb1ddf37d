"""Verdicts: what a claim needs, compared with the care that one seed deserves."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lrsa.experiments.study import Work
from lrsa.experiments.table import Column, Table

Verdict = Literal["holds", "does not hold", "not decided"]
MARGIN = 0.03
"""Two errors of one seed that differ by less are the same."""


@dataclass(frozen=True)
class Finding:
    """What we have to say to a claim."""

    ours: str
    verdict: Verdict
    why: str = ""
    """What is missing, or what decided."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that can be wrong."""

    where: str
    words: str
    printed: str
    """The figure that the paper gives, or its tables."""
    table: str
    """The experiment that decides it."""
    judge: Callable[[Work], Finding]
    reason: str = ""
    """Why we think it does not hold, where it does not."""


def value(table: Table, work: Work, row: str, column: Column) -> float | None:
    """The mean of a place, if it is measured."""
    found = next((r for r in table.rows(work) if r.label == row), None)
    values = table.values(work, found, column) if found else []
    return statistics.mean(values) if values else None


def place(table: Table, work: Work, row: str, problem: str) -> float | None:
    """The same, where a problem has one column."""
    column = next((c for c in table.columns(work.study) if problem in (c.problem, c.key, c.label)), None)
    return None if column is None else value(table, work, row, column)


def better(a: float, b: float, largest: bool = False) -> int:
    """1 where a is clearly better than b, -1 where it is clearly worse, else 0; errors unless `largest`."""
    if largest:
        a, b = 1 - a, 1 - b  # of rank correlations what is left to 1 counts
    if a < (1 - MARGIN) * b:
        return 1
    return -1 if b < (1 - MARGIN) * a else 0


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """One that fails decides, else one that is open."""
    if "does not hold" in verdicts:
        return "does not hold"
    return "not decided" if "not decided" in verdicts or not verdicts else "holds"


def decided(holds: bool) -> Verdict:
    return "holds" if holds else "does not hold"


def missing(what: str) -> Finding:
    return Finding("", "not decided", f"not measured: {what}")


def reductions(
    values: Mapping[str, Mapping[str, float]], own: str, columns: Sequence[str]
) -> dict[str, float]:
    """Column -> 1 - ours / the best other, where both are there."""
    found = {}
    for column in columns:
        others = [row[column] for label, row in values.items() if label != own and column in row]
        if others and column in values.get(own, {}):
            found[column] = 1 - values[own][column] / min(others)
    return found


READINGS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean of the reductions": statistics.mean,
    "geometric mean of the ratios": lambda r: 1 - math.exp(statistics.mean(math.log(1 - x) for x in r)),
    "median of the reductions": statistics.median,
}
"""Of "on average"."""


def measured(table: Table, work: Work) -> dict[str, dict[str, float]]:
    """Row -> key of the column -> value, of all that is measured."""
    found: dict[str, dict[str, float]] = {}
    for row in table.rows(work):
        for column in table.columns(work.study):
            if (known := value(table, work, row.label, column)) is not None:
                found.setdefault(row.label, {})[column.key or column.problem] = known
    return found
