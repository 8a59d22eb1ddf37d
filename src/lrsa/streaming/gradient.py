"""The exact gradient of a whole point set, computed chunk by chunk in bounded memory.

In every block the points meet in the merged partials alone (section 3.2 of the paper). So a chunk can be
computed, forgotten and computed again: the backward pass goes through a block in the opposite order,

    h' = update(h, latents)              chunk by chunk: ∂L/∂h, and ∂L/∂latents summed over the chunks
    latents = process(finish(merge))     once: ∂L/∂partial of every chunk
    partial(h)                           chunk by chunk: the rest of ∂L/∂h

and the gradients of the parameters are summed on the way.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial as bound
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from lrsa.context import Context
from lrsa.models.operator import NeuralOperator
from lrsa.models.template import Others, Partial
from lrsa.streaming.chunks import Chunked, copied
from lrsa.streaming.walk import Chunk, Stages, met


def apply_chunked(
    model: NeuralOperator, chunks: Sequence[Chunk], others: Others | None = None, kernels: bool = False
) -> Tensor:
    """u (B, N, o), differentiable. For the backward pass h (B, N, d) is kept at the entry of each block."""
    return _Chunked.apply(model, chunks, others, kernels, *inputs_of(model, chunks))  # pyright: ignore[reportReturnType]


def inputs_of(model: NeuralOperator, chunks: Sequence[Chunk]) -> list[Tensor]:
    """The tensors of every chunk, then the parameters."""
    return [*(t for c in chunks for t in _tensors(c)), *model.parameters()]


class _Chunked(torch.autograd.Function):
    """(chunks, parameters) -> u. Its gradient cannot be differentiated again."""

    @staticmethod
    def forward(
        ctx: Any,
        model: NeuralOperator,
        chunks: Sequence[Chunk],
        others: Others | None,
        kernels: bool,
        *inputs: Tensor,
    ) -> Tensor:
        kind = inputs[0].device.type
        dtype, enabled = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)
        # Without the cache of cast weights: those cast without a graph would have no gradient.
        precision = bound(torch.autocast, kind, dtype, enabled, cache_enabled=False)
        with precision():
            walk = _Recorded(model, chunks, others, kernels)
            u = walk.run()
        ctx.model, ctx.chunks, ctx.precision, ctx.partials = model, chunks, precision, walk.kept
        ctx.others, ctx.stages = others, walk.stages
        # The inputs are saved too: torch then notices a change of them before the backward pass.
        ctx.save_for_backward(*walk.entries, *inputs)
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        entries, count = ctx.saved_tensors, len(ctx.chunks)
        back = _Backward(ctx.model, [_leaves(c) for c in ctx.chunks], ctx.others)
        g: Sequence[Tensor] = gradients[0].split([c.x.shape[1] for c in ctx.chunks], dim=1)
        with torch.enable_grad(), ctx.precision():
            leave: Callable[[Tensor], Tensor] = ctx.model.project
            for depth, block in reversed(list(enumerate(ctx.stages))):
                h = entries[depth * count : (depth + 1) * count]
                g = back.through_block(block, leave, h, ctx.partials[depth], g)
                leave = nn.Identity()
            back.through_lift(g)
        return None, None, None, None, *(back.sums.get(t) for t in inputs_of(ctx.model, back.chunks))


class _Recorded(Chunked):
    """The same walk, which leaves every h as it is and keeps what the backward pass starts from."""

    def __init__(
        self, model: NeuralOperator, chunks: Sequence[Chunk], others: Others | None, kernels: bool
    ) -> None:
        super().__init__(model, chunks, others, kernels)
        self.entries: list[Tensor] = []
        """h of every chunk at the entry of each block."""
        self.kept: list[list[Partial]] = []
        """The partial of every chunk, block by block."""

    def meet(self, block: Stages) -> Tensor:
        self.entries += self.h
        self.kept.append(_side_by_side(self.partials(block), len(self.chunks)))
        return met(block, self.kept[-1], self.others)

    def stored(self, values: Iterable[Tensor]) -> list[Tensor]:
        return copied(values, [], self.chunks)


class _Backward:
    """One backward pass, and the gradients that it has summed so far."""

    def __init__(self, model: NeuralOperator, chunks: Sequence[Chunk], others: Others | None) -> None:
        self.model, self.chunks, self.others = model, chunks, others
        self.sums: dict[Tensor, Tensor] = {}
        self.room: list[Tensor] = []

    def through_block(
        self,
        block: Stages,
        leave: Callable[[Tensor], Tensor],
        h: Sequence[Tensor],
        partials: Sequence[Partial],
        behind: Sequence[Tensor],
    ) -> list[Tensor]:
        """The gradients of the chunks h at the entry of a block, from those behind it and `leave`."""
        sources = [{k: t.detach().requires_grad_() for k, t in _fields(p).items()} for p in partials]
        latents = met(block, map(_holding, partials, sources), self.others)
        given = latents.detach().requires_grad_()
        total = torch.zeros_like(given)

        def update() -> Iterator[Tensor]:
            for i, c in enumerate(self.chunks):
                entry = h[i].detach().requires_grad_()
                out = leave(block.update(entry, c.x, c.context, given))
                direct, more = self._pull(c, [out], [behind[i]], [entry, given])
                total.add_(more)
                yield direct

        # In the memory of the block before, of which a chunk is read before it is written.
        g = self.room = copied(update(), self.room, self.chunks)
        leaves = [t for source in sources for t in source.values()]
        wanted = dict(zip(leaves, self._pull(None, [latents], [total], leaves), strict=True))
        for i, c in enumerate(self.chunks):
            entry = h[i].detach().requires_grad_()
            made = _fields(block.partial(entry, c.x, c.context))
            # What is constant by design (the maximum of a softmax) has no graph and needs no gradient.
            names = [name for name, tensor in made.items() if tensor.requires_grad]
            gradients = [wanted[sources[i][name]] for name in names]
            (more,) = self._pull(c, [made[name] for name in names], gradients, [entry])
            g[i] += more
        return g

    def through_lift(self, g: Sequence[Tensor]) -> None:
        """The gradients of h⁰ go to the inputs and the lift."""
        for c, gradient in zip(self.chunks, g, strict=True):
            h = self.model.lift(c.x, c.f, c.context)
            if h.requires_grad:
                self._pull(c, [h], [gradient], [])

    def _pull(
        self, chunk: Chunk | None, outputs: list[Tensor], gradients: list[Tensor], inputs: list[Tensor]
    ) -> list[Tensor]:
        """The gradients of the inputs; those of the parameters and of the chunk are added to the sums."""
        others = inputs_of(self.model, [] if chunk is None else [chunk])
        others = [t for t in others if t.requires_grad]
        found = torch.autograd.grad(outputs, [*inputs, *others], gradients, allow_unused=True)
        for tensor, more in zip(others, found[len(inputs) :], strict=True):
            if more is not None and tensor in self.sums:
                self.sums[tensor] += more
            elif more is not None:
                self.sums[tensor] = more.clone()
        return [torch.zeros_like(t) if more is None else more for t, more in zip(inputs, found, strict=False)]


def _side_by_side(partials: Iterable[Partial], count: int) -> list[Partial]:
    """Each in its part of memory that is taken at once, as `copied` does it."""
    room: dict[str, Tensor] = {}
    kept: list[Partial] = []
    for i, partial in enumerate(partials):
        room = room or {name: t.new_empty(count, *t.shape) for name, t in _fields(partial).items()}
        for name, value in _fields(partial).items():
            room[name][i] = value
        kept.append(_holding(partial, {name: values[i] for name, values in room.items()}))
    return kept


def _tensors(chunk: Chunk) -> list[Tensor]:
    return [*_fields(chunk).values(), *_fields(chunk.context).values()]


def _leaves(chunk: Chunk) -> Chunk:
    """The same values cut off from what made them, asking for gradients where these did."""
    own, context = (
        {name: t.detach().requires_grad_(t.requires_grad) for name, t in _fields(part).items()}
        for part in (chunk, chunk.context)
    )
    return replace(chunk, context=replace(chunk.context, **context), **own)


def _fields(part: Partial | Chunk | Context) -> dict[str, Tensor]:
    """Those of a dataclass that are tensors."""
    return {name: value for name, value in vars(part).items() if isinstance(value, Tensor)}


def _holding(partial: Any, tensors: dict[str, Tensor]) -> Any:
    """The same partial with other tensors; every partial is a dataclass."""
    return replace(partial, **tensors)
