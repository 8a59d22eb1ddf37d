"""Records of trainings that nobody did: what pages and verdicts are made of, in no time."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lrsa.experiments.cells import Cell, at_stride, recorded
from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.job import Job
from lrsa.experiments.study import Study, Work


def work_in(folder: Path, scale: str = "demo", **study: Any) -> Work:
    """A study whose folders are all in one."""
    return Work(Study(scale, **study), folder / "results" / "cells", folder / "runs", folder / "pages")


def made(job: Job, error: float, **more: Any) -> Cell:
    """A cell of that error."""
    cell = Cell(
        job.model,
        job.problem,
        job.configuration(),
        job.typed(),
        {"lrsa": "0"},
        threads=1,
        parameters=1000,
        relative_l2=error,
        validation=error,
        nulls={"mean field": 1.0, "nearest case": 0.8},
        steps=100,
        step={"model": 0.2, "lrsa": 0.1},
        waiting=0.0,
        metrics={},
    )
    return replace(cell, **more)


def record(work: Work, job: Job, cell: Cell) -> None:
    work.cells.mkdir(parents=True, exist_ok=True)
    (work.cells / f"{job.key}.json").write_text(json.dumps(asdict(cell)))


def fill(experiment: Experiment, work: Work, error: Callable[[Task], float | None]) -> None:
    """A record for every training of an experiment, of the errors that a function gives; None: none."""
    metrics = ("mse:p@volume", "mse:p@surface", "relative-error:lift", "spearman:lift")
    for task in experiment.tasks(work):
        found = error(task)
        if found is not None:
            known = recorded(task.job, work.cells)
            others = known.metrics or {} if known else {}  # other experiments share the training
            more = {**others, **dict.fromkeys([*metrics, *map(at_stride, task.strides)], found)}
            record(work, task.job, made(task.job, found, metrics=more))
