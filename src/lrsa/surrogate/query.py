"""Predictions at query points: encode the case on its mesh, decode it anywhere."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import KDTree

from lrsa.data.batch import collate
from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.mesh.tables import delimiter
from lrsa.models.operator import NeuralOperator
from lrsa.pointset import Names, PointSet
from lrsa.streaming.stream import decode_streamed, encode_streamed
from lrsa.surrogate.ensemble import mean_of
from lrsa.surrogate.surrogate import WHOLE, Surrogate, finite


@dataclass(frozen=True)
class Query:
    """The points of a CSV file, and whatever else is in its columns."""

    path: Path
    header: list[str]
    rows: list[list[str]]

    @staticmethod
    def read(path: Path) -> "Query":
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                lines = csv.reader(file, delimiter=delimiter(path))
                header, *rows = [[word.strip() for word in row] for row in lines if row]
        except FileNotFoundError as error:
            raise LrsaError(f"{path} does not exist") from error
        except (OSError, ValueError, csv.Error) as error:
            raise LrsaError(f"{path} is not a readable CSV file with a header") from error
        uneven = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
        if uneven is not None or not rows:
            what = "no points" if uneven is None else f"another number of columns in row {uneven + 2}"
            raise LrsaError(f"{path} has {what}. It takes a header and one point per row")
        return Query(path, header, rows)

    def column(self, name: str) -> np.ndarray | None:
        """(Q,) the numbers of a column, where there is one of that name."""
        if name not in self.header:
            return None
        words = [row[self.header.index(name)] for row in self.rows]
        values = np.empty(len(words))
        for i, word in enumerate(words):
            try:
                values[i] = float(word)
            except ValueError:
                raise LrsaError(
                    f'{self.path} has no number in column "{name}" of row {i + 2}, but "{word}". Give one, or'
                    " leave the row out"
                ) from None
        return values

    def coordinates(self, names: tuple[str, ...], dropped: Mapping[int, float]) -> np.ndarray:
        """(Q, p); axes that the surrogate does not see may be missing."""
        columns = []
        for axis, name in enumerate(names):
            if (values := self.column(name)) is not None:
                columns.append(values)
            elif axis in dropped:
                columns.append(np.full(len(self.rows), dropped[axis]))
            else:
                raise LrsaError(
                    f'{self.path} has no column "{name}" (it has: {", ".join(self.header)}):'
                    f" query points are {', '.join(names)}"
                )
        points = np.stack(columns, axis=1).astype(np.float32)
        if not np.isfinite(points).all():
            raise LrsaError(f"{self.path} has NaN or infinite coordinates")
        return points

    def points(
        self, case: PointSet, names: Names, dropped: Mapping[int, float]
    ) -> tuple[PointSet, list[str]]:
        """The query points with features: their own columns, else those of the nearest point of the case.

        Also the channels that were taken from the nearest point.
        """
        x = self.coordinates(names.coords or tuple("xyz"[: case.x.shape[1]]), dropped)
        if case.f is None:
            return PointSet(x, names=names), []
        nearest = KDTree(case.x).query(x)[1]
        f = np.array(case.f[nearest], np.float32)
        known = None if case.f_mask is None else case.f_mask[nearest]
        labels = names.inputs if len(names.inputs) == f.shape[1] else ()
        for i, name in enumerate(labels):
            if (values := self.column(name)) is not None:
                f[:, i] = values
                if known is not None:
                    known[:, i] = True
        taken = [name for name in labels if name not in self.header] if labels else ["all inputs"]
        made = PointSet(x, f, f_mask=known, names=names)
        made.check_finite(str(self.path))
        return made, taken

    def write(self, out: Path, fields: Mapping[str, np.ndarray], time: np.ndarray | None = None) -> None:
        """The rows as they came, then (for each time) a column for every field (Q,) or (T, Q)."""
        kept = [i for i, name in enumerate(self.header) if name not in fields and name != "time"]
        with atomic(out) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*(self.header[i] for i in kept), *([] if time is None else ["time"]), *fields])
            for t in range(1 if time is None else len(time)):
                stamp = [] if time is None else [float(time[t])]
                columns = [values if time is None else values[t] for values in fields.values()]
                for row, values in zip(self.rows, zip(*columns, strict=True), strict=True):
                    writer.writerow([*(row[i] for i in kept), *stamp, *values])


def predict_at(surrogate: Surrogate, case: PointSet, query: PointSet) -> np.ndarray:
    """The fields (Q, o) at the query points of a case, or (T, Q, o) where the case has times."""
    return mean_of(np.stack([_predict_at(each, case, query) for each in (surrogate, *surrogate.others)]))


@torch.inference_mode()
def _predict_at(surrogate: Surrogate, case: PointSet, query: PointSet) -> np.ndarray:
    model = surrogate.model
    if not isinstance(model, NeuralOperator):
        raise LrsaError(f"--at needs a model that decodes at any point; {type(model).__name__} does not")
    model.check_pointwise("predict at query points")
    device = surrogate.normaliser.x_shift.device
    batch = surrogate.collate([case]).to(device)
    asked = collate([surrogate.normaliser.filled(query)]).to(device)
    surrogate.check(batch.x, batch.f)
    times = [None] if batch.times is None else list(batch.times.unbind(1))
    frames = []
    for time in times:
        context = batch.context if time is None else replace(batch.context, time=time)
        inputs = surrogate.normalise(batch.x, batch.f, context)
        state = encode_streamed(model, *inputs, kernels=surrogate.kernels)
        x, f, _ = surrogate.normalise(asked.x, asked.f, context)
        u = decode_streamed(model, state, x, f, WHOLE, surrogate.kernels)
        u = surrogate.normaliser.targets(u, asked.f)
        frames.append(finite(u[0]).cpu().numpy())
    return np.stack(frames) if batch.times is not None else frames[0]
