"""The processes of one training or prediction: who they are, and what each of them holds.

They form a table (data, points). Each row is a group that shares the cases of its part of a batch, and deals
their points out along the row. `torchrun` starts them, on one machine or on many; alone, a process is a table
of one.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from lrsa.errors import LrsaError
from lrsa.parallel.group import Group, answered
from lrsa.parallel.meeting import meet

PATIENCE = 1800.0
"""Seconds after which a process that waits for another gives up: the first one may make the data alone."""
VARIABLE = "LRSA_PATIENCE"
"""Says another number of them."""
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells every process that it starts."""
T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among the others; without any, it is alone."""

    everyone: Group | None = None
    data: Group | None = None
    """Those that hold the same points of other cases."""
    points: Group | None = None
    """Those that hold other points of the same cases."""

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.everyone is None or self.everyone.rank == 0

    @property
    def shared(self) -> Group | None:
        """Those that hold other points of the same cases, where there are any."""
        return self.points if self.points is not None and self.points.size > 1 else None

    def dealt(self, items: Sequence[T]) -> Sequence[T]:
        """Of the cases of a step, those of this process."""
        return items if self.data is None else items[self.data.rank :: self.data.size]

    def part(self, count: int) -> slice:
        """Of the points of a case, those of this process: nearly equal shares, in their order."""
        if self.points is None:
            return slice(0, count)
        k, size = self.points.rank, self.points.size
        if count < size:
            raise LrsaError(f"{size} processes cannot share a case of {count} points. Use fewer")
        return slice(k * count // size, (k + 1) * count // size)

    def sum_gradients(self, model: nn.Module) -> None:
        """Those of all processes, in one exchange: each has the gradient of its own part of the loss."""
        if self.everyone is None:
            return
        there = [p for p in model.parameters() if p.requires_grad]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in there])
        total = self.everyone.reduced(flat)
        for p, gradient in zip(there, total.split([p.numel() for p in there]), strict=True):
            p.grad = gradient.view_as(p)

    def sum_over_cases(self, values: Tensor) -> Tensor:
        """A number that every row has a part of."""
        return values if self.data is None else self.data.reduced(values)

    def wait(self) -> None:
        """Until all have come here."""
        if self.everyone is not None:
            with answered():
                dist.barrier(self.everyone.handle)

    def tell(self, value: T | None) -> T:
        """What the first process says, to all."""
        said = [value]
        if self.everyone is not None:
            with answered():
                dist.broadcast_object_list(said, 0, self.everyone.handle)
        assert said[0] is not None
        return said[0]

    def heard(self, value: T) -> list[T]:
        """What every process says, to all, in their order."""
        if self.everyone is None:
            return [value]
        said: list[Any] = [None] * self.everyone.size
        with answered():
            dist.all_gather_object(said, value, self.everyone.handle)
        return said


def started() -> bool:
    """Whether torchrun has started this process beside others."""
    there = [name for name in VARIABLES if name in os.environ]
    if there and "WORLD_SIZE" in there and len(there) < len(VARIABLES):
        missing = ", ".join(name for name in VARIABLES if name not in there)
        raise LrsaError(f"the environment of torchrun lacks {missing}. Start with `torchrun -m lrsa ...`")
    return len(there) == len(VARIABLES)


def processes() -> int:
    """How many torchrun has started, this one among them; 1 where it has started none."""
    return int(os.environ["WORLD_SIZE"]) if started() else 1


@contextmanager
def joined(shard_points: int = 1, device: str = "cpu") -> Iterator[Ranks]:
    """This process among those that torchrun has started; alone where it has started none."""
    if not started():
        if shard_points > 1:
            raise LrsaError(
                f"--shard-points {shard_points} needs as many processes. Add --nproc {shard_points}"
            )
        yield Ranks()
        return
    size, kind = processes(), torch.device(device).type
    if shard_points < 1 or size % shard_points:
        raise LrsaError(f"--shard-points {shard_points} does not divide {size} processes")
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with answered():
        meet("nccl" if kind == "cuda" else "gloo", _patience())
    try:
        table = init_device_mesh(
            kind, (size // shard_points, shard_points), mesh_dim_names=("data", "points")
        )
        world = dist.group.WORLD
        assert world is not None
        yield Ranks(Group(world), Group(table.get_group("data")), Group(table.get_group("points")))
    finally:
        dist.destroy_process_group()


def _patience() -> timedelta:
    given = os.environ.get(VARIABLE, str(PATIENCE))
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds < 1e9:
        raise LrsaError(f"{VARIABLE} is a number of seconds, at least 1, not {given}")
    return timedelta(seconds=seconds)


def bytes_sent(groups: Iterable[Group | None]) -> int:
    """That this process has given to reductions."""
    return sum(group.sent for group in groups if group is not None)
