"""A group of processes that share something: the sums, maxima and copies that they exchange.

Gradients follow from who uses a sum. `total` is used by every process for its own part of the work, so its
gradient is the sum of theirs. `common` is used by all of them alike, as a loss is: its gradient is that of
each.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lrsa.errors import Failure


@dataclass
class Group:
    """Processes, of which this one is the `rank`-th."""

    handle: dist.ProcessGroup
    sent: int = 0
    """Bytes that this process has given to reductions so far."""

    @property
    def size(self) -> int:
        return self.handle.size()

    @property
    def rank(self) -> int:
        return self.handle.rank()

    def total(self, values: Tensor) -> Tensor:
        """The sum over the processes, each of which goes its own way from there."""
        return _Total.apply(values, self, True)  # pyright: ignore[reportReturnType]

    def common(self, values: Tensor) -> Tensor:
        """The sum over the processes, all of which compute the same from there."""
        return _Total.apply(values, self, False)  # pyright: ignore[reportReturnType]

    def most(self, values: Tensor) -> Tensor:
        """The maximum over the processes; a constant."""
        return self.reduced(values.detach(), dist.ReduceOp.MAX)

    def reduced(self, values: Tensor, how: Any = dist.ReduceOp.SUM) -> Tensor:
        """A reduced copy, without a graph."""
        made = values.detach().clone(memory_format=torch.contiguous_format)
        with answered():
            dist.all_reduce(made, how, self.handle)
        self.sent += made.numel() * made.element_size()
        return made


@contextmanager
def answered() -> Iterator[None]:
    """An exchange with other processes, one of which may have died, or be cut off."""
    try:
        yield
    except RuntimeError as error:
        reason = re.sub(r"^\[.*?\] ", "", str(error).splitlines()[0])[:160]  # without the line of its source
        raise Failure(
            f"another process has ended or does not answer ({reason}). What ended it is said above or on its"
            " machine. `lrsa resume RUN` goes on with a training from its last epoch"
        ) from error


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, group: Group, each: bool) -> Tensor:
        ctx.group, ctx.each = group, each
        return group.reduced(values)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        (gradient,) = gradients
        return ctx.group.reduced(gradient) if ctx.each else gradient, None, None
