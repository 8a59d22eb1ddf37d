"""Null baselines: what a surrogate must beat to have learned anything.

mean field           the mean of the training cases, point by point; one number where their points differ
nearest case         the fields of the training case whose inputs are nearest
linear regression    least squares from the parameters of the case to the field, point by point; to the mean
                     of the field where points differ. Only where cases have parameters.
last frame           the last frame that is known stays. Only where frames follow from frames.

and, where the points of all cases correspond, those of `fitted`.
"""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from scipy.spatial import KDTree

from lrsa.evaluation.fitted import POD, RADIAL, FittedBaselines
from lrsa.objectives.metrics import mean_of, relative_l2
from lrsa.objectives.protocols import Protocol, protocol
from lrsa.pointset import PointSet, corresponding, scattered
from lrsa.training.config import RunConfig
from lrsa.training.survey import split_cases

DESCRIPTOR = 4096
"""Numbers by which two cases of the same points are compared, at the most."""
DEFINITIONS = {
    "mean field": "the mean of the training cases, point by point (one number where their points differ)",
    "nearest case": "the fields of the training case whose inputs are nearest",
    "linear regression": "least squares from the parameters of the case (globals) to the field, point by"
    " point (to the mean of the field where points differ)",
    "last frame": "the last frame that is known, for all that follow",
    RADIAL: "interpolation between the training cases by radial basis functions of the parameters of the case"
    " (globals), point by point; the kernel is chosen by leaving out each training case in turn",
    POD: "proper orthogonal decomposition of inputs and fields; from the parameters and the leading modes of"
    " the inputs to those of the fields by radial basis functions or ridge regression, chosen likewise",
}


class NullBaselines:
    """Fitted to the training cases once, then asked for each test case."""

    def __init__(self, cases: Sequence[PointSet], protocol: Protocol, fixed: bool) -> None:
        """`fixed`: point i of one case corresponds to point i of every other."""
        self.cases, self.protocol, self.fixed = cases, protocol, fixed
        self.mean, self.regression = self._mean(), self._regression()
        table = np.stack([self._descriptor(case) for case in cases])
        deviation = table.std(0)
        self.shift, self.scale = table.mean(0), np.where(_varies(table), deviation, np.inf)
        self.tree = KDTree((table - self.shift) / self.scale)
        fits = fixed and not scattered(cases)
        self.fitted = FittedBaselines(cases, protocol, self._target) if fits else None

    def predictions(self, case: PointSet) -> dict[str, np.ndarray]:
        """The answer of each null baseline for one case, in the shape of its target."""
        shape = self._target(case).shape
        answers = {"mean field": np.broadcast_to(self.mean, shape), "nearest case": self._nearest(case)}
        if self.regression is not None and case.globals is not None:
            design = np.concatenate([[1.0], self.regression.scaled(case.globals)])
            field = np.tensordot(design, self.regression.coefficients, 1)
            answers["linear regression"] = np.broadcast_to(field, shape)
        if case.u is not None and self.protocol.history:
            answers["last frame"] = np.broadcast_to(case.u[self.protocol.history - 1], shape)
        return answers | (self.fitted.predictions(case, shape) if self.fitted else {})

    def errors(self, cases: Sequence[PointSet]) -> dict[str, np.ndarray]:
        """{name: (S,)} relative L2 of every case."""
        rows = [
            {k: relative_l2(v, self._target(case), case.u_mask) for k, v in self.predictions(case).items()}
            for case in cases
        ]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def _target(self, case: PointSet) -> np.ndarray:
        assert case.u is not None
        return case.u[self.protocol.history :] if case.times is not None else case.u

    def _level(self, case: PointSet) -> np.ndarray:
        """What is averaged: the field where points correspond, else its mean over known points."""
        u = self._target(case).astype(float)
        if self.fixed:
            return u
        known = True if case.u_mask is None else case.u_mask
        counts = np.broadcast_to(known, u.shape).sum(-2, keepdims=True)
        return u.sum(-2, keepdims=True, where=known) / np.maximum(counts, 1)

    def _mean(self) -> np.ndarray:
        return sum(self._level(case) for case in self.cases) / len(self.cases)  # pyright: ignore[reportReturnType]

    def _regression(self) -> "_Regression | None":
        first = self.cases[0]
        if first.globals is None or not len(first.globals):
            return None
        table = np.stack([np.asarray(case.globals, float) for case in self.cases])
        made = _Regression(table)
        # Summed case by case: the pseudo-inverse is small, the fields need not be in memory together.
        made.coefficients = sum(
            np.multiply.outer(column, self._level(case))
            for column, case in zip(made.inverse.T, self.cases, strict=True)
        )  # pyright: ignore[reportAttributeAccessIssue]
        return made

    def _nearest(self, case: PointSet) -> np.ndarray:
        query = (self._descriptor(case) - self.shift) / self.scale
        other = self.cases[int(self.tree.query(query)[1])]
        u = self._target(other)
        if self.fixed:
            return u
        if other.u_mask is None:
            return u[..., KDTree(other.x).query(case.x)[1], :]
        columns = [_from_known(other.x, u[..., c], known, case.x) for c, known in enumerate(other.u_mask.T)]
        return np.stack(columns, axis=-1)

    def _descriptor(self, case: PointSet) -> np.ndarray:
        """What the inputs of a case look like, as a vector of one length for all cases."""
        case = self.protocol.inputs(case)
        parameters = np.zeros(0) if case.globals is None else case.globals.astype(float)
        fields: list[tuple[np.ndarray, np.ndarray]] = [
            (v, np.ones(v.shape, bool)) for v in (case.x, case.f) if v is not None
        ]
        if case.u is not None:
            frames = np.moveaxis(case.u, 0, -2).reshape(len(case), -1)
            fields.append((frames, np.ones(frames.shape, bool)))
        if case.f is not None and case.f_mask is not None:
            fields[1] = (case.f, case.f_mask)
        if self.fixed:
            # Inputs that are known at few points would be lost in a draw from all points.
            pools = [fields] if case.f_mask is None else [[field] for field in fields]
            return np.concatenate([parameters, *map(_drawn, pools)])
        moments = [_moment(m, v, known) for v, known in fields for m in (np.mean, np.std)]
        return np.concatenate([parameters, *moments])


