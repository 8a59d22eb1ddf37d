"""A point set cut into chunks, and the one walk of all chunks through the blocks of an operator."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.operator import Block, NeuralOperator
from lrsa.models.template import Partial


@dataclass(frozen=True)
class Chunk:
    """Some of the points of a sample (B, n, ·), and their context."""

    x: Tensor
    f: Tensor | None
    context: Context

    def tensors(self) -> list[Tensor]:
        """All tensors, in a fixed order."""
        return [
            value for value in (self.x, self.f, *vars(self.context).values()) if isinstance(value, Tensor)
        ]

    def leaves(self) -> "Chunk":
        """The same values cut off from what made them, asking for gradients where these did."""
        context = {name: _leaf(t) for name, t in vars(self.context).items() if isinstance(t, Tensor)}
        return Chunk(
            _leaf(self.x), None if self.f is None else _leaf(self.f), replace(self.context, **context)
        )


def cut(x: Tensor, f: Tensor | None, context: Context | None, chunk: int) -> list[Chunk]:
    """The points in chunks of so many. The weights are normalised over all of them before."""
    if chunk < 1:
        raise LrsaError(f"a chunk has at least one point, not {chunk}")
    if not x.shape[1] or (f is not None and f.shape[:-1] != x.shape[:-1]):
        there = "nothing" if f is None else tuple(f.shape)
        raise LrsaError(f"x is of shape {tuple(x.shape)} and f of {there}: not the same points, or none")
    context = (context or Context()).normalised()
    for name in ("mask", "weights", "basis"):
        given: Tensor | None = getattr(context, name)
        if given is not None and given.shape[:2] != x.shape[:2]:
            raise LrsaError(
                f"x is of shape {tuple(x.shape)} and {name} of {tuple(given.shape)}: not the same points"
            )
    xs = x.split(chunk, dim=1)
    fs = [None] * len(xs) if f is None else f.split(chunk, dim=1)
    contexts = [context.at(slice(start, start + chunk)) for start in range(0, x.shape[1], chunk)]
    return [Chunk(*args) for args in zip(xs, fs, contexts, strict=True)]


class Walk:
    """The way of all chunks through the model, block by block. Without a graph: run it under `no_grad`.

    Args:
        model: An operator whose mixers fill in the low-rank template.
        chunks: All points of a sample.
        keep: Leave h of every block as it is, for the backward pass, rather than write over it.
    """

    def __init__(self, model: NeuralOperator, chunks: Sequence[Chunk], keep: bool = False) -> None:
        self.model, self.chunks, self.keep = model, chunks, keep
        self.h = self._stored((model.lift(c.x, c.f, c.context) for c in chunks), None)
        """(B, n, d) features of every chunk where the walk has come to."""
        self.partials: list[Partial] = []
        """Of every chunk in this block, if they are to be kept."""

    def blocks(self) -> Iterator[Tensor]:
        """The processed latents of each block; `h` and `partials` are then those at its entry."""
        for block in self.model.each_block():
            partials = (block.partial(h, c.x, c.context) for h, c in self._pairs())
            if self.keep:
                partials = self.partials = self._side_by_side(partials)
            latents = merged(block, partials)
            yield latents
            updated = (block.update(h, c.x, c.context, latents) for h, c in self._pairs())
            self.h = self._stored(updated, None if self.keep else self.h)

    def project(self) -> Tensor:
        """u (B, N, o) at the end of the walk; h is given up on the way."""
        return torch.cat([self.model.project(self.h.pop(0)) for _ in self.chunks], dim=1)

    def _pairs(self) -> Iterator[tuple[Tensor, Chunk]]:
        return zip(self.h, self.chunks, strict=True)

    # What stays must not lie scattered among what goes, or the heap grows to several times of both. So it
    # is copied into memory that is taken at once.

    def _stored(self, values: Iterable[Tensor], room: list[Tensor] | None) -> list[Tensor]:
        for i, value in enumerate(values):
            if room is None or not alike(room[i], value):
                room = [value.new_empty(len(value), c.x.shape[1], value.shape[2]) for c in self.chunks]
            room[i].copy_(value)
        return room or []

    def _side_by_side(self, partials: Iterable[Partial]) -> list[Partial]:
        room: dict[str, Tensor] = {}
        kept: list[Partial] = []
        for i, partial in enumerate(partials):
            tensors = tensors_of(partial)
            room = room or {name: t.new_empty(len(self.chunks), *t.shape) for name, t in tensors.items()}
            for name, value in tensors.items():
                room[name][i] = value
            kept.append(holding(partial, {name: values[i] for name, values in room.items()}))
        return kept


def merged(block: Block, partials: Iterable[Partial]) -> Tensor:
    """The processed latents of all points."""
    return block.low_rank.process(reduce(lambda a, b: a.merge(b), partials).finish())


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def tensors_of(partial: Partial) -> dict[str, Tensor]:
    """Those of its fields that are tensors."""
    return {name: value for name, value in vars(partial).items() if isinstance(value, Tensor)}


def holding(partial: Any, tensors: dict[str, Tensor]) -> Any:
    """The same partial with other tensors; every partial is a dataclass."""
    return replace(partial, **tensors)


def alike(a: Tensor, b: Tensor) -> bool:
    """Whether one fits into the memory of the other."""
    return a.shape == b.shape and a.dtype == b.dtype
