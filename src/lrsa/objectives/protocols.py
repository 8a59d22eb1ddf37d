"""Protocols: what one training example is, what its loss is, how a whole case is predicted.

static              features -> fields
autoregressive      the last frames -> the next one; taught with the true frames, tested on its own
time-conditioned    features and a time -> the fields at that time; or at all times of a case at once
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lrsa.context import Context, Needs
from lrsa.data.batch import Batch
from lrsa.errors import LrsaError, nearest
from lrsa.pointset import PointSet

Surrogate = Callable[[Tensor, Tensor | None, Context], Tensor]
"""(x, f, context) -> u, all in physical units."""
Loss = Callable[[Tensor, Tensor, Batch], Tensor]
"""(prediction, truth, the batch that they are of) -> one number per case."""


class Protocol(ABC):
    """How a benchmark is learned. The loop knows nothing of it."""

    history = 0
    """Frames of the target that are inputs."""

    def examples(self, case: PointSet) -> int:
        """Training examples in one case."""
        return 1

    def example(self, case: PointSet, index: int) -> PointSet:
        """One of them."""
        return case

    @abstractmethod
    def loss(self, surrogate: Surrogate, batch: Batch, loss: Loss) -> Tensor:
        """The training loss of a batch of examples: its mean over cases."""

    @abstractmethod
    def predict(self, surrogate: Surrogate, batch: Batch) -> Tensor:
        """The prediction for whole cases, in the shape of `truth`."""

    def truth(self, batch: Batch) -> Tensor:
        """What `predict` is compared with."""
        assert batch.u is not None
        return batch.u

    def target(self, case: PointSet) -> np.ndarray:
        """The part of a case's target that is predicted: (N, o), or (T, N, o) frames."""
        assert case.u is not None
        return case.u[self.history :] if case.times is not None else case.u

    def inputs(self, case: PointSet) -> PointSet:
        """The case as the surrogate sees it: its features, without the answer."""
        return replace(case, u=None, times=None)


class Static(Protocol):
    def loss(self, surrogate: Surrogate, batch: Batch, loss: Loss) -> Tensor:
        return loss(self.predict(surrogate, batch), self.truth(batch), batch).mean()

    def predict(self, surrogate: Surrogate, batch: Batch) -> Tensor:
        if batch.times is not None:
            raise LrsaError(
                "the data has frames in time, but its protocol is static. Write it with"
                ' Schema(protocol="autoregressive") or "time-conditioned"'
            )
        return surrogate(batch.x, batch.f, batch.context)


class Autoregressive(Protocol):
    """Frames in, next frame out. Trained one step ahead from true frames, all steps of a case at once."""

    history = 10

    def loss(self, surrogate: Surrogate, batch: Batch, loss: Loss) -> Tensor:
        assert batch.u is not None
        steps = self._steps(batch)
        windows = torch.cat([self._features(batch, batch.u[:, t : t + self.history]) for t in steps])
        truth = torch.cat([batch.u[:, t + self.history] for t in steps])
        whole = _repeat(batch, len(steps))
        return loss(surrogate(whole.x, windows, whole.context), truth, whole).mean()

    def predict(self, surrogate: Surrogate, batch: Batch) -> Tensor:
        assert batch.u is not None
        window, frames = batch.u[:, : self.history], []
        for _ in self._steps(batch):
            frame = surrogate(batch.x, self._features(batch, window), batch.context)
            window = torch.cat([window[:, 1:], frame[:, None]], dim=1)
            frames.append(frame)
        return torch.stack(frames, dim=1)

    def truth(self, batch: Batch) -> Tensor:
        assert batch.u is not None
        return batch.u[:, self.history :]

    def inputs(self, case: PointSet) -> PointSet:
        assert case.u is not None
        assert case.times is not None
        return replace(case, u=case.u[: self.history], times=case.times[: self.history])

    def _steps(self, batch: Batch) -> range:
        frames = 0 if batch.times is None else batch.times.shape[1]
        if frames <= self.history:
            raise LrsaError(
                f"an autoregressive case needs more than {self.history} frames in time, not {frames}."
                " Write it with more of them, or with another protocol"
            )
        return range(frames - self.history)

    def _features(self, batch: Batch, window: Tensor) -> Tensor:
        frames = window.transpose(1, 2).flatten(2)  # (B, N, history · o)
        return frames if batch.f is None else torch.cat([batch.f, frames], dim=-1)


class Windows(Autoregressive):
    """Each (case, next frame) is one example: a step sees frames of several cases, which differ more."""

    def examples(self, case: PointSet) -> int:
        return 0 if case.times is None else max(0, len(case.times) - self.history)

    def example(self, case: PointSet, index: int) -> PointSet:
        return case.window(index, self.history + 1)


class TimeConditioned(Protocol):
    """Each (case, time) is one example."""

    def examples(self, case: PointSet) -> int:
        if case.times is None:
            raise LrsaError("a time-conditioned case needs frames in time, and this one has none")
        return len(case.times)

    def example(self, case: PointSet, index: int) -> PointSet:
        return case.frame(index)

    def loss(self, surrogate: Surrogate, batch: Batch, loss: Loss) -> Tensor:
        assert batch.u is not None
        return loss(surrogate(batch.x, batch.f, batch.context), batch.u, batch).mean()

    def predict(self, surrogate: Surrogate, batch: Batch) -> Tensor:
        assert batch.times is not None
        frames = [
            surrogate(batch.x, batch.f, replace(batch.context, time=batch.times[:, t]))
            for t in range(batch.times.shape[1])
        ]
        return torch.stack(frames, dim=1)


class AllFrames(TimeConditioned):
    """All frames of a case are one example: for models that have time as an axis."""

    def examples(self, case: PointSet) -> int:
        return min(super().examples(case), 1)

    def example(self, case: PointSet, index: int) -> PointSet:
        return case

    def loss(self, surrogate: Surrogate, batch: Batch, loss: Loss) -> Tensor:
        return loss(self.predict(surrogate, batch), self.truth(batch), batch).mean()

    def predict(self, surrogate: Surrogate, batch: Batch) -> Tensor:
        return surrogate(batch.x, batch.f, replace(batch.context, time=batch.times))


PROTOCOLS: dict[str, type[Protocol]] = {
    "static": Static,
    "autoregressive": Autoregressive,
    "time-conditioned": TimeConditioned,
}


def protocol(name: str, needs: Needs | None = None) -> Protocol:
    """The protocol of that name, as a model follows it that needs this."""
    if name not in PROTOCOLS:
        raise LrsaError(f'no protocol "{name}".{nearest(name, PROTOCOLS)}')
    return AllFrames() if needs is not None and needs.time_axis else PROTOCOLS[name]()


def _repeat(batch: Batch, times: int) -> Batch:
    """A batch laid out `times` times, without its features and frames."""

    def repeated(part: Batch | Context) -> dict[str, Tensor]:
        tensors = {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
        return {k: v.repeat(times, *[1] * (v.ndim - 1)) for k, v in tensors.items() if k != "edges"}

    context, points = repeated(batch.context), batch.x.shape[0] * batch.x.shape[1]
    if (edges := batch.context.edges) is not None:
        context["edges"] = torch.cat([edges + k * points for k in range(times)], dim=1)
    bare = replace(batch, f=None, u=None, times=None, context=replace(batch.context, **context))
    return replace(bare, **repeated(bare))
