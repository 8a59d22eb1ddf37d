"""How long the trainings that are left will take: by what is recorded, else by a measured step."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lrsa.console import console
from lrsa.errors import LrsaError
from lrsa.experiments.cells import Cell, Job
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
    paces: dict[tuple[str, str], float | None] = {}
    total = 0.0
    for job in jobs:
        where = (job.problem, job.scale)
        if where not in paces:
            paces[where] = _recorded_pace(known, job) or _measured_pace(job, runs)
        made = job.configuration()
        pace = paces[where] or 0.0
        total += pace * _size(made) * _ratio(known, job) * SLOWER[made["train"]["precision"]]
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


def _recorded_pace(known: Sequence[Cell], job: Job) -> float | None:
    """Seconds of LRSA for one case of one epoch, by any training on the same points."""
    made = job.configuration()
    for cell in known:
        theirs = cell.configuration
        same = all(theirs[name] == made[name] for name in ("problem", "source", "data"))
        fp32 = theirs["train"].get("precision", "fp32") == "fp32"
        if same and theirs["cases"][2] == made["cases"][2] and fp32 and cell.step and cell.steps:
            return cell.steps * cell.step["lrsa"] / _size(theirs)
    return None


def _measured_pace(job: Job, runs: Path) -> float | None:
    """The same, by a few steps of LRSA."""
    try:
        config, survey, _ = configured(job.problem, "lrsa", job.source, job.scale, job.recipe, {}, {}, False)
        # Enough epochs for the steps that are timed.
        trial = replace(config, train=replace(config.train, epochs=WARM + TIMED))
        trainer = trainer_of(runs, trial, survey.normaliser)
        console.print(f"Timing a step of LRSA on {job.problem}")
        return Pace.of(trainer).step * trainer.steps / (config.data.samples or len(trainer.cases))
    except LrsaError:
        return None


def _ratio(known: Sequence[Cell], job: Job) -> float:
    """A step of the job's model, LRSA's = 1."""
    if job.model == "lrsa":
        return 1.0
    ratios = [c.ratio for c in known if c.model == job.model and c.problem == job.problem and c.ratio]
    anywhere = [c.ratio for c in known if c.model == job.model and c.ratio]
    return (ratios or anywhere or [UNKNOWN])[0]
