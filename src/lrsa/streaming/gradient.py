"""The exact gradient of a whole point set, computed chunk by chunk in bounded memory.

In every block the points meet in the merged partials alone (section 3.2 of the paper). So a chunk can be
computed, forgotten and computed again: the backward pass goes through a block in the opposite order,

    h' = update(h, latents)              chunk by chunk: ∂L/∂h, and ∂L/∂latents summed over the chunks
    latents = process(finish(merge))     once: ∂L/∂partial of every chunk
    partial(h)                           chunk by chunk: the rest of ∂L/∂h

and the gradients of the parameters are summed on the way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lrsa.models.operator import Block, NeuralOperator
from lrsa.models.template import Partial
from lrsa.streaming.walk import Chunk, Walk, alike, holding, merged, tensors_of


def apply_chunked(model: NeuralOperator, chunks: Sequence[Chunk]) -> Tensor:
    """u (B, N, o), differentiable. For the backward pass h (B, N, d) is kept at the entry of each block."""
    tensors = [t for c in chunks for t in c.tensors()]
    return _Chunked.apply(model, chunks, *tensors, *model.parameters())  # pyright: ignore[reportReturnType]


class _Chunked(torch.autograd.Function):
    """(chunks, parameters) -> u. Its gradient cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, model: NeuralOperator, chunks: Sequence[Chunk], *inputs: Tensor) -> Tensor:
        ctx.model, ctx.chunks, ctx.precision = model, chunks, _Precision.now(inputs[0].device.type)
        entries: list[Tensor] = []
        ctx.partials = []
        with ctx.precision.again():
            way = Walk(model, chunks, keep=True)
            for _ in way.blocks():
                entries += way.h
                ctx.partials.append(way.partials)
            u = way.project()
        # The inputs are saved too: torch then notices a change of them before the backward pass.
        ctx.save_for_backward(*entries, *inputs)
        return u

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        entries, count = ctx.saved_tensors, len(ctx.chunks)
        blocks = ctx.model.each_block()
        back = _Backward(ctx.model, ctx.chunks)
        sizes = [c.x.shape[1] for c in ctx.chunks]
        g: Sequence[Tensor] = gradients[0].split(sizes, dim=1)
        with torch.enable_grad(), ctx.precision.again():
            for depth in reversed(range(len(blocks))):
                h = entries[depth * count : (depth + 1) * count]
                leave = ctx.model.project if depth == len(blocks) - 1 else _same
                g = back.through_block(blocks[depth], leave, h, ctx.partials[depth], g)
            back.through_lift(g)
        return None, None, *back.gradients()


class _Backward:
    """One backward pass, and the gradients that it has summed so far."""

    def __init__(self, model: NeuralOperator, chunks: Sequence[Chunk]) -> None:
        self.model, self.chunks = model, [c.leaves() for c in chunks]
        self.parameters = list(model.parameters())
        self.sums: dict[Tensor, Tensor] = {}
        self.room: list[Tensor] = []

    def through_block(
        self,
        block: Block,
        leave: Callable[[Tensor], Tensor],
        h: Sequence[Tensor],
        partials: Sequence[Partial],
        behind: Sequence[Tensor],
    ) -> list[Tensor]:
        """The gradients of the chunks h at the entry of a block, from those behind it and `leave`."""
        g = self._room(h)
        sources = [{k: t.detach().requires_grad_() for k, t in tensors_of(p).items()} for p in partials]
        latents = merged(block, map(holding, partials, sources))
        given = latents.detach().requires_grad_()
        total = torch.zeros_like(given)
        for i, c in enumerate(self.chunks):
            entry = h[i].detach().requires_grad_()
            out = leave(block.update(entry, c.x, c.context, given))
            direct, more = self._pull(c, [out], [behind[i]], [entry, given])
            g[i].copy_(direct)
            total += more
        leaves = [t for source in sources for t in source.values()]
        wanted = dict(zip(leaves, self._pull(None, [latents], [total], leaves), strict=True))
        for i, c in enumerate(self.chunks):
            entry = h[i].detach().requires_grad_()
            made = tensors_of(block.partial(entry, c.x, c.context))
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

    def gradients(self) -> list[Tensor | None]:
        """Of the tensors of every chunk, then of the parameters."""
        return [self.sums.get(t) for t in (*(t for c in self.chunks for t in c.tensors()), *self.parameters)]

    def _room(self, h: Sequence[Tensor]) -> list[Tensor]:
        """Memory for gradients of h: that of the block before, which is read chunk by chunk ahead of it."""
        if not self.room or not alike(self.room[0], h[0]):
            self.room = [torch.empty_like(t) for t in h]
        return self.room

    def _pull(
        self, chunk: Chunk | None, outputs: list[Tensor], gradients: list[Tensor], inputs: list[Tensor]
    ) -> list[Tensor]:
        """The gradients of the inputs; those of the parameters and of the chunk are added to the sums."""
        others = [*self.parameters, *([] if chunk is None else chunk.tensors())]
        others = [t for t in others if t.requires_grad]
        found = torch.autograd.grad(outputs, [*inputs, *others], gradients, allow_unused=True)
        for tensor, more in zip(others, found[len(inputs) :], strict=True):
            if more is not None and tensor in self.sums:
                self.sums[tensor] += more
            elif more is not None:
                self.sums[tensor] = more.clone()
        return [torch.zeros_like(t) if more is None else more for t, more in zip(inputs, found, strict=False)]


@dataclass(frozen=True)
class _Precision:
    """The autocast of the forward pass, for what is computed again later."""

    device: str
    dtype: torch.dtype
    enabled: bool

    @staticmethod
    def now(device: str) -> "_Precision":
        return _Precision(device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device))

    def again(self) -> torch.autocast:
        # Without the cache of cast weights: those cast without a graph would have no gradient.
        return torch.autocast(self.device, self.dtype, self.enabled, cache_enabled=False)


def _same(h: Tensor) -> Tensor:
    return h
