"""Null baselines: what a surrogate must beat to have learned anything.

mean field      the mean of the training cases, point by point; one number where their points differ
nearest case    the fields of the training case whose inputs are nearest
"""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import KDTree

from lrsa.data.pointset import PointSet
from lrsa.evaluation.metrics import relative_l2
from lrsa.training.protocols import Protocol

DESCRIPTOR = 4096
"""Numbers by which two cases of the same points are compared, at the most."""


class NullBaselines:
    """Fitted to the training cases once, then asked for each test case."""

    def __init__(self, cases: Sequence[PointSet], protocol: Protocol, fixed: bool) -> None:
        """`fixed`: point i of one case corresponds to point i of every other."""
        self.cases, self.protocol, self.fixed = cases, protocol, fixed
        self.mean = self._mean()
        table = np.stack([self._descriptor(case) for case in cases])
        deviation = table.std(0)
        self.shift, self.scale = table.mean(0), np.where(deviation > 1e-12, deviation, np.inf)
        self.tree = KDTree((table - self.shift) / self.scale)

    def predictions(self, case: PointSet) -> dict[str, np.ndarray]:
        """The answer of each null baseline for one case, in the shape of its target."""
        return {
            "mean field": np.broadcast_to(self.mean, self._target(case).shape),
            "nearest case": self._nearest(case),
        }

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

    def _mean(self) -> np.ndarray:
        targets = (self._target(case).astype(float) for case in self.cases)
        if self.fixed:
            return sum(targets) / len(self.cases)  # pyright: ignore[reportReturnType]
        return np.mean([u.mean(-2, keepdims=True) for u in targets], axis=0)

    def _nearest(self, case: PointSet) -> np.ndarray:
        query = (self._descriptor(case) - self.shift) / self.scale
        other = self.cases[int(self.tree.query(query)[1])]
        u = self._target(other)
        if self.fixed:
            return u
        return u[..., KDTree(other.x).query(case.x)[1], :]

    def _descriptor(self, case: PointSet) -> np.ndarray:
        """What the inputs of a case look like, as a vector of one length for all cases."""
        case = self.protocol.inputs(case)
        parameters = np.zeros(0) if case.globals is None else case.globals.astype(float)
        fields = [v for v in (case.x, case.f) if v is not None]
        if case.u is not None:
            fields.append(np.moveaxis(case.u, 0, -2).reshape(len(case), -1))
        if self.fixed:
            values = np.concatenate([v.astype(float).ravel() for v in fields])
            few = np.random.default_rng(0).permutation(len(values))[:DESCRIPTOR]
            return np.concatenate([parameters, values[few]])
        moments = [m(v.astype(float), axis=0) for v in fields for m in (np.mean, np.std)]
        return np.concatenate([parameters, *moments])
