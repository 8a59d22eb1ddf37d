"""The paper's table of the standard benchmarks: every model on every benchmark it accepts.

Each cell is one run of `lrsa train BENCHMARK --model MODEL --scale SCALE`, kept in a folder of its own: a
study that was stopped goes on where it was, several processes may share it with `--only`, and the table holds
what is finished. The time of a step is a ratio to LRSA's on the same cases, the two taking turns.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lrsa.console import bar, console
from lrsa.errors import Failure, LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.experiments.table_page import write_table
from lrsa.files import atomic
from lrsa.models.listing import list_models
from lrsa.models.registry import get as get_model
from lrsa.problems.catalogue import CATALOGUE, get
from lrsa.training.checkpoint import STATE, load_standing
from lrsa.training.config import RunConfig, versions
from lrsa.training.fit import data_for_scale, prepare, train_run, trainer_of
from lrsa.training.loop import Trainer

STANDARD = ("elasticity", "plasticity", "airfoil", "pipe", "navier-stokes", "darcy")
ROUNDS = 5
"""In which LRSA and another model take turns; the fastest step of each counts."""


@dataclass(frozen=True)
class Cell:
    """One model on one benchmark; what is None was not measured, and `reason` says why."""

    model: str
    benchmark: str
    parameters: int | None = None
    relative_l2: float | None = None
    nulls: dict[str, float] | None = None
    step: float | None = None
    """Time of a training step, LRSA's = 1."""
    waiting: float | None = None
    """Share of the training steps that was spent waiting for data."""
    reason: str = ""


def table_standard(out: Path, scale: str, only: str, runs: Path, threads: int) -> Path:
    """Train what is not trained yet, and write table-standard-SCALE.md and .json into the folder `out`.

    Args:
        out: The folder for the table.
        scale: demo, cpu or paper.
        only: MODEL:BENCHMARK, either of them empty for all, several separated by commas.
        runs: The folder of the runs.
        threads: CPU threads of every run.
    """
    torch.set_num_threads(threads)
    pairs = chosen(only)
    for benchmark in dict.fromkeys(name for _, name in pairs):
        data_for_scale(get(benchmark), get(benchmark).scale(scale), "generated")
    for number, (model, benchmark) in enumerate(pairs, 1):
        console.print(f"{number}/{len(pairs)}: {model} on {benchmark}")
        _finish(runs / scale / f"{benchmark}-{model}", model, benchmark, scale, threads)
    _time_steps(runs / scale, pairs)
    cells = [_read(runs / scale / f"{b}-{m}", m, b) for b in CATALOGUE for m in list_models()]
    return write_table(out, scale, threads, [asdict(cell) for cell in cells if cell is not None], versions())


def chosen(only: str) -> list[tuple[str, str]]:
    """The pairs (model, benchmark) of `only`."""
    every = [(m, b) for b in STANDARD if b in CATALOGUE for m in list_models()]
    if not only:
        return every
    pairs: list[tuple[str, str]] = []
    for word in only.split(","):
        model, colon, benchmark = word.partition(":")
        if not colon:
            raise LrsaError(f'--only takes MODEL:BENCHMARK, such as lrsa:darcy or :darcy, not "{word}"')
        if model:
            get_model(model)
        if benchmark:
            get(benchmark)
        pairs += [p for p in every if model in ("", p[0]) and benchmark in ("", p[1])]
    return list(dict.fromkeys(pairs))


def _finish(run: Path, model: str, benchmark: str, scale: str, threads: int) -> None:
    """Train and evaluate the run, unless that is done; keep the reason where the two do not go together.

    The data is there already: what is refused before the first step, or diverges, will be so again. Anything
    else ends the study, which can go on.
    """
    if (run / "evaluation.json").exists() or (run / "reason.txt").exists():
        return
    if not (run / "config.json").exists():
        try:
            prepare(benchmark, model, scale=scale, out=run, threads=threads, options={}, train={})
        except LrsaError as error:
            if (run / "config.json").exists():  # another process has begun it meanwhile
                raise
            _keep_reason(run, error)
            return
    try:
        train_run(run)
        evaluate(run).save(run / "evaluation.json")
    except Failure as error:
        _keep_reason(run, error)


def _keep_reason(run: Path, error: LrsaError) -> None:
    with atomic(run / "reason.txt") as temporary:
        temporary.write_text(" ".join(str(error).split()))
    console.print(f"{run.name}: {error}")


def _time_steps(runs: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Measure the steps of the finished runs that have no time yet."""
    untimed = [
        (model, benchmark)
        for model, benchmark in pairs
        if model != "lrsa"
        and (runs / f"{benchmark}-{model}" / "evaluation.json").exists()
        and (runs / f"{benchmark}-lrsa" / "evaluation.json").exists()
        and not (runs / f"{benchmark}-{model}" / "step.json").exists()
    ]
    with bar("Timing") as report:
        for done, (model, benchmark) in enumerate(untimed):
            report(done, len(untimed), f"{model} on {benchmark}")
            run = runs / f"{benchmark}-{model}"
            ours, theirs = (_trainer(r) for r in (runs / f"{benchmark}-lrsa", run))
            times = [(_seconds(ours), _seconds(theirs)) for _ in range(1 + ROUNDS)][1:]
            row = {"lrsa": min(t[0] for t in times), "model": min(t[1] for t in times)}
            with atomic(run / "step.json") as temporary:
                temporary.write_text(json.dumps(row))


def _trainer(run: Path) -> Trainer:
    """Of a finished run, as it was before its first step."""
    config = RunConfig.load(run)
    long = replace(config.train, epochs=max(config.train.epochs, 1 + ROUNDS))  # steps for all rounds
    return trainer_of(run, replace(config, train=long))


def _seconds(trainer: Trainer) -> float:
    """One training step on the first cases."""
    batch = trainer.batch(trainer.keys[: trainer.config.batch_size])
    started = time.perf_counter()
    trainer.step(batch)
    return time.perf_counter() - started


def _read(run: Path, model: str, benchmark: str) -> Cell | None:
    """The cell of a finished run."""
    if (run / "reason.txt").exists():
        return Cell(model, benchmark, reason=(run / "reason.txt").read_text())
    if not (run / "evaluation.json").exists():
        return None
    outcome: dict[str, Any] = json.loads((run / "evaluation.json").read_text())
    step = {"model": 1.0, "lrsa": 1.0} if model == "lrsa" else None
    if (run / "step.json").exists():
        step = json.loads((run / "step.json").read_text())
    progress = load_standing(run / STATE)
    return Cell(
        model,
        benchmark,
        sum(p.numel() for p in _trainer(run).surrogate.model.parameters()),
        outcome["relative_l2"],
        outcome["nulls"],
        step["model"] / step["lrsa"] if step else None,
        progress.waiting_share,
    )
