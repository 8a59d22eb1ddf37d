"""The null baselines that are fitted: radial basis functions and POD regression, on cases of one mesh."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from lrsa.models.pod import PodRegression
from lrsa.objectives.protocols import Protocol
from lrsa.pointset import PointSet

RADIAL, POD = "radial basis functions", "POD regression"
MOST_CASES, MOST_NUMBERS = 2000, 10**8
"""Of the training cases, so many from the first on, and no more numbers than fit into memory with ease."""
FEWEST = 3
"""Cases below which nothing is fitted."""


class FittedBaselines:
    """Fitted to cases whose points correspond; `target` gives the fields of a case."""

    def __init__(
        self, cases: Sequence[PointSet], protocol: Protocol, target: Callable[[PointSet], np.ndarray]
    ) -> None:
        self.protocol, self.models = protocol, dict[str, PodRegression]()
        mask = cases[0].u_mask  # that of all
        size = max(target(cases[0]).size, self._inputs(cases[0]).size)
        some = [cases[i] for i in range(min(len(cases), MOST_CASES, MOST_NUMBERS // size))]
        if len(some) < FEWEST:
            return
        u = _rows([target(case) if mask is None else np.where(mask, target(case), 0) for case in some])
        self.u_scale, u = _scaled(u, target(cases[0]).shape[-1])
        g = torch.stack([_parameters(case) for case in some])
        if g.shape[1]:
            self._fit(RADIAL, PodRegression(len(some), "rbf"), g, u.new_zeros(len(some), 0), u)
        inputs = _rows([self._inputs(case) for case in some])
        self.a_scale, inputs = _scaled(inputs, self._inputs(cases[0]).shape[-1])
        self._fit(POD, PodRegression(), g, inputs, u)

    def predictions(self, case: PointSet, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
        """The answer of each for one case, in the shape of its target."""
        answers = {}
        for name, model in self.models.items():
            inputs = torch.from_numpy(np.float32(self._inputs(case) / self.a_scale)).reshape(1, -1)
            u = model(_parameters(case)[None], inputs if name == POD else inputs[:, :0])
            answers[name] = u[0].numpy().reshape(shape) * self.u_scale
        return answers

    def _fit(self, name: str, model: PodRegression, g: Tensor, inputs: Tensor, u: Tensor) -> None:
        model.fit(g, inputs, u)
        self.models[name] = model

    def _inputs(self, case: PointSet) -> np.ndarray:
        """(N, k) all that is known at the points: places, features, the first frames."""
        case = self.protocol.inputs(case)
        parts = [case.x]
        if case.f is not None:
            parts.append(case.f if case.f_mask is None else np.where(case.f_mask, case.f, 0))
        if case.u is not None:
            parts.append(np.moveaxis(case.u, 0, -2).reshape(len(case), -1))
        return np.concatenate(parts, axis=-1)


def _rows(fields: Sequence[np.ndarray]) -> Tensor:
    """(S, ...) in single precision, as the fields are."""
    return torch.from_numpy(np.stack([np.asarray(field, np.float32).ravel() for field in fields]))


def _scaled(rows: Tensor, channels: int) -> tuple[np.ndarray, Tensor]:
    """(channels,) deviations, and the rows (S, M) in units of them: modes weigh all fields alike."""
    values = rows.view(-1, channels).double()
    scale = values.std(0, correction=0) if len(values) > 1 else values.new_ones(channels)
    scale = torch.where(scale > 1e-12 * values.abs().amax(0), scale, 1.0)
    scaled = (rows.view(-1, channels) / scale).float().view_as(rows)
    return scale.numpy(), scaled


def _parameters(case: PointSet) -> Tensor:
    return torch.from_numpy(np.zeros(0) if case.globals is None else np.asarray(case.globals, np.float64))
