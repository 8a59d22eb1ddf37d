"""The part of the report that looks at single cases: pictures of some, a scatter of many."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lrsa.data.store import Dataset
from lrsa.evaluation.evaluate import target_names, truth
from lrsa.evaluation.outcome import Evaluation
from lrsa.objectives.protocols import protocol
from lrsa.pointset import PointSet
from lrsa.report import page
from lrsa.report.figures import MOST, comparison, draw_comparison, draw_curve, draw_scatter
from lrsa.report.pictures import Picture, draw_pictures, placed, png
from lrsa.report.triangles import segments_of
from lrsa.surrogate.surrogate import Surrogate, load
from lrsa.training.config import RunConfig

FIELDS = 6
"""Fields of which pictures are drawn."""
SCATTERED, DOTS = 24, 4000
"""Cases and points of the scatter."""


class Shown(NamedTuple):
    """A field of a case: truth, prediction and error on its mesh."""

    label: str
    """Best, median or worst."""
    name: str
    relative_l2: float
    points: int
    images: list[page.Image]
    scales: list[page.Scale]


class Field(NamedTuple):
    title: str
    cases: list[Shown]


@dataclass(frozen=True)
class Cases:
    """The evaluated cases, predicted again one by one."""

    run: Path
    config: RunConfig
    evaluation: Evaluation
    data: Dataset
    surrogate: Surrogate

    @staticmethod
    def of(run: Path, config: RunConfig, evaluation: Evaluation) -> "Cases":
        data = Dataset(Path(evaluation.path), "test")
        return Cases(run, config, evaluation, data, load(run, evaluation.epoch))

    def pictures(self) -> list[Field]:
        """Best, median and worst test case on their mesh, for each field, or the first of many."""
        chosen = _chosen(self.evaluation)
        predicted = [self._predict(index) for index in chosen.values()]
        names = target_names(self.config, len(self.evaluation.fields))
        channels = range(min(FIELDS, len(names)))
        rows = [[comparison(c, u[:, k], p[:, k], k) for c, u, p in predicted] for k in channels]
        images = iter(draw_pictures([picture for field in rows for row in field for picture in row]))
        fields = []
        for channel, field in enumerate(rows):
            drawn = [[next(images) for _ in row] for row in field]
            path, shown = self.run / "figures" / f"cases-{channel}.png", self._titled(names[channel])
            labels = [f"{label}: {self.evaluation.per_case[i]:.3g}" for label, i in chosen.items()]
            draw_comparison(path, labels, field, [image for row in drawn for image in row], shown)
            cases = [
                _shown(label, self.evaluation, index, shown, row, panels)
                for (label, index), row, panels in zip(chosen.items(), field, drawn, strict=True)
            ]
            fields.append(Field(shown, cases))
        return fields

    def scatter(self) -> list[page.Image]:
        """Predicted against true values of each field, at random points of cases of every error."""
        order = _ranked(self.evaluation)
        few = order[np.unique(np.linspace(0, len(order) - 1, SCATTERED).astype(int))]
        drawn = [self._predict(int(index)) for index in few]
        charts, rng = [], np.random.default_rng(0)
        for channel, name in enumerate(target_names(self.config, len(self.evaluation.fields))[:FIELDS]):
            true, predicted = [], []
            for case, u, p in drawn:
                known = np.ones(len(case), bool) if case.u_mask is None else case.u_mask[:, channel]
                some = rng.permutation(np.flatnonzero(known))[: DOTS // len(drawn)]
                true.append(u[some, channel])
                predicted.append(p[some, channel])
            path = self.run / "figures" / f"scatter-{channel}.png"
            draw_scatter(path, np.concatenate(true), np.concatenate(predicted), self._titled(name))
            count = sum(map(len, true))
            words = f"{name} at {count} random points of {len(drawn)} test cases; on the line it is exact."
            charts.append(page.chart(path, f"predicted against true {name}", words))
        return charts

    def curves(self) -> list[page.Image]:
        """Of cases that are curves: each field over the coordinate along which they extend most."""
        charts = []
        for label, index in _chosen(self.evaluation).items():
            case, u, p = self._predict(index)
            lines = segments_of(case)
            if lines is None:
                continue
            axis = int(np.ptp(case.x, axis=0).argmax())
            coordinate = (case.names.coords or tuple("xyz"))[axis]
            for k, name in enumerate(target_names(self.config, u.shape[-1])[:FIELDS]):
                path = self.run / "figures" / f"curve-{label}-{k}.png"
                words = (coordinate, self._titled(name))
                draw_curve(path, case.x[:, axis], lines, u[:, k], p[:, k], words)
                case_name = self.evaluation.table[index].name
                caption = f"{name} over {coordinate}: {label} case, {case_name}."
                charts.append(page.chart(path, f"{name} over {coordinate}", caption))
        return charts

    def _titled(self, name: str) -> str:
        """A field with its unit, and which of its frames is drawn."""
        unit = self.config.schema.names.units.get(name, "")
        shown = f"{name} [{unit}]" if unit and unit != "1" else name
        return shown if self.config.schema.protocol == "static" else f"{shown}, last frame"

    def _predict(self, index: int) -> tuple[PointSet, np.ndarray, np.ndarray]:
        """A case, its truth and its prediction (N, o); of frames the last."""
        how = protocol(self.config.schema.protocol)
        case = self.data[index].strided(self.evaluation.stride)
        u, p = truth(how, case), self.surrogate.predict(case)
        u, p = (u[-1], p[-1]) if u.ndim == 3 else (u, p)
        return placed(case, u), u, p


def _shown(
    label: str, evaluation: Evaluation, index: int, name: str, row: list[Picture], images: list[np.ndarray]
) -> Shown:
    case, (first, _, error) = evaluation.table[index], row
    figures = [
        page.picture(png(image), f"{title} of {name} on {case.name}", title)
        for image, title in zip(images, ("truth", "prediction", "|error|"), strict=True)
    ]
    share = error.high / ((first.high - first.low) or 1.0)
    scales = [
        page.Scale("field", page.ends(first.low, first.high), f"{name}, truth and prediction"),
        page.Scale(
            "error",
            page.ends(0.0, error.high),
            f"|error|: {MOST:.0%} of the points are below {share:.1%} of the range of the truth;"
            f" the largest is {error.largest:.3g}",
        ),
    ]
    return Shown(label, case.name, case.relative_l2, case.points, figures, scales)


def _chosen(evaluation: Evaluation) -> dict[str, int]:
    order = [int(i) for i in _ranked(evaluation)]
    chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
    different = {index: label for label, index in reversed(chosen.items())}
    return {label: index for index, label in reversed(different.items())}


def _ranked(evaluation: Evaluation) -> np.ndarray:
    """The cases from the best to the worst, without those that have no error."""
    errors = np.array(evaluation.per_case)
    return np.argsort(errors, kind="stable")[: max(1, int((~np.isnan(errors)).sum()))]
