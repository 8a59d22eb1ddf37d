"""Running experiments: the trainings that are not recorded yet, then the pages of what is."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from lrsa.console import bar, console
from lrsa.errors import LrsaError, nearest
from lrsa.experiments.cells import Cell, complete, finish, time_again
from lrsa.experiments.estimate import estimate
from lrsa.experiments.experiment import Experiment, Task, cell_of, page_of
from lrsa.experiments.page import Page, write_page
from lrsa.experiments.study import Study, Work
from lrsa.files import Busy, data_home
from lrsa.machine import keep_memory
from lrsa.parallel.pool import Died, check_cluster, cluster_results
from lrsa.problems.catalogue import get
from lrsa.problems.problem import Problem
from lrsa.training.budget import duration
from lrsa.training.configure import data_for_scale


def run(
    experiments: Sequence[Experiment], work: Work, only: str = "", train: bool = True, retime: bool = False
) -> list[Page]:
    """Train what is not recorded yet, measure, and write the pages.

    Stopped, it goes on where it was; several processes of the same command share the trainings.

    Args:
        experiments: In the order in which their trainings are done.
        work: The study and its folders.
        only: ROW:PROBLEM, either of them empty for all, several separated by commas.
        train: Whether anything is trained or measured at all.
        retime: Time the steps of what is recorded again before that.
    """
    torch.set_num_threads(work.threads)
    check(experiments, work, only)
    if retime:
        _retime(experiments, work, only)
    if train and work.cluster is not None:
        check_cluster(work.cluster)
    if train:
        done: set[str] = set()
        # Some trainings are known only when others are done.
        while tasks := [task for task in pending(experiments, work, only) if task.job.key not in done]:
            _train(experiments, _with_data(tasks, work), work, only)
            done |= {task.job.key for task in tasks}
        for experiment in experiments:
            if not only:
                experiment.measure(work)
    pages = [page_of(experiment, work) for experiment in experiments]
    for page in pages:
        write_page(work.out, page)
    return pages


def pending(experiments: Sequence[Experiment], work: Work, only: str = "") -> list[Task]:
    """The trainings that are chosen and not recorded, each once; of the same one, all that is asked."""
    found: dict[str, Task] = {}
    for experiment in experiments:
        for task in chosen(experiment, work, only):
            first = found.setdefault(task.job.key, task)
            strides = first.strides if first is task else (*first.strides, *task.strides)
            found[task.job.key] = replace(first, strides=strides, metrics=first.metrics or task.metrics)
    return [t for t in found.values() if not complete(cell_of(work, t), t.strides, t.metrics)]


def check(experiments: Sequence[Experiment], work: Work, only: str) -> None:
    """Refuse a ROW:PROBLEM that none of them has."""
    for row, problem in _pairs(only) if only else ():
        if problem:
            get(problem)
        if not any(_tasks_of(experiment, work, row, problem) for experiment in experiments):
            raise LrsaError(_refusal(experiments, work, row, problem))


def chosen(experiment: Experiment, work: Work, only: str) -> list[Task]:
    """The tasks of ROW:PROBLEM; an experiment may know more rows by name."""
    if not only:
        return list(experiment.tasks(work))
    return [task for row, problem in _pairs(only) for task in _tasks_of(experiment, work, row, problem)]


def _tasks_of(experiment: Experiment, work: Work, row: str, problem: str) -> list[Task]:
    every, found = experiment.tasks(work), []
    for name in [problem] if problem else dict.fromkeys(task.problem for task in every):
        some = [task for task in every if task.problem == name and row in ("", task.row)]
        extra = experiment.extra(work, row, name) if row and not some else None
        found += [extra] if extra else some
    return found


def _pairs(only: str) -> list[tuple[str, str]]:
    """(row, problem) of every word; names of rows may have commas."""
    pairs, begun = [], ""
    for part in only.split(","):
        begun = f"{begun},{part}" if begun else part
        row, colon, problem = begun.rpartition(":")
        if colon:
            pairs.append((row.strip(), problem.strip()))
            begun = ""
    if begun:
        raise LrsaError(f'--only takes ROW:BENCHMARK, such as LRSA:darcy or :darcy, not "{begun}"')
    return pairs


def _refusal(experiments: Sequence[Experiment], work: Work, row: str, problem: str) -> str:
    every = [task for experiment in experiments for task in experiment.tasks(work)]
    name = experiments[0].name if len(experiments) == 1 else "all"
    if not every:
        return f"{name} trains nothing: leave out --only"
    rows, problems = list(dict.fromkeys(t.row for t in every)), list(dict.fromkeys(t.problem for t in every))
    if row and any(_tasks_of(experiment, work, row, "") for experiment in experiments):
        rows.append(row)  # one that is known by its name alone
    for given, known in ((row, rows), (problem, problems)):
        if given and given not in known:
            there = f" There are: {', '.join(known)}"
            return f'{name} has no "{given}".{nearest(given, known)}{there}'
    return f"the paper leaves {row} on {problem} empty, and so does {name}"


def _retime(experiments: Sequence[Experiment], work: Work, only: str) -> None:
    """Of all trainings that the pages show, each once."""
    keep_memory()  # as in a training
    pairs = _pairs(only) if only else [("", "")]
    shown = {task.job.key: task for experiment in experiments for task in experiment.shown(work)}
    asked = [
        task
        for task in shown.values()
        if any(row in ("", task.row) and problem in ("", task.problem) for row, problem in pairs)
        and cell_of(work, task) is not None
    ]
    asked = _with_data(asked, work)
    with bar("Timing steps") as advance:
        for number, task in enumerate(asked, 1):
            time_again(task.job, work.cells, work.runs, work.device)
            advance(number, len(asked), f"{task.row} on {task.problem}")


def _with_data(tasks: Sequence[Task], work: Work) -> list[Task]:
    """The trainings whose data is there or can be made; where one cannot, the others go on."""
    problems, missing = dict.fromkeys(task.problem for task in tasks), set()
    for name in problems:
        try:
            _make_or_wait(get(name), work.study)
        except LrsaError as error:
            missing.add(name)
            if len(missing) == len(problems):
                raise
            console.print(f"{name} is left out: {error}")
    return [task for task in tasks if task.problem not in missing]


def _make_or_wait(problem: Problem, study: Study) -> None:
    """Its data is there afterwards; processes of the same command share that work too."""
    waiting = False
    while True:
        try:
            data_for_scale(problem, problem.scale(study.scale), study.source)
            return
        except Busy:
            if not waiting:
                console.print(f"Waiting for another process, which makes the data of {problem.name}")
            waiting = True
            time.sleep(1.0)


def _train(experiments: Sequence[Experiment], tasks: Sequence[Task], work: Work, only: str) -> None:
    every = {task.job.key for one in experiments for task in chosen(one, work, only)}
    seconds = estimate([task.job for task in tasks], work.cells, work.runs)
    console.print(
        f"{len(tasks)} of {len(every)} trainings are not recorded yet: about {duration(seconds)},"
        " and evaluating them comes on top. Stopped, this goes on where it was"
    )
    for task in _trained_here(tasks, work) if work.cluster is None else _trained_there(tasks, work):
        for experiment in experiments:
            if any(task.job.key == other.job.key for other in experiment.tasks(work)):
                write_page(work.out, page_of(experiment, work))


def _trained_here(tasks: Sequence[Task], work: Work) -> Iterator[Task]:
    for number, task in enumerate(tasks, 1):
        console.print(f"{number}/{len(tasks)}: {task.row} on {task.problem}")
        if _finish(task, work) is None:
            console.print("another process is at it")
        yield task


def _trained_there(tasks: Sequence[Task], work: Work) -> Iterator[Task]:
    """By the workers of a cluster, as they come; where one dies, another goes on from the last epoch."""
    seen = replace(work, cells=work.cells.resolve(), runs=work.runs.resolve(), cluster=None)
    calls = [partial(_elsewhere, task, seen, data_home().parent.resolve()) for task in tasks]
    assert work.cluster is not None
    for number, (i, done) in enumerate(cluster_results(calls, work.cluster), 1):
        said = f": {done}" if isinstance(done, Died) else "" if done else ": another process is at it"
        console.print(f"{number}/{len(tasks)}: {tasks[i].row} on {tasks[i].problem}{said}")
        yield tasks[i]


def _elsewhere(task: Task, work: Work, home: Path) -> bool:
    """Train on a worker; whether it was done by this one."""
    os.environ.setdefault("LRSA_HOME", str(home))
    torch.set_num_threads(work.threads)
    return _finish(task, work) is not None


def _finish(task: Task, work: Work) -> Cell | None:
    return finish(task.job, work.cells, work.runs, work.threads, task.strides, task.metrics, work.device)
