"""An experiment: its trainings and its page."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import matplotlib

from lrsa.experiments.cells import Cell, recorded
from lrsa.experiments.job import Job
from lrsa.experiments.page import Page
from lrsa.experiments.study import Work
from lrsa.pointset import Stride
from lrsa.report.figures import STYLE


@dataclass(frozen=True)
class Task:
    """One training of an experiment, by the row and the problem it is for, and what is asked of it."""

    row: str
    job: Job
    strides: tuple[Stride, ...] = ()
    """At which it is evaluated besides its own."""
    metrics: bool = False
    """Whether those of the problem are needed."""

    @property
    def problem(self) -> str:
        return self.job.problem


class Experiment(ABC):
    """What `lrsa reproduce NAME` makes. One that needs no training has no tasks."""

    name: str
    about: str
    """What it shows, for the help."""

    def tasks(self, work: Work) -> list[Task]:
        """The trainings it needs, those that are recorded too; asked for again when they are done."""
        return []

    def shown(self, work: Work) -> list[Task]:
        """The trainings of its page: those it needs, and what is shown where it is recorded."""
        return self.tasks(work)

    def measure(self, work: Work) -> None:  # noqa: B027 (most measure nothing)
        """Measure what it needs besides."""

    @abstractmethod
    def page(self, work: Work) -> Page:
        """Of what is recorded."""

    def summary(self, work: Work) -> list[str]:
        """What is said when it is done."""
        return []

    def extra(self, work: Work, row: str, problem: str) -> Task | None:
        """A training that is none of the tasks, but may be asked for by name."""
        return None


def page_of(experiment: Experiment, work: Work) -> Page:
    """Its page, with pictures in one style."""
    with matplotlib.rc_context(STYLE):
        return experiment.page(work)


def cell_of(work: Work, task: Task) -> Cell | None:
    """The record of a task, if there is one."""
    return recorded(task.job, work.cells)
