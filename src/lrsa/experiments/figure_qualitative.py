"""The paper's qualitative figure: LRSA beside Transolver on the same case, with one scale for both errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from lrsa.console import console
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import truth
from lrsa.experiments.cells import trained
from lrsa.experiments.experiment import Experiment, Task
from lrsa.experiments.page import Page, Plot, Section
from lrsa.experiments.study import Work
from lrsa.experiments.table_standard import STANDARD
from lrsa.files import atomic
from lrsa.objectives.metrics import relative_l2
from lrsa.objectives.protocols import protocol
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import CATALOGUE
from lrsa.report.figures import INK, SOFT
from lrsa.report.pictures import ERROR, FIELD, Picture, draw_pictures, picture_of, placed
from lrsa.surrogate.surrogate import load
from lrsa.training.config import RunConfig

SHOWN = ("navier-stokes", "elasticity", "airfoil", "plasticity")
MODELS = {"LRSA": "lrsa", "Transolver": "transolver"}
CASE = 0
"""The first test case, which nobody has chosen."""
SEED = 1
"""One of the statistics, so that where the tables are recorded the figure trains nothing for itself alone."""


class FigureQualitative(Experiment):
    """Truth, both predictions, both errors."""

    name = "figure-qualitative"
    about = "LRSA beside Transolver on one case of four problems"

    def tasks(self, work: Work) -> list[Task]:
        return [
            Task(label, replace(work.study.job(model, problem), train={"seed": SEED}))
            for problem in SHOWN
            if problem in CATALOGUE and work.study.scale in CATALOGUE[problem].scales
            for label, model in MODELS.items()
        ]

    def measure(self, work: Work) -> None:
        """A cell has no weights: runs that are gone are trained again, unless their prediction is kept."""
        for task in self.tasks(work):
            if _predicted(work, task) is None:
                console.print(f"{task.row} on {task.problem}: the run is needed for its pictures")
                trained(task.job, work.runs / task.job.key, work.threads, work.device)

    def page(self, work: Work) -> Page:
        study = work.study
        shown: dict[str, list[Prediction]] = {}
        for task in self.tasks(work):
            if (found := _predicted(work, task)) is not None:
                shown.setdefault(task.problem, []).append(found)
        whole = {problem: both for problem, both in shown.items() if len(both) == len(MODELS)}
        missing = [STANDARD[p] for p in SHOWN if p not in whole]
        text = [f"Not trained yet: {', '.join(missing)}."] if missing else []
        caption = f"The first test case of each set, by trainings of seed {SEED}; one scale for both errors."
        plots = [Plot("", "truth, predictions and errors", caption, draw(whole))] if whole else []
        return Page(
            self.name,
            "Figure: predictions side by side",
            "The same test case, predicted by LRSA and by Transolver; both errors on one scale.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · {study.source} data · recipe: {study.settled}",
            [Section(text=text, plots=plots)],
            {"errors": {problem: [one.error for one in both] for problem, both in whole.items()}},
        )


@dataclass(frozen=True)
class Prediction:
    """One field of the last frame of a test case, as it is and as a model has it."""

    body: PointSet
    """The points, where they are by then."""
    truth: np.ndarray
    """(N,)."""
    predicted: np.ndarray
    """(N,)."""
    error: float
    """Relative L2 of the whole case."""

    @staticmethod
    def of(run: Path) -> "Prediction":
        """The last field of the last frame: of places and displacements, the last displacement."""
        config = RunConfig.load(run)
        case = config.dataset("test")[CASE].strided(config.data.stride)
        u, predicted = truth(protocol(config.schema.protocol), case), load(run).predict(case)
        last = u[-1] if u.ndim == 3 else u
        body = placed(case, last)
        known = None if body.u_mask is None else body.u_mask[:, -1:]
        body = PointSet(
            body.x,
            u_mask=known,
            cells=body.cells,
            cell_types=body.cell_types,
            surface=body.surface,
            grid=body.grid,
        )
        shown = predicted[-1] if predicted.ndim == 3 else predicted
        return Prediction(body, last[:, -1], shown[:, -1], relative_l2(predicted, u, case.u_mask))

    def save(self, path: Path) -> None:
        made = {"truth": self.truth, "predicted": self.predicted, "error": np.float64(self.error)}
        grid = {} if self.body.grid is None else {"grid": np.array(self.body.grid)}
        with atomic(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **made, **grid, **self.body.arrays())  # pyright: ignore[reportArgumentType]

    @staticmethod
    def read(path: Path) -> "Prediction":
        try:
            with path.open("rb") as opened, np.load(opened) as file:  # numpy leaves a damaged one open
                arrays = dict(file)
            made = arrays.pop("truth"), arrays.pop("predicted"), float(arrays.pop("error"))
            grid = tuple(arrays.pop("grid").tolist()) if "grid" in arrays else None
            return Prediction(PointSet(**arrays, grid=grid), *made)
        except (ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile, LrsaError) as error:
            raise LrsaError(f"{path} is damaged: remove it, and it is made again") from error


def _predicted(work: Work, task: Task) -> Prediction | None:
    """Kept beside the cells, as weights and data are not; made now where there is a run and its data."""
    path = work.cells.parent / "qualitative" / f"{task.job.key}.npz"
    if path.exists():
        return Prediction.read(path)
    run = work.runs / task.job.key
    if not (run / "model.safetensors").exists() or not Path(RunConfig.load(run).data.path).exists():
        return None
    made = Prediction.of(run)
    made.save(path)
    return made


def draw(shown: Mapping[str, Sequence[Prediction]]) -> Figure:
    """A row for each problem."""
    rows = [
        (STANDARD[problem], _pictures(both), [one.error for one in both]) for problem, both in shown.items()
    ]
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


def _pictures(both: Sequence[Prediction]) -> list[Picture]:
    """Truth, two predictions, two errors."""
    body = both[0].body
    first = picture_of(body, both[0].truth)
    off = [np.abs(one.predicted - one.truth) for one in both]
    worst = max(float(e.max()) for e in off) or 1.0
    return [
        first,
        *(Picture(body, one.predicted, first.low, first.high, FIELD, first.known) for one in both),
        *(Picture(body, e, 0.0, worst, ERROR, first.known) for e in off),
    ]
