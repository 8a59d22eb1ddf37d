"""Cells of tables: trainings of benchmarks, each kept as a record of what decided it and of what came out.

A record is found by the resolved configuration of its training: problem, source, version and parameters of
the data, cases, every option of the model and of the training, recipe. What is recorded is never trained
again, for whatever table, and no other training takes its place.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lrsa.console import console
from lrsa.errors import Failure, LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.outcome import Evaluation
from lrsa.experiments.job import BY_TORCH, Job
from lrsa.experiments.step_times import step_times
from lrsa.files import Busy, alone, atomic
from lrsa.models.matching import parameter_count
from lrsa.pointset import Stride, stride_name
from lrsa.training.checkpoint import STATE, load_standing
from lrsa.training.config import RunConfig, versions
from lrsa.training.fit import prepare, train_run, trainer_of


@dataclass(frozen=True)
class Cell:
    """What came out of a job; what is None was not measured, and `reason` says why."""

    model: str
    problem: str
    configuration: Mapping[str, Any]
    command: str
    versions: Mapping[str, str]
    threads: int
    parameters: int | None = None
    relative_l2: float | None = None
    """Of the test cases."""
    validation: float | None = None
    """Of those held out of the training cases, if any were."""
    nulls: Mapping[str, float] | None = None
    steps: int | None = None
    step: Mapping[str, float] | None = None
    """Seconds of a training step of the model, and of LRSA as the scale has it, the two taking turns."""
    waiting: float | None = None
    """Share of the training steps that was spent waiting for data."""
    reason: str = ""
    metrics: Mapping[str, float] | None = None
    """Further ones of the test cases: those that the problem names, and `at_stride` of others than its own;
    None: an older record, which has none."""

    @property
    def ratio(self) -> float | None:
        """Time of a step, LRSA's = 1."""
        return None if self.step is None else self.step["model"] / self.step["lrsa"]


def recorded(job: Job, folder: Path) -> Cell | None:
    """The record of this job, if there is one."""
    path = folder / f"{job.key}.json"
    cell = _read(path) if path.exists() else None
    return cell if cell is not None and job.decides(cell.configuration) else None


def _read(path: Path) -> Cell:
    try:
        cell = Cell(**json.loads(path.read_text()))
        _cases(cell.configuration)  # what lacks its entries is found here
        return cell
    except (ValueError, TypeError, KeyError) as error:
        raise LrsaError(f"{path} is damaged: remove it, and the cell is trained again") from error


def null_errors(cells: Iterable[Cell], folder: Path) -> dict[str, float]:
    """Of the null baselines on the cases of these cells, by all records of the same cases: no model changes
    them, and an older record lacks those that came later."""
    every = _nulls_by_cases(tuple(sorted(folder.glob("*.json"))))
    return {name: error for cell in cells for name, error in every[_cases(cell.configuration)].items()}


