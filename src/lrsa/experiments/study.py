"""A study: what all trainings of an experiment have in common, and where its files are."""

from dataclasses import dataclass
from pathlib import Path

from lrsa.experiments.job import Job
from lrsa.problems.problem import Source
from lrsa.training.recipes import Recipe, default_recipe


@dataclass(frozen=True)
class Study:
    """What all cells of a table have in common: no table mixes sources, scales or recipes."""

    scale: str
    source: Source = "generated"
    recipe: Recipe | None = None
    matched: bool = False

    @property
    def settled(self) -> Recipe:
        """The recipe, where none was named too."""
        return self.recipe or default_recipe(self.scale)

    def job(self, model: str, problem: str) -> Job:
        return Job(problem, model, self.scale, self.source, self.settled, self.matched)

    def epochs(self, problem: str, share: int = 1) -> int:
        """Of its trainings, or of short ones: one in so many."""
        return max(1, self.job("lrsa", problem).configuration()["train"]["epochs"] // share)

    def named(self, experiment: str) -> str:
        """The name of the files of an experiment."""
        words = [
            self.source if self.source != "generated" else "",
            f"{self.settled}-recipe" if self.settled != default_recipe(self.scale) else "",
            "matched" if self.matched else "",
        ]
        return "-".join([experiment, self.scale, *filter(None, words)])

    def command(self, experiment: str) -> str:
        """What makes it."""
        words = [f"lrsa reproduce {experiment} --scale {self.scale} --source {self.source}"]
        return " ".join([*words, f"--recipe {self.settled}", *(["--matched"] if self.matched else [])])


@dataclass(frozen=True)
class Work:
    """A study, and the folders it works in."""

    study: Study
    cells: Path
    """The records of the trainings."""
    runs: Path
    out: Path
    """The pages."""
    threads: int = 1
    device: str = "cpu"
    cluster: str | None = None
    """Address of a Dask scheduler, whose workers train."""
