"""How long the trainings that are left will take: by what is recorded, else by a measured step."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lrsa.console import console
from lrsa.errors import LrsaError
from lrsa.experiments.cells import Cell
from lrsa.experiments.job import Job
from lrsa.training.budget import TIMED, WARM, Pace
from lrsa.training.configure import configured
from lrsa.training.fit import trainer_of

SLOWER = {"fp32": 1.0, "bf16": 3.0, "fp16": 17.0}
"""A step in that precision on a CPU, measured on Elasticity at the demo scale."""
UNKNOWN = 1.5
"""A step of a model that was never timed, LRSA's = 1."""


def estimate(jobs: Sequence[Job], cells: Path, runs: Path) -> float:
    """Seconds of all these trainings on this machine, without evaluating them."""
    known = list(_read(cells))
    paces: dict[tuple[str, str], float] = {}
    total = 0.0
    for job in jobs:
        made, where = job.configuration(), (job.problem, job.scale)
        if where not in paces:
            recorded = _recorded_pace(known, made)
            paces[where] = _measured_pace(job, runs) if recorded is None else recorded
        total += paces[where] * _ratio(known, job) * _size(made) * SLOWER[made["train"]["precision"]]
    return total


def _read(folder: Path) -> Iterable[Cell]:
    for path in sorted(folder.glob("*.json")):
        try:
            cell = Cell(**json.loads(path.read_text()))
        except (ValueError, TypeError):
            continue  # named when it is asked for
        if cell.step is not None and cell.steps:
            yield cell


def _size(made: Mapping[str, Any]) -> float:
    """Of a training: cases that it sees."""
    return float(made["train"]["epochs"]) * made["cases"][0]


def _recorded_pace(known: Sequence[Cell], made: Mapping[str, Any]) -> float | None:
    """Seconds of LRSA for one case of one epoch, by all trainings on the same points."""
    same = [cell for cell in known if _points(cell.configuration) == _points(made)]
    steps = [_steps(cell) for cell in same if cell.model == "lrsa"]
    times = [cell.step["lrsa"] for cell in same if cell.step]
    return statistics.median(steps) * statistics.median(times) if steps else None


def _points(made: Mapping[str, Any]) -> list[Any]:
    """What decides the time of a step; other precisions are another matter."""
    train = made["train"]
    return [*(made[name] for name in ("problem", "source", "data")), made["cases"][2], train.get("precision")]


def _steps(cell: Cell) -> float:
    """For one case of one epoch."""
    return (cell.steps or 0) / _size(cell.configuration)


def _measured_pace(job: Job, runs: Path) -> float:
    """Of LRSA, by a few steps; 0 where they cannot be made."""
    try:
        config, survey, _ = configured(job.problem, "lrsa", job.source, job.scale, job.recipe, {}, {}, False)
        # Enough epochs for the steps that are timed.
        trial = replace(config, train=replace(config.train, epochs=WARM + TIMED))
        trainer = trainer_of(runs, trial, survey.normaliser)
        console.print(f"Timing a step of LRSA on {job.problem}")
        return Pace.of(trainer).step * trainer.steps / (config.data.samples or len(trainer.cases))
    except LrsaError:
        return 0.0


def _ratio(known: Sequence[Cell], job: Job) -> float:
    """The time of a case in the job's model, LRSA's = 1, on this problem if it was ever timed there.

    A model may take other steps than LRSA: several cases at once, or all frames of one.
    """
    if job.model == "lrsa":
        return 1.0
    timed = [cell for cell in known if cell.model == job.model and cell.ratio]
    ours = {cell.problem: _steps(cell) for cell in known if cell.model == "lrsa"}
    some = [cell for cell in timed if cell.problem == job.problem] or timed
    ratios = [(cell.ratio or 0.0) * _steps(cell) / ours.get(cell.problem, _steps(cell)) for cell in some]
    return statistics.median(ratios) if ratios else UNKNOWN
