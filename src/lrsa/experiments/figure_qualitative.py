"""The paper's qualitative figure: LRSA beside Transolver on the same case, with one scale for both errors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lrsa.console import console
from lrsa.data.store import Dataset
from lrsa.evaluation.evaluate import truth
from lrsa.experiments.cells import Job, trained
from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.page import Page, Plot, Section
from lrsa.experiments.study import Work
from lrsa.experiments.table_standard import STANDARD
from lrsa.objectives.metrics import relative_l2
from lrsa.objectives.protocols import protocol
from lrsa.problems.catalogue import CATALOGUE
from lrsa.report.figures import INK, SOFT
from lrsa.report.pictures import ERROR, FIELD, Picture, draw_pictures, picture_of, placed
from lrsa.surrogate.surrogate import load
from lrsa.training.config import RunConfig

SHOWN = ("navier-stokes", "elasticity", "airfoil", "plasticity")
MODELS = {"LRSA": "lrsa", "Transolver": "transolver"}
CASE = 0
"""The first test case, which nobody has chosen."""


class FigureQualitative(Experiment):
    """Truth, both predictions, both errors."""

    name = "figure-qualitative"
    about = "LRSA beside Transolver on one case of four problems"

    def tasks(self, work: Work) -> list[Task]:
        return [
            Task(label, work.study.job(model, problem))
            for problem in SHOWN
            if problem in CATALOGUE and work.study.scale in CATALOGUE[problem].scales
            for label, model in MODELS.items()
        ]

    def measure(self, work: Work) -> None:
        """A record has no weights: runs that are gone are trained again."""
        for task in self.tasks(work):
            run = work.runs / task.job.key
            if not (run / "model.safetensors").exists():
                console.print(f"{task.row} on {task.problem}: the run is needed for its pictures")
                trained(task.job, run, work.threads, work.device)

    def page(self, work: Work) -> Page:
        study = work.study
        shown: dict[str, list[Path]] = {}
        for task in self.tasks(work):
            run = work.runs / task.job.key
            if (run / "model.safetensors").exists() and _there(task.job, run):
                shown.setdefault(task.problem, []).append(run)
        whole = {problem: runs for problem, runs in shown.items() if len(runs) == len(MODELS)}
        missing = [STANDARD[p] for p in SHOWN if p not in whole]
        text = [f"Not trained yet: {', '.join(missing)}."] if missing else []
        plots = (
            [
                Plot(
                    "",
                    "truth, predictions and errors",
                    "The first test case of each set; one scale for both errors.",
                    draw(whole),
                )
            ]
            if whole
            else []
        )
        return Page(
            self.name,
            "Figure: predictions side by side",
            "The same test case, predicted by LRSA and by Transolver; both errors on one scale.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data · recipe: {study.settled}",
            [Section(text=text, plots=plots)],
            {"runs": {problem: [run.name for run in runs] for problem, runs in whole.items()}},
        )


def _there(job: Job, run: Path) -> bool:
    """Whether the data of the run is still where it was."""
    return Path(RunConfig.load(run).data.path).exists()


def draw(shown: dict[str, list[Path]]) -> Figure:
    """A row for each problem."""
    rows = [(STANDARD[problem], *_row(runs)) for problem, runs in shown.items()]
    images = iter(draw_pictures([picture for _, pictures, _ in rows for picture in pictures]))
    figure = Figure(figsize=(12.4, 2.5 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), 5, squeeze=False)
    for line, (title, pictures, errors) in zip(axes, rows, strict=True):
        heads = ["truth", *(f"{label}: {e:.3g}" for label, e in zip(MODELS, errors, strict=True))]
        heads += [f"|error| of {label}" for label in MODELS]
        for ax, picture, head in zip(line, pictures, heads, strict=True):
            _place(ax, next(images), head)
            if ax is line[0]:
                ax.set_ylabel(title, color=INK)
            if ax is line[-1]:
                scale = ScalarMappable(Normalize(picture.low, picture.high), ERROR)
                figure.colorbar(scale, ax=list(line[3:]), shrink=0.7, aspect=16, pad=0.01)
            if ax is line[2]:
                scale = ScalarMappable(Normalize(picture.low, picture.high), FIELD)
                figure.colorbar(scale, ax=list(line[:3]), shrink=0.7, aspect=16, pad=0.01)
    return figure


def _place(ax: Axes, image: np.ndarray, title: str) -> None:
    ax.imshow(image)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, color=SOFT, fontsize=9)
    for side in ax.spines.values():
        side.set_visible(False)


def _row(runs: Sequence[Path]) -> tuple[list[Picture], list[float]]:
    """Truth, two predictions, two errors of the last frame; and the relative L2 errors of the case."""
    config = RunConfig.load(runs[0])
    case = Dataset(Path(config.data.path), "test")[CASE].strided(config.data.stride)
    u = truth(protocol(config.schema.protocol), case)
    predictions = [load(run).predict(case) for run in runs]
    errors = [relative_l2(p, u, case.u_mask) for p in predictions]
    last = u[-1] if u.ndim == 3 else u
    shown = [p[-1] if p.ndim == 3 else p for p in predictions]
    body = placed(case, last)
    channel = last.shape[-1] - 1  # of places and displacements, the last displacement
    first = picture_of(body, last[:, channel], channel)
    off = [np.abs(p[:, channel] - last[:, channel]) for p in shown]
    worst = max(float(e.max()) for e in off) or 1.0
    return [
        first,
        *(Picture(body, p[:, channel], first.low, first.high, FIELD, first.known) for p in shown),
        *(Picture(body, e, 0.0, worst, ERROR, first.known) for e in off),
    ], errors
