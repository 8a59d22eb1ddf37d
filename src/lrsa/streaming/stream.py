"""Exact inference and training at any number of points in bounded memory."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.kernels.stages import suits
from lrsa.models.operator import NeuralOperator, State
from lrsa.models.template import Others
from lrsa.streaming.chunks import Chunked, cut
from lrsa.streaming.gradient import apply_chunked, inputs_of
from lrsa.streaming.walk import Chunk, Known, Walk

CHUNK = 8192
"""Points at a time: few enough for a processor's caches (65536 take 1.7 times as long)."""


def stream(
    model: nn.Module,
    x: Tensor,
    f: Tensor | None = None,
    context: Context | None = None,
    chunk: int = CHUNK,
    others: Others | None = None,
    kernels: bool = True,
) -> Tensor:
    """`model(x, f, context)`, computed chunk by chunk.

    In each block the partial compressions of the chunks are merged, so the result is that of the whole
    point set for any chunk size. Under `torch.no_grad` only the features (B, N, d) of one block and the
    activations of one chunk are held.

    Where gradients are asked for, they are those of the whole point set too. Then the features are held at
    the entry of every block, and the backward pass computes each chunk again: L + 1 tensors (B, N, d) and
    the activations of one chunk.

    Args:
        model: An operator whose mixers fill in the low-rank template.
        x: (B, N, p) coordinates.
        f: (B, N, c) features, or None.
        context: Mask, weights, time, ... of the whole point set.
        chunk: Points at a time.
        others: Processes that hold the rest of the points of every sample, each of which calls this with its
            own. The result is that of the whole sample, at the points of this one.
        kernels: Compute blocks by kernels, where there are any for them here; False: by torch.
    """
    operator, chunks = check_streams(model), cut(x, f, context, chunk, others)
    if torch.is_grad_enabled() and any(t.requires_grad for t in inputs_of(operator, chunks)):
        return apply_chunked(operator, chunks, others, kernels)
    with torch.no_grad():
        return way(operator, chunks, others, kernels).run()


def share(
    model: nn.Module,
    x: Tensor,
    f: Tensor | None,
    context: Context | None,
    others: Others,
    kernels: bool = False,
) -> Tensor:
    """`stream` in one chunk, which keeps all activations for the backward pass, as `model(x, f)` does."""
    chunks = cut(x, f, context, max(x.shape[1], 1), others)
    return Walk(check_streams(model), chunks, others, kernels).run()


@torch.no_grad()
def encode_streamed(
    model: NeuralOperator,
    x: Tensor,
    f: Tensor | None = None,
    context: Context | None = None,
    chunk: int = CHUNK,
    others: Others | None = None,
    kernels: bool = True,
) -> State:
    """`model.encode(x, f, context)`, chunk by chunk where there are many points; exact, without gradients."""
    return way(check_streams(model), cut(x, f, context, chunk, others), others, kernels).encode()


@torch.no_grad()
def decode_streamed(
    model: NeuralOperator,
    state: State,
    x: Tensor,
    f: Tensor | None = None,
    chunk: int = CHUNK,
    kernels: bool = True,
) -> Tensor:
    """`model.decode(state, x, f)`, chunk by chunk; exact, without gradients."""
    chunks = cut(x, f, state.context, chunk)
    return torch.cat([Known(model, [one], state, kernels).run() for one in chunks], dim=1)


def apply_whole(
    model: nn.Module, x: Tensor, f: Tensor | None = None, context: Context | None = None, kernels: bool = True
) -> Tensor:
    """`model(x, f, context)` with its graph, all points at once; by kernels where there are any for it."""
    if not kernels or not isinstance(model, NeuralOperator) or not all(map(suits, model.each_block())):
        return model(x, f, context)
    return Walk(model, [Chunk(x, f, (context or Context()).normalised())], kernels=kernels).run()


def way(
    model: NeuralOperator, chunks: Sequence[Chunk], others: Others | None = None, kernels: bool = False
) -> Walk:
    """How points meet that need no gradients: at once where one chunk holds them all, else by chunks."""
    return (Walk if len(chunks) == 1 else Chunked)(model, chunks, others, kernels)


def check_streams(model: nn.Module) -> NeuralOperator:
    """The operator; refused is a model in which points meet elsewhere than in mergeable partials."""
    if not isinstance(model, NeuralOperator):
        raise LrsaError(f"cannot stream: {type(model).__name__} needs all points at once")
    model.check_pointwise("stream")
    return model