def held_out_errors(config: RunConfig) -> dict[str, float]:
    """Relative L2 of each null baseline on the validation cases of a run, fitted to its training cases."""
    training, validation = split_cases(config)
    if not len(validation):
        return {}
    fixed = corresponding(chain(training, validation))
    found = NullBaselines(training, protocol(config.schema.protocol), fixed).errors(validation)
    return {name: mean_of(errors) for name, errors in found.items()}


class _Regression:
    """Least squares on [1, globals]; globals are scaled, which changes the condition and not the answer."""

    coefficients: np.ndarray

    def __init__(self, table: np.ndarray) -> None:
        deviation = table.std(0)
        self.shift, self.scale = table.mean(0), np.where(_varies(table), deviation, 1.0)
        self.inverse = np.linalg.pinv(np.column_stack([np.ones(len(table)), self.scaled(table)]))

    def scaled(self, values: np.ndarray) -> np.ndarray:
        return (np.asarray(values, float) - self.shift) / self.scale


def _drawn(fields: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Some of the known values (N, k) of these fields, the same ones of every case."""
    values = np.concatenate([v[known].astype(float) for v, known in fields])
    return values[np.random.default_rng(0).permutation(len(values))[:DESCRIPTOR]]


def _moment(moment: Callable[..., np.ndarray], values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(k,) of the known values (N, k) of each column; 0 where none is known."""
    columns = zip(values.T.astype(float), known.T, strict=True)
    return np.array([moment(column[k]) if k.any() else 0.0 for column, k in columns])


def _varies(table: np.ndarray) -> np.ndarray:
    """(S, n) -> (n,) whether a column is more than a constant and its rounding, in whatever units."""
    return table.std(0) > 1e-12 * np.abs(table).max(0)


def _from_known(x: np.ndarray, values: np.ndarray, known: np.ndarray, query: np.ndarray) -> np.ndarray:
    if not known.any():
        return np.zeros((*values.shape[:-1], len(query)), values.dtype)
    return values[..., known][..., KDTree(x[known]).query(query)[1]]
