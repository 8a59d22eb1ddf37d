"""Galerkin attention: linear attention without softmax, Q (K̃ᵀ Ṽ) / N (Cao 2021, arXiv 2105.14995).

Our own reading of the paper; there is no reference file to compare with.
"""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm

from lrsa.context import Context
from lrsa.models.attention import head_width, join_heads, split_heads
from lrsa.models.template import LowRankMix, Partial, at_least_float32


class GalerkinAttention(LowRankMix["GalerkinPartial"]):
    """Δh = concat over heads of [x, Q] ([x, K̃]ᵀ W [x, Ṽ]) / Σ w, through an output projection.

    compress     Z = Σ_n w_n k̃_n ṽ_nᵀ / Σ_n w_n    inner products of trial and test functions, M = d_h
    process      nothing
    reconstruct  Δh_n = q_n Z

    K̃, Ṽ are keys and values with a LayerNorm of each head's own; w is the measure of the points (1 where
    none is given, so that Σ w = N). The projections start as η U + δ I, Xavier uniform U, η = δ = 0.01.

    Args:
        width: Channels d.
        heads: Attention heads.
        coord_dim: Coordinates p to append to the queries, keys and values of every head, as the published
            model does (0: none).
    """

    def __init__(self, width: int, heads: int, coord_dim: int = 0) -> None:
        super().__init__()
        self.heads, self.coord_dim, inner = heads, coord_dim, head_width(width, heads)
        self.query, self.key, self.value = (_near_identity(width) for _ in range(3))
        self.norm_key, self.norm_value = HeadNorm(heads, inner), HeadNorm(heads, inner)
        self.output = nn.Linear(width + heads * coord_dim, width)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, d_h + p, d + h p) moments."""
        return self.partial(h, x, context).finish().to(h.dtype)

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "GalerkinPartial":
        """Sums over some of the points, in fp32 at least."""
        key = self._append(self.norm_key(split_heads(self.key(h), self.heads)), x, context)
        value = self._append(self.norm_value(split_heads(self.value(h), self.heads)), x, context)
        dtype, measure = torch.promote_types(h.dtype, torch.float32), context.measure()
        weight = h.new_ones(h.shape[:2], dtype=dtype) if measure is None else measure.to(dtype)
        key = key.to(dtype) if measure is None else key.to(dtype) * weight[:, None, :, None]
        moment = at_least_float32(key.transpose(-1, -2) @ value.to(dtype))
        return GalerkinPartial(moment, weight.sum(1)[:, None, None, None])

    def process(self, latents: Tensor) -> Tensor:
        """G = I."""
        return latents

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, h M) moments -> (B, N, d) at the points of h, each by itself."""
        query = self._append(split_heads(self.query(h), self.heads), x, context)  # (B, h, N, M)
        mixed = query @ split_heads(latents, self.heads).to(query.dtype)
        return self.output(join_heads(mixed))

    def _append(self, values: Tensor, x: Tensor, context: Context) -> Tensor:
        if not self.coord_dim:
            return values
        if context.mask is not None:  # what stands in the padding must not matter: 0 times NaN is NaN
            x = x.masked_fill(~context.mask[..., None], 0)
        return torch.cat([x[:, None].expand(-1, self.heads, -1, -1).to(values.dtype), values], dim=-1)


@dataclass(frozen=True)
class GalerkinPartial(Partial):
    """The moments of keys and values over some of the points."""

    moment: Tensor
    """(B, h, M, M) Σ w k̃ ṽᵀ."""
    total: Tensor
    """(B, 1, 1, 1) Σ w."""

    def merge(self, other: Self) -> Self:
        return replace(self, moment=self.moment + other.moment, total=self.total + other.total)

    def finish(self) -> Tensor:
        return join_heads(self.moment / self.total)


class HeadNorm(nn.Module):
    """LayerNorm over the channels of a head, with scale and shift of each head's own."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(heads, 1, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))

    def forward(self, values: Tensor) -> Tensor:
        """(B, h, N, d_h) -> (B, h, N, d_h)."""
        return layer_norm(values, values.shape[-1:]) * self.weight + self.bias


def _near_identity(width: int, eta: float = 0.01, delta: float = 0.01) -> nn.Linear:
    """The paper's diagonally dominant start η U + δ I."""
    layer = nn.Linear(width, width)
    nn.init.xavier_uniform_(layer.weight, gain=eta)
    nn.init.zeros_(layer.bias)
    with torch.no_grad():
        layer.weight.diagonal().add_(delta)
    return layer
