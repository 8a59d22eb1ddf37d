"""Factors of the layers of attention: where latents write from and where points read, per head.

Transolver, Transolver++, LinearNO, FLARE, Galerkin, FactFormer, LRSA, LNO, Perceiver IO.
"""

from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import instance_norm

from lrsa.analysis.lowrank import Factors, factors_of, measured
from lrsa.context import Context
from lrsa.models.attention import Attention, LowRankSpatialAttention, split_heads
from lrsa.models.baselines.lno import TiedLatents
from lrsa.models.baselines.perceiver_io import LatentBackbone
from lrsa.models.mixers.factformer import AxisKernel, FactorisedAttention, rotate
from lrsa.models.mixers.flare import FlareAttention
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.mixers.linear_no import GridLinearAttention, LinearAttention
from lrsa.models.mixers.transolver import GridPhysicsAttention, PhysicsAttention, SliceTokens
from lrsa.models.mixers.transolver_plus import EideticAttention


@factors_of.register
def _(layer: LowRankSpatialAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    down, up = layer.down, layer.up
    query = down.keys(h) if layer.symmetric else up.queries(h)
    return _two_attentions(
        (down, layer.latents[None], h, context),
        layer.process,
        (up, query, layer.norm_up),
        up.output,
    )


@factors_of.register
def _(layer: LatentBackbone, h: Tensor, x: Tensor, context: Context) -> Factors:
    def output(joined: Tensor) -> Tensor:
        y = layer.decoder.output(joined)
        return y + layer.ffn_out(layer.norm_out(y))

    return _two_attentions(
        (layer.encoder, layer.norm_latents(layer.latents)[None], layer.norm_input(h), context),
        layer.process,
        (layer.decoder, layer.decoder.queries(layer.norm_query(h)), layer.norm_source),
        output,
    )


def _two_attentions(
    write: tuple[Attention, Tensor, Tensor, Context],
    process: Callable[[Tensor], Tensor],
    read: tuple[Attention, Tensor, Callable[[Tensor], Tensor]],
    output: Callable[[Tensor], Tensor],
) -> Factors:
    """Attention from latents to points, a network, attention from points to latents."""
    (down, targets, source, context), (up, query, norm) = write, read
    key, values = down.keys_values(source)
    v = _softmax(_scores(down.queries(targets), key), context.log_measure(key.dtype))

    def step(latents: Tensor) -> Tensor:
        """From the values that the latents have read to those that the points will read."""
        return up.keys_values(norm(process(down.join(latents[None]))))[1][0]

    latents = norm(process(down.join(v @ values)))
    u = _scores(query, up.keys_values(latents)[0]).softmax(-1)
    return Factors(u[0], v[0].transpose(-1, -2), values[0], step, output)


@factors_of.register
def _(layer: TiedLatents, h: Tensor, x: Tensor, context: Context) -> Factors:
    scores, values = h[..., : layer.rank], h[..., layer.rank :]
    bias = context.log_measure(h.dtype)
    v = _softmax(scores.transpose(1, 2), None if bias is None else bias[:, 0])
    return Factors(scores.softmax(-1), v.transpose(1, 2), values, layer.process)


@factors_of.register
def _(layer: PhysicsAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    values, features = layer.project(h).chunk(2, dim=-1)
    return _slices(layer.tokens, layer.slices(features), values, context)


@factors_of.register
def _(layer: GridPhysicsAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    values, features = layer.project(h, context).chunk(2, dim=-1)
    return _slices(layer.tokens, layer.slices(features), values, context)


@factors_of.register
def _(layer: EideticAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    values = layer.project(h)
    return _slices(layer.tokens, layer.slices(values), values, context)


def _slices(tokens: SliceTokens, weights: Tensor, values: Tensor, context: Context) -> Factors:
    """G is the attention among the slices; W_V acts on channels alone and moves to the values."""
    partial = tokens.gather(weights, values, context.measure())
    query, key, _ = tokens.query_key_value(split_heads(partial.finish(), tokens.heads)).chunk(3, dim=-1)
    matrix = tokens.query_key_value.weight.chunk(3)[2]
    v = measured(weights, context) / (partial.total.transpose(-1, -2) + 1e-5)
    values = split_heads(values, tokens.heads) @ matrix.t()
    return Factors(weights[0], v[0], values[0], _scores(query, key).softmax(-1)[0], tokens.output)


@factors_of.register
def _(layer: LinearAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    return _linear(layer, layer.project(h), context)


@factors_of.register
def _(layer: GridLinearAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    return _linear(layer, layer.project(h, context), context)


def _linear(layer: LinearAttention | GridLinearAttention, features: Tensor, context: Context) -> Factors:
    kernel = layer.kernel
    points = split_heads(features, kernel.heads)
    write = kernel._divided(kernel.key, kernel.temperature_key, 1) @ points.transpose(-1, -2)
    read = points @ kernel._divided(kernel.query, kernel.temperature_query, 1).transpose(-1, -2)
    v = _softmax(write, context.log_measure(features.dtype)).transpose(-1, -2)
    return Factors(read.softmax(-1)[0], v[0], kernel.value(points)[0], _identity(read), kernel.output)


@factors_of.register
def _(layer: FlareAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    scores = layer.keys(h) @ layer.queries(h).transpose(-1, -2)  # (1, C, N, M)
    v = _softmax(scores.transpose(-1, -2), context.log_measure(h.dtype)).transpose(-1, -2)
    values = split_heads(layer.value(h), layer.heads)
    return Factors(scores.softmax(-1)[0], v[0], values[0], _identity(scores), layer.output)


@factors_of.register
def _(layer: GalerkinAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    query, key, value = (split_heads(w(h), layer.heads) for w in (layer.query, layer.key, layer.value))
    u = layer._append(query, x, context)
    v = measured(layer._append(layer.norm_key(key), x, context), context)
    measure = context.measure()
    total = h.shape[1] if measure is None else measure.sum()
    values = layer._append(layer.norm_value(value), x, context)
    return Factors(u[0], v[0] / total, values[0], _identity(u), layer.output)


@factors_of.register
def _(layer: FactorisedAttention, h: Tensor, x: Tensor, context: Context) -> Factors:
    """Kronecker products of the axes' queries and keys; the InstanceNorm belongs to the output."""
    grid = context.need("grid", "FactFormer")
    lines = h.unflatten(1, tuple(grid))
    axes = [
        _axis(kernel, lines.movedim(1 + m, 1).flatten(2, -2).mean(2))
        for m, kernel in enumerate(layer.kernels)
        if isinstance(kernel, AxisKernel)
    ]
    u, v = (reduce(_kronecker, [axis[k] for axis in axes]) for k in (0, 1))

    def output(joined: Tensor) -> Tensor:
        return layer.output(instance_norm(joined.t()[None])[0].t())

    values = split_heads(layer.value(h), layer.heads)
    return Factors(u, v / h.shape[1], values[0], _identity(u[None]), output)


def _axis(kernel: AxisKernel, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Rotated queries and keys (C, S, e) of one axis, from the means (1, S, d) over the others."""
    line = kernel.ffn(kernel.norm(kernel.pool(mean)))
    query, key = kernel.query_key(line).unflatten(-1, (2, kernel.heads, -1)).permute(2, 0, 3, 1, 4)
    return rotate(query)[0], rotate(key)[0]


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    """(C, S, e), (C, T, f) -> (C, S T, e f)."""
    return torch.einsum("cia,cjb->cijab", a, b).flatten(3, 4).flatten(1, 2)


def _softmax(scores: Tensor, bias: Tensor | None) -> Tensor:
    return (scores if bias is None else scores + bias).softmax(-1)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5


def _identity(maps: Tensor) -> Tensor:
    """(C, M, M) for maps (1, C, N, M)."""
    return torch.eye(maps.shape[-1], dtype=maps.dtype).expand(maps.shape[1], -1, -1)
