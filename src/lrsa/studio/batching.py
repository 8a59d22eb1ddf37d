"""Predictions for many callers at once: those that wait for the same surrogate go through it together.

One thread predicts. While it is busy, cases wait; when it is free, it takes the oldest and all that fit into
one batch with it. Nobody waits for a batch to fill: a case that comes alone is predicted alone, with the bits
of `Surrogate.predict`.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import torch

from lrsa.context import needs_of
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.surrogate.surrogate import Surrogate

MOST_POINTS = 8192
"""Padded points of a batch. Small cases gain by it, on a CPU 3.7 times at 16 × 100 points and 1.2 times at
16 × 500 of different lengths; larger batches only make the first wait for the last."""
LEAST_REAL = 0.5
"""Of the points of a batch, the share that must not be padding."""


class Refused(LrsaError):
    """The service cannot take the case now; another time it can."""


@dataclass(frozen=True, eq=False)
class _Waiting:
    surrogate: Surrogate
    case: PointSet
    result: "Future[np.ndarray]" = field(default_factory=Future)

    @property
    def kind(self) -> Hashable:
        """Only cases of one kind make a batch: of one surrogate, with the same arrays, on one grid."""
        case = self.case
        grid = case.grid if needs_of(self.surrogate.model).grid else None
        frames = None if case.times is None else len(case.times)
        return id(self.surrogate), tuple(case.arrays()), grid, frames


class Batcher:
    """The thread that predicts, and what waits for it.

    Args:
        most_waiting: Cases that may wait; what comes beyond is refused.
        threads: Of torch (default: its own choice).
        together: Cases that may be predicted together.
        tidy: Called after every batch, by the thread that predicts.
    """

    def __init__(
        self,
        most_waiting: int = 256,
        threads: int | None = None,
        together: int = 64,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self.most_waiting, self.threads, self.together, self.tidy = most_waiting, threads, together, tidy
        self.batches = self.cases = 0
        """Those that were predicted."""
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="lrsa-predict", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def predict(self, surrogate: Surrogate, case: PointSet) -> np.ndarray:
        """(K, ..., N, o) what every member says, to rounding where others are predicted with the case."""
        one = _Waiting(surrogate, case)
        with self._changed:
            if self._stopping:
                raise Refused("the service is stopping")
            if len(self._waiting) >= self.most_waiting:
                raise Refused(f"{self.most_waiting} cases are waiting already. Try again in a moment")
            self._waiting.append(one)
            self._changed.notify()
        return await asyncio.wrap_future(one.result)

    def stop(self) -> None:
        """Refuse what waits and what comes; what is being predicted is finished."""
        with self._changed:
            self._stopping = True
            for one in self._waiting:
                if one.result.set_running_or_notify_cancel():
                    one.result.set_exception(Refused("the service is stopping"))
            self._waiting.clear()
            self._changed.notify()

    def join(self) -> None:
        """Wait for the thread, once it was stopped."""
        self._thread.join()

    def _work(self) -> None:
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        while True:
            with self._changed:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                if not self._waiting:
                    return
                group = self._take()
            # Those who gave up waiting are not predicted.
            group = [one for one in group if one.result.set_running_or_notify_cancel()]
            if group:
                self.batches, self.cases = self.batches + 1, self.cases + len(group)
                _predict(group)
                self.tidy()

    def _take(self) -> list[_Waiting]:
        """The one that waits longest, and those that go with it."""
        first = self._waiting.popleft()
        group, longest, real = [first], len(first.case), len(first.case)
        for one in list(self._waiting):
            if len(group) >= self.together:
                break
            if one.kind != first.kind:
                continue
            points = max(longest, len(one.case))
            padded = points * (len(group) + 1)
            if padded <= MOST_POINTS and real + len(one.case) >= LEAST_REAL * padded:
                group.append(one)
                self._waiting.remove(one)
                longest, real = points, real + len(one.case)
        return group


def _predict(group: list[_Waiting]) -> None:
    """Give every one its prediction, or its error."""
    try:
        predictions = group[0].surrogate.answers([one.case for one in group])
    except Exception as error:
        if len(group) > 1:  # one of them is to blame: the others shall not suffer
            for one in group:
                _predict([one])
            return
        group[0].result.set_exception(_named(error))
        return
    for one, prediction in zip(group, predictions, strict=True):
        one.result.set_result(prediction)


def _named(error: Exception) -> LrsaError:
    """What is said of an error in a prediction."""
    if isinstance(error, LrsaError):
        return error
    if isinstance(error, MemoryError) or "alloc" in str(error):
        return Refused("the case does not fit into the memory that is free")
    # A grid of the wrong number of axes, or of one point: torch says of which shapes it makes nothing.
    logging.getLogger(__name__).warning("a prediction failed", exc_info=error)
    reason = (str(error).splitlines() or [""])[0]
    return LrsaError(f"the model makes nothing of this case ({type(error).__name__}: {reason[:200]})")
