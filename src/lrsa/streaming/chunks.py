"""A point set cut into chunks, and their walk through the blocks of an operator."""

from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.template import Others, Partial
from lrsa.streaming.walk import Chunk, Stages, Walk, met


def cut(
    x: Tensor, f: Tensor | None, context: Context | None, chunk: int, others: Others | None = None
) -> list[Chunk]:
    """The points in chunks of so many. The weights are normalised before, over those of others too."""
    if chunk < 1:
        raise LrsaError(f"a chunk has at least one point, not {chunk}")
    (context := context or Context()).check(x)
    if not x.shape[1] or (f is not None and f.shape[:-1] != x.shape[:-1]):
        there = "nothing" if f is None else tuple(f.shape)
        raise LrsaError(f"x is of shape {tuple(x.shape)} and f of {there}: not the same points, or none")
    context = context.normalised() if others is None else context.normalised(others.total)
    xs = x.split(chunk, dim=1)
    fs = [None] * len(xs) if f is None else f.split(chunk, dim=1)
    contexts = [context.at(slice(start, start + chunk)) for start in range(0, x.shape[1], chunk)]
    return [Chunk(*args) for args in zip(xs, fs, contexts, strict=True)]


class Chunked(Walk):
    """Chunk after chunk, without a graph: run it under `no_grad`. A block writes over h of the one before."""

    def meet(self, block: Stages) -> Tensor:
        return met(block, self.partials(block), self.others)

    def partials(self, block: Stages) -> Iterator[Partial]:
        """Of every chunk."""
        return (block.partial(h, c.x, c.context) for h, c in zip(self.h, self.chunks, strict=True))

    def stored(self, values: Iterable[Tensor]) -> list[Tensor]:
        return copied(values, self.h, self.chunks)


def copied(values: Iterable[Tensor], room: list[Tensor], chunks: Sequence[Chunk]) -> list[Tensor]:
    """The values (B, n, ·) of all chunks in this room, or in another where they do not fit.

    What stays must not lie scattered among what goes, or the heap grows to several times of both. So it is
    copied into memory that is taken at once.
    """
    for i, value in enumerate(values):
        if not room or (room[i].shape, room[i].dtype) != (value.shape, value.dtype):
            room = [value.new_empty(len(value), c.x.shape[1], value.shape[2]) for c in chunks]
        room[i].copy_(value)
    return room
