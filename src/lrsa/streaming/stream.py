"""Exact inference and training at any number of points in bounded memory."""

from itertools import islice

import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.operator import NeuralOperator, State
from lrsa.streaming.gradient import apply_chunked
from lrsa.streaming.walk import Walk, cut

CHUNK = 8192
"""Points at a time: few enough for a processor's caches (65536 take 1.7 times as long)."""


def stream(
    model: nn.Module,
    x: Tensor,
    f: Tensor | None = None,
    context: Context | None = None,
    chunk: int = CHUNK,
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
    """
    operator = check_streams(model)
    chunks = cut(x, f, context, chunk)
    inputs = (*operator.parameters(), *(t for c in chunks for t in c.tensors()))
    if torch.is_grad_enabled() and any(t.requires_grad for t in inputs):
        return apply_chunked(operator, chunks)
    with torch.no_grad():
        way = Walk(operator, chunks)
        for _ in way.blocks():
            pass
        return way.project()


@torch.no_grad()
def encode_streamed(
    model: NeuralOperator,
    x: Tensor,
    f: Tensor | None = None,
    context: Context | None = None,
    chunk: int = CHUNK,
) -> State:
    """`model.encode(x, f, context)`, chunk by chunk where there are many points; exact, without gradients."""
    if x.shape[1] <= chunk:
        return model.encode(x, f, context)
    check_streams(model)
    chunks = cut(x, f, context, chunk)
    steps = Walk(model, chunks).blocks()
    # Not exhausted: behind the latents of the last block nothing is needed.
    latents = tuple(islice(steps, len(model.blocks)))
    return State(latents, chunks[0].context.of_sample())


def check_streams(model: nn.Module) -> NeuralOperator:
    """The operator; refused is a model in which points meet elsewhere than in mergeable partials."""
    if not isinstance(model, NeuralOperator):
        raise LrsaError(f"cannot stream: {type(model).__name__} needs all points at once")
    model.check_pointwise("stream")
    return model