@lru_cache
def _nulls_by_cases(records: tuple[Path, ...]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for cell in map(_read, records):
        found.setdefault(_cases(cell.configuration), {}).update(cell.nulls or {})
    return found


def _cases(configuration: Mapping[str, Any]) -> str:
    """What decides the training and the test cases."""
    decides = [configuration[name] for name in ("problem", "source", "data", "cases")]
    return json.dumps([decides, configuration["train"]["validation"]], sort_keys=True)


def at_stride(stride: Stride) -> str:
    """What the error at that stride is called among the metrics of a cell."""
    return f"relative-l2 at stride {stride_name(stride)}"


def complete(cell: Cell | None, strides: Sequence[Stride] = (), metrics: bool = False) -> bool:
    """Whether a record has what a table asks of it; what was refused or diverged never has more."""
    if cell is None or cell.reason:
        return cell is not None
    known = cell.metrics or {}
    return not (metrics and cell.metrics is None) and all(at_stride(stride) in known for stride in strides)


def finish(
    job: Job,
    folder: Path,
    runs: Path,
    threads: int,
    strides: Sequence[Stride] = (),
    metrics: bool = False,
    device: str = "cpu",
) -> Cell | None:
    """The cell of this job: recorded, or trained, evaluated and recorded now; None while another does that.

    Where the record lacks the errors at other strides, or the metrics, its run is evaluated again; where the
    run is gone too, it is trained and recorded anew, so that all numbers of a record are of one training.

    The data is there already: what is refused before the first step, or diverges, will be so again, and is
    recorded as such. Anything else ends the study, which can go on.
    """
    cell = recorded(job, folder)
    if cell is not None and complete(cell, strides, metrics):
        return cell
    run = runs / job.key
    try:
        with alone(run.with_name(f"{run.name}.cell")):
            cell = recorded(job, folder)
            if cell is None or not (complete(cell, strides, metrics) or (run / "config.json").exists()):
                cell = _record(_trained(job, run, threads, strides, device), job, folder)
            elif not complete(cell, strides, metrics):
                found = _evaluated(trained(job, run, threads, device), strides)[1]
                cell = _record(replace(cell, metrics={**(cell.metrics or {}), **found}), job, folder)
            return cell
    except Busy:
        return None


def time_again(job: Job, folder: Path, runs: Path, device: str = "cpu") -> Cell | None:
    """The cell of this job with its steps timed now; None where none is recorded, or without steps."""
    cell = recorded(job, folder)
    if cell is None or cell.step is None:
        return None
    return _record(replace(cell, step=step_times(job, runs / job.key, device)), job, folder)


def trained(job: Job, run: Path, threads: int, device: str = "cpu") -> Path:
    """The run of a job: as it is, gone on with, or made."""
    if not (run / "config.json").exists():
        prepare(
            job.problem,
            job.model,
            source=job.source,
            scale=job.scale,
            recipe=job.recipe,
            out=run,
            device=device,
            threads=threads,
            options=job.options,
            train={**BY_TORCH, **job.train},
            matched=job.matched,
            samples=job.samples,
        )
    train_run(run)
    return run


def _record(cell: Cell, job: Job, folder: Path) -> Cell:
    with atomic(folder / f"{job.key}.json") as temporary:
        temporary.write_text(json.dumps(asdict(cell), indent=1) + "\n")
    return cell


def _evaluated(run: Path, strides: Sequence[Stride]) -> tuple[Evaluation, dict[str, float]]:
    """The outcome at the run's own stride, and its metrics with the errors at the others."""
    own = RunConfig.load(run).data.stride
    outcome = evaluate(run, stride=(own, *strides) if strides else None)
    errors = {at_stride(each.stride): each.relative_l2 for each in outcome.samplings}
    return outcome, {**outcome.metrics, **errors}


def _trained(job: Job, run: Path, threads: int, strides: Sequence[Stride], device: str) -> Cell:
    about = (job.model, job.problem, job.configuration(), job.typed(), versions(), threads)
    try:
        trained(job, run, threads, device)
    except Busy:
        raise
    except LrsaError as error:
        # What is refused before its first step, or diverges; a run that is there but damaged is neither.
        if isinstance(error, Failure) or not (run / "config.json").exists():
            return _without(about, error)
        raise
    outcome, metrics = _evaluated(run, strides)
    config, standing = RunConfig.load(run), load_standing(run / STATE)
    return Cell(
        *about,
        parameters=parameter_count(config.model, config.options),
        relative_l2=outcome.relative_l2,
        validation=standing.best if standing.best_epoch else None,
        nulls=outcome.nulls,
        steps=config.train.epochs * trainer_of(run, config).steps,
        step=step_times(job, run, device),
        waiting=standing.waiting_share,
        metrics=metrics,
    )


def _without(about: tuple[Any, ...], error: LrsaError) -> Cell:
    console.print(f"{about[0]} on {about[1]}: {error}")
    return Cell(*about, reason=" ".join(str(error).split()))
