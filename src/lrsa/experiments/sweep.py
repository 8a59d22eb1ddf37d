"""A sweep: one change at a time on several problems, as a page of errors and step times.

Every training is a cell (`cells`), so what another table has is not trained again.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from lrsa.console import console
from lrsa.errors import LrsaError, nearest
from lrsa.experiments.cells import Cell, Job, finish, recorded
from lrsa.experiments.study import CELLS, Study
from lrsa.files import atomic
from lrsa.problems.catalogue import get
from lrsa.training.configure import data_for_scale


@dataclass(frozen=True)
class Variant:
    """What a row changes."""

    model: str = "lrsa"
    options: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1
    """Trainings, of the seeds 0, 1, ...; more than one are given by mean and deviation."""


@dataclass(frozen=True)
class Sweep:
    """The rows and columns of a page, and what it asks."""

    name: str
    title: str
    about: str
    problems: tuple[str, ...]
    variants: Mapping[str, Variant]
    held_out: float = 0.0
    """Share of the training cases that decide instead of the test cases."""

    def job(self, study: Study, label: str, problem: str, seed: int) -> Job:
        variant = self.variants[label]
        held = {"validation": self.held_out} if self.held_out else {}
        seeded = {"seed": seed} if seed else {}
        return replace(
            study.job(variant.model, problem),
            options=variant.options,
            train={**variant.train, **held, **seeded},
        )

    def chosen(self, only: str) -> list[tuple[str, str]]:
        """The pairs (row, problem) of LABEL:PROBLEM, either of them empty for all."""
        every = [(label, problem) for problem in self.problems for label in self.variants]
        if not only:
            return every
        pairs: list[tuple[str, str]] = []
        for word in only.split(","):
            label, _, problem = word.rpartition(":")
            for given, known in ((label, self.variants), (problem, self.problems)):
                if given and given not in known:
                    raise LrsaError(f'{self.name} has no "{given}".{nearest(given, known)}')
            pairs += [p for p in every if label in ("", p[0]) and problem in ("", p[1])]
        return list(dict.fromkeys(pairs))

    def run(self, out: Path, study: Study, only: str, runs: Path, threads: int) -> Path:
        """Train what is not recorded yet, and write the page."""
        torch.set_num_threads(threads)
        pairs = self.chosen(only)
        for problem in dict.fromkeys(problem for _, problem in pairs):
            data_for_scale(get(problem), get(problem).scale(study.scale), study.source)
        for number, (label, problem) in enumerate(pairs, 1):
            console.print(f"{number}/{len(pairs)}: {label} on {problem}")
            for seed in range(self.variants[label].seeds):
                if finish(self.job(study, label, problem, seed), out / CELLS, runs, threads) is None:
                    console.print("another process is at it")
            self.write(out, study)
        return self.write(out, study)

    def cells(self, out: Path, study: Study, label: str, problem: str) -> list[Cell]:
        """What is recorded of a row on a problem."""
        jobs = (self.job(study, label, problem, seed) for seed in range(self.variants[label].seeds))
        return [cell for job in jobs if (cell := recorded(job, out / CELLS)) is not None]

    def write(self, out: Path, study: Study) -> Path:
        """The page and its numbers, of what is recorded."""
        table = {
            label: {problem: self.cells(out, study, label, problem) for problem in self.problems}
            for label in self.variants
        }
        stem = study.named(self.name)
        with atomic(out / f"{stem}.json") as temporary:
            rows = {
                label: {p: [_numbers(cell) for cell in cells] for p, cells in row.items()}
                for label, row in table.items()
            }
            temporary.write_text(json.dumps({"command": study.command(self.name), "rows": rows}, indent=1))
        with atomic(out / f"{stem}.md") as temporary:
            temporary.write_text("\n".join(self._page(study, table)))
        return out / f"{stem}.md"

    def _page(self, study: Study, table: Mapping[str, Mapping[str, Sequence[Cell]]]) -> list[str]:
        shown = [p for p in self.problems if any(row[p] for row in table.values())]
        decided = "held-out training cases" if self.held_out else "test cases"
        cells = [cell for row in table.values() for group in row.values() for cell in group]
        versions = sorted({f"{k} {v}" for cell in cells for k, v in cell.versions.items()})
        return [
            f"# {self.title}, {study.scale} scale, *{study.source}* data",
            "",
            f"Made by `{study.command(self.name)}`. {self.about} Relative L2 error of the {decided}; in"
            " brackets the time of a training step, LRSA's = 1, the two taking turns. Recipe:"
            f" *{study.settled}*, but for what a row changes.",
            "",
            f"| | {' | '.join(shown)} |",
            "|---" * (1 + len(shown)) + "|",
            *(
                f"| {label} | {' | '.join(self._cell(row[p]) for p in shown)} |"
                for label, row in table.items()
            ),
            "",
            *(f"- {p}: {get(p).scale(study.scale).about}" for p in shown),
            "",
            f"Versions: {', '.join(versions)}.",
            "",
        ]

    def _cell(self, cells: Sequence[Cell]) -> str:
        errors = [self._error(cell) for cell in cells if self._error(cell) is not None]
        values = [error for error in errors if error is not None]
        if not values:
            return next((cell.reason for cell in cells if cell.reason), "not run")
        ratio = cells[0].ratio
        step = "" if ratio is None else f" ({ratio:.2f})"
        if len(values) == 1:
            return f"{values[0]:.4f}{step}"
        return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f} of {len(values)}{step}"

    def _error(self, cell: Cell) -> float | None:
        return cell.validation if self.held_out else cell.relative_l2


def _numbers(cell: Cell) -> dict[str, Any]:
    kept = ("command", "parameters", "relative_l2", "validation", "steps", "step", "reason")
    return {name: value for name, value in asdict(cell).items() if name in kept}
