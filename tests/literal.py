"""The paper's formulas in numpy, one query and one head at a time, from the weights of a mixer.

Slow and independent of torch's kernels: what `LowRankSpatialAttention` is compared with.
"""

import math
from typing import Any

import numpy as np
from torch import nn

from lrsa.models.attention import Attention, LowRankSpatialAttention


def literal_mixer(mixer: LowRankSpatialAttention, h: np.ndarray, weights: np.ndarray) -> np.ndarray:
    ones = np.ones(len(mixer.latents))
    down, up = projections(mixer.down), projections(mixer.up)
    p = mixer.latents.detach().numpy()
    z = literal_attention(down, down["query"](p), down["key"](h), down["value"](h), weights)
    z = z + literal_ffn(mixer.ffn_in, literal_norm(mixer.norm_in, z))
    if mixer.latent_attention:
        mix, n = projections(mixer.mix), literal_norm(mixer.norm_mix, z)
        z = z + literal_attention(mix, mix["query"](n), mix["key"](n), mix["value"](n), ones)
        z = z + literal_ffn(mixer.ffn_out, literal_norm(mixer.norm_out, z))
    z = literal_norm(mixer.norm_up, z)
    query = down["key"](h) if mixer.symmetric else up["query"](h)
    return literal_attention(up, query, up["key"](z), up["value"](z), ones)


def projections(attention: Attention) -> dict[str, Any]:
    """query, key, value: (n, d) -> heads of (n, d_h); output: (n, d) -> (n, d)."""
    d = attention.key_value.in_features
    w, b = attention.key_value.weight.detach().numpy(), attention.key_value.bias.detach().numpy()

    def heads(values: np.ndarray, norm: nn.Module) -> list[np.ndarray]:
        return [literal_norm(norm, part) for part in np.split(values, attention.heads, axis=1)]

    return {
        "query": lambda t: heads(literal_linear(attention.query, t), attention.norm_query),
        "key": lambda t: heads(t @ w[:d].T + b[:d], attention.norm_key),
        "value": lambda t: heads(t @ w[d:].T + b[d:], nn.Identity()),
        "output": lambda t: literal_linear(attention.output, t),
    }


def literal_attention(
    to: dict[str, Any],
    query: list[np.ndarray],
    key: list[np.ndarray],
    value: list[np.ndarray],
    weights: np.ndarray,
) -> np.ndarray:
    """Σ_j w_j exp(q · k_j / √d_h) v_j / Σ_j w_j exp(q · k_j / √d_h) for each query of each head."""
    heads = []
    for q, k, v in zip(query, key, value, strict=True):
        rows = []
        for row in q:
            a = np.array([math.exp(row @ k_j / math.sqrt(len(row))) for k_j in k]) * weights
            rows.append(sum(a_j / a.sum() * v_j for a_j, v_j in zip(a, v, strict=True)))
        heads.append(np.stack(rows))
    return to["output"](np.concatenate(heads, axis=1))


def literal_linear(linear: nn.Module | None, t: np.ndarray) -> np.ndarray:
    assert isinstance(linear, nn.Linear)
    return t @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()


def literal_norm(norm: nn.Module, t: np.ndarray) -> np.ndarray:
    if not isinstance(norm, nn.LayerNorm):
        return t
    mean, variance = t.mean(-1, keepdims=True), t.var(-1, keepdims=True)
    scaled = (t - mean) / np.sqrt(variance + norm.eps)
    return scaled * norm.weight.detach().numpy() + norm.bias.detach().numpy()


def literal_ffn(ffn: nn.Sequential, t: np.ndarray) -> np.ndarray:
    hidden = literal_linear(ffn[0], t)
    gelu = hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
    return literal_linear(ffn[2], gelu)
