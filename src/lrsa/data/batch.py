"""From cases to batches of tensors: padding, context, and reading ahead of the training step."""

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lrsa.context import Context
from lrsa.pointset import PointSet

AHEAD = 8
"""Batches that are read while the model works."""
TOGETHER = 4
"""Of them, those made in a row: to wake the thread for each costs the model more than the batch does."""


@dataclass(frozen=True)
class Batch:
    """Cases side by side, in physical units."""

    x: Tensor
    """(B, N, p)."""
    f: Tensor | None
    """(B, N, c)."""
    u: Tensor | None
    """(B, N, o), or (B, T, N, o) frames."""
    known: Tensor | None
    """(B, N, o) bool: the targets that count. None: all of them."""
    context: Context
    times: Tensor | None = None
    """(B, T) times of the frames."""
    surface: Tensor | None = None
    """(B, N) bool: the points on the surface of the body."""
    total: Callable[[Tensor], Tensor] | None = None
    """Where other processes hold the rest of the points: sums (B,) over all of them."""
    share: float = 1.0
    """Of the cases of a step, the part that is here; other processes have the others."""

    def __len__(self) -> int:
        return len(self.x)

    def at(self, points: slice) -> "Batch":
        """Some of the points, in memory of their own."""
        parts = {"x": self.x, "f": self.f, "known": self.known, "surface": self.surface}
        cut = {name: None if value is None else value[:, points].clone() for name, value in parts.items()}
        u = None if self.u is None else self.u[..., points, :].clone()
        return replace(self, **cut, u=u, context=self.context.at(points))  # pyright: ignore[reportArgumentType]

    def to(self, device: torch.device | str) -> "Batch":
        moved = {
            name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
            for name, value in vars(self).items()
        }
        return replace(self, **{**moved, "context": self.context.to(device)})


def collate(cases: Sequence[PointSet], weights: bool = False) -> Batch:
    """One batch; cases of fewer points are padded, and the mask says where.

    Weights go along only where they differ and are wanted, a mask only where something is padded: the
    attention then runs without a bias.
    """
    longest = max(len(case) for case in cases)
    ragged = any(len(case) != longest for case in cases)
    mask = torch.arange(longest) < torch.tensor([[len(case)] for case in cases]) if ragged else None
    known = _stack(cases, "u_mask", longest)
    u = _stack(cases, "u", longest)
    if mask is not None and u is not None:
        known = mask[..., None].expand(*mask.shape, u.shape[-1]) & (True if known is None else known)
    measures = _stack(cases, "weights", longest) if weights and not evenly_weighted(cases) else None
    time = _stack(cases, "time", longest)
    context = Context(
        mask=mask,
        weights=measures,
        grid=cases[0].grid if len({case.grid for case in cases}) == 1 else None,
        time=time,
        globals=_stack(cases, "globals", longest),
    )
    x = _stack(cases, "x", longest)
    assert x is not None
    f, times, surface = (_stack(cases, name, longest) for name in ("f", "times", "surface"))
    return Batch(x, f, u, known, context, times, surface)


def order(count: int, seed: int, epoch: int) -> np.ndarray:
    """The order in which an epoch visits its examples; it depends on nothing else."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def prefetch(make: Callable[[Any], Batch], keys: Iterable[Any]) -> Generator[Batch]:
    """`make(key)` for every key in turn, by a thread that begins at once and works ahead of the consumer."""
    batches = _prefetch(make, keys)
    next(batches)
    return batches


def _prefetch(make: Callable[[Any], Batch], keys: Iterable[Any]) -> Generator[Any]:
    ready: queue.SimpleQueue[Batch | BaseException | None] = queue.SimpleQueue()
    room, stop = threading.Semaphore(AHEAD), threading.Event()

    def work() -> None:
        try:
            for key in keys:
                room.acquire()
                if stop.is_set():
                    return
                ready.put(make(key))
            ready.put(None)
        except BaseException as error:
            ready.put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield  # the thread has begun
        taken = 0
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            taken += 1
            if taken % TOGETHER == 0:
                room.release(TOGETHER)
            yield item
    finally:
        stop.set()
        room.release()
        thread.join()


def _stack(cases: Sequence[PointSet], name: str, longest: int) -> Tensor | None:
    values = [getattr(case, name) for case in cases]
    if values[0] is None:
        return None
    if name not in ("x", "f", "u", "u_mask", "weights", "surface"):
        return torch.from_numpy(np.stack(values).astype(np.float32, copy=False))
    axis = values[0].ndim - 2 if name == "u" else 0
    shape = list(values[0].shape)
    shape[axis] = longest
    # Each value is copied once, to where it stays; behind the points of a shorter case are zeros.
    stacked = np.zeros((len(values), *shape), bool if values[0].dtype == bool else np.float32)
    for row, value in zip(stacked, values, strict=True):
        row[(slice(None),) * axis + (slice(value.shape[axis]),)] = value
    return torch.from_numpy(stacked)


def pad(value: np.ndarray, longest: int, axis: int) -> np.ndarray:
    """Zeros behind the points, up to the longest case."""
    missing = longest - value.shape[axis]
    if not missing:
        return value
    widths = [(0, missing if a == axis else 0) for a in range(value.ndim)]
    return np.pad(value, widths)


def evenly_weighted(cases: Iterable[PointSet]) -> bool:
    """Whether no case has weights that differ from point to point."""
    return all(case.weights is None or np.ptp(case.weights) <= 1e-6 * case.weights.max() for case in cases)
