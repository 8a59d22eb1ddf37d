"""Exact inference at any number of points in bounded memory."""

from functools import reduce

import torch
from torch import Tensor

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.operator import NeuralOperator


def stream(
    model: NeuralOperator,
    x: Tensor,
    f: Tensor | None = None,
    context: Context | None = None,
    chunk: int = 65536,
) -> Tensor:
    """`model(x, f, context)`, computed chunk by chunk.

    In each block the partial compressions of the chunks are merged, so the result is that of the whole
    point set for any chunk size. Under `torch.no_grad` only the features (B, N, d) of one block and the
    activations of one chunk are held.

    Args:
        model: An operator whose mixers fill in the low-rank template.
        x: (B, N, p) coordinates.
        f: (B, N, c) features, or None.
        context: Mask, weights, time, ... of the whole point set.
        chunk: Points at a time.
    """
    model.check_pointwise("stream")
    if chunk < 1:
        raise LrsaError(f"a chunk has at least one point, not {chunk}")
    context = (context or Context()).normalised()
    parts = [slice(start, start + chunk) for start in range(0, x.shape[1], chunk)]
    contexts = [context.at(part) for part in parts]
    xs = [x[:, part] for part in parts]
    fs = [None if f is None else f[:, part] for part in parts]
    h = [model.lift(*args) for args in zip(xs, fs, contexts, strict=True)]
    for block in model.each_block():
        partials = (block.partial(*args) for args in zip(h, xs, contexts, strict=True))
        latents = block.low_rank.process(reduce(lambda a, b: a.merge(b), partials).finish())
        for i in range(len(parts)):
            h[i] = block.update(h[i], xs[i], contexts[i], latents)
    return torch.cat([model.project(h.pop(0)) for _ in parts], dim=1)
