"""The one walk of points through an operator that halts in every block, where they meet.

Bare `model(x, f)` passes its blocks without a halt. To encode, to stream and to train by chunks is to walk:
outside of the latents of a block each point is by itself (section 3.2 of the paper), so that one walk
differs from another only in how points meet: all at once here, in merged partials in `chunks`, and either way
with those of other processes. What computes the stages of a block, torch or kernels, is chosen in
`kernels.stages`, for every walk in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from lrsa.context import Context
from lrsa.kernels.stages import KernelBlock, stages_of
from lrsa.models.block import Block
from lrsa.models.operator import NeuralOperator, State
from lrsa.models.template import Others, Partial

Stages = Block | KernelBlock
"""A block, by torch or by kernels."""
SCORED = 8192
"""Points whose scores are held at a time, where processes share the rest."""


@dataclass(frozen=True)
class Chunk:
    """Some of the points of a sample, or all: x (B, n, p), f (B, n, c) and their context."""

    x: Tensor
    f: Tensor | None
    context: Context


class Walk:
    """All points at once, as one chunk, with a graph where gradients are asked for.

    Where `others` hold the rest of the points of every sample, their partials are merged too.
    """

    def __init__(
        self,
        model: NeuralOperator,
        chunks: Sequence[Chunk],
        others: Others | None = None,
        kernels: bool = False,
    ) -> None:
        self.model, self.chunks, self.others, self.h = model, chunks, others, []
        self.stages: list[Stages] = list(stages_of(model, kernels))
        self.h: list[Tensor] = self.stored(model.lift(c.x, c.f, c.context) for c in chunks)
        """(B, n, d) features of every chunk, where the walk has come to."""

    def meet(self, block: Stages) -> Tensor:
        """The processed latents (B, M, d) of all points."""
        here = self.h[0], self.chunks[0].x, self.chunks[0].context
        return block.latents(*here) if self.others is None else met(block, remade(block, *here), self.others)

    def stored(self, values: Iterable[Tensor]) -> list[Tensor]:
        """The next h of every chunk, each made when asked for."""
        return list(values)

    def blocks(self) -> Iterator[Tensor]:
        """The latents of each block; h is then that at its entry."""
        for block in self.stages:
            latents = self.meet(block)
            yield latents
            pairs = zip(self.h, self.chunks, strict=True)
            self.h = self.stored(block.update(h, c.x, c.context, latents) for h, c in pairs)

    def encode(self) -> State:
        """The latents of all blocks."""
        # Not exhausted: behind the latents of the last block nothing is needed.
        latents = tuple(islice(self.blocks(), len(self.model.blocks)))
        return State(latents, self.chunks[0].context.of_sample())

    def run(self) -> Tensor:
        """u (B, N, o) at the end of the walk; h is given up."""
        for _ in self.blocks():
            pass
        return torch.cat([self.model.project(self.h.pop(0)) for _ in self.chunks], dim=1)


class Known(Walk):
    """Points that only read: the latents of every block are those of a sample that was encoded."""

    def __init__(
        self, model: NeuralOperator, chunks: Sequence[Chunk], state: State, kernels: bool = False
    ) -> None:
        super().__init__(model, chunks, kernels=kernels)
        self.given = iter(state.latents)

    def meet(self, block: Stages) -> Tensor:
        return next(self.given)


def remade(block: Stages, h: Tensor, x: Tensor, context: Context) -> Iterator[Partial]:
    """The partials of some points at a time, which the backward pass makes again.

    To keep the scores of a softmax, h M numbers for each point, would take more than all other features.
    """
    if isinstance(block, KernelBlock):  # which keeps none
        yield block.partial(h, x, context)
        return
    for start in range(0, h.shape[1], SCORED):
        points = slice(start, start + SCORED)
        part = h[:, points], x[:, points], context.at(points)
        yield checkpoint(block.partial, *part, use_reentrant=False, preserve_rng_state=False)


def met(block: Stages, partials: Iterable[Partial], others: Others | None) -> Tensor:
    """The processed latents of all points: here chunks meet, and processes that share a sample."""
    merged = reduce(lambda a, b: a.merge(b), partials)
    return block.low_rank.process((merged if others is None else merged.over(others)).finish())
