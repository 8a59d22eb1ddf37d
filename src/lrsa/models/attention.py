"""Low-rank spatial attention: K ≈ U G Vᵀ from standard Transformer primitives (paper, section 3.4)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.hidden import Declared, stacked
from lrsa.models.template import LowRankMix, Others, Partial, at_least_float32


class LowRankSpatialAttention(LowRankMix["SoftmaxPartial"]):
    """One global mixing layer: N points -> M latents -> N points.

    compress     Z  = Attn(P W_Q↓, H W_K↓, H W_V↓)                Eq. (lrsa-down)
    process      Z' = Z + FFN, + SelfAttn, + FFN, all pre-norm     Eq. (latent-mix)
    reconstruct  ΔH = Attn(H W_Q↑, Z' W_K↑, Z' W_V↑)              Eq. (lrsa-up)

    The compression and the reconstruction share no weights: where a point writes is not where it reads.

    Args:
        width: Channels d of points and latents.
        heads: Attention heads.
        rank: Latents M.
        latent_ffn_hidden: Hidden width of the latent FFNs.
        latent_attention: False leaves of the latent Transformer its first FFN only (ablation).
        symmetric: True ties W_Q↑ to W_K↓, so that points read where they write (ablation).
        qk_norm: Normalise the queries and keys of every head.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        rank: int,
        latent_ffn_hidden: int,
        latent_attention: bool = True,
        symmetric: bool = False,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        self.latent_attention, self.symmetric = latent_attention, symmetric
        self.latents = nn.Parameter(torch.randn(rank, width))  # P
        self.down = Attention(width, heads, qk_norm)
        self.norm_in, self.ffn_in = nn.LayerNorm(width), FFN(width, latent_ffn_hidden)
        if latent_attention:
            self.norm_mix, self.mix = nn.LayerNorm(width), Attention(width, heads, qk_norm)
            self.norm_out, self.ffn_out = nn.LayerNorm(width), FFN(width, latent_ffn_hidden)
        self.norm_up, self.up = nn.LayerNorm(width), Attention(width, heads, qk_norm, own_query=not symmetric)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) latents. The only place where points meet."""
        return self.down(self.latents.expand(h.shape[0], -1, -1), h, context.log_measure(h.dtype))

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "SoftmaxPartial":
        """The same attention over some of the points, as a log-sum-exp that merges."""
        return self.down.partial(self.latents.expand(h.shape[0], -1, -1), h, context.log_measure(h.dtype))

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d). Never sees N."""
        latents = latents + self.ffn_in(self.norm_in(latents))
        if self.latent_attention:
            normed = self.norm_mix(latents)
            latents = latents + self.mix(normed, normed)
            latents = latents + self.ffn_out(self.norm_out(latents))
        return latents

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, N, d) at the points of h, each by itself."""
        query = self.down.keys(h) if self.symmetric else self.up.queries(h)
        return self.up.attend(query, self.norm_up(latents))


class Attention(nn.Module):
    """Attn(Q, K, V) = softmax(Q Kᵀ / √d_h) V with heads and projections, Eq. (attn-def).

    Keys and values come from one matrix product, heads are views: nothing is copied.
    """

    matrices: ClassVar[Declared] = {"key_value.weight": stacked(2)}

    def __init__(self, width: int, heads: int, qk_norm: bool = False, own_query: bool = True) -> None:
        super().__init__()
        self.heads, inner = heads, head_width(width, heads)
        self.query = nn.Linear(width, width) if own_query else None
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
        self.norm_query = nn.LayerNorm(inner) if qk_norm and own_query else nn.Identity()
        self.norm_key = nn.LayerNorm(inner) if qk_norm else nn.Identity()

    def forward(self, target: Tensor, source: Tensor, bias: Tensor | None = None) -> Tensor:
        """Each of target (B, Q, d) reads from all of source (B, K, d); bias (B, 1, 1, K) -> (B, Q, d)."""
        return self.attend(self.queries(target), source, bias)

    def attend(self, query: Tensor, source: Tensor, bias: Tensor | None = None) -> Tensor:
        """query (B, h, Q, d_h), source (B, K, d) -> (B, Q, d)."""
        key, value = self.keys_values(source)
        return self.join(scaled_dot_product_attention(query, key, value, attn_mask=bias))

    def partial(self, target: Tensor, source: Tensor, bias: Tensor | None = None) -> "SoftmaxPartial":
        """The numerator and denominator of the softmax over some of the sources, in fp32 at least."""
        query = self.queries(target)
        key, value = self.keys_values(source)
        scores = at_least_float32(query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5  # (B, h, Q, K)
        return SoftmaxPartial.of(scores, value, bias, self.join)

    def queries(self, target: Tensor) -> Tensor:
        """(B, Q, d) -> (B, h, Q, d_h)."""
        assert self.query is not None
        return self.norm_query(split_heads(self.query(target), self.heads))

    def keys(self, source: Tensor) -> Tensor:
        """(B, K, d) -> (B, h, K, d_h), without the values."""
        width = self.key_value.in_features
        key = linear(source, self.key_value.weight[:width], self.key_value.bias[:width])
        return self.norm_key(split_heads(key, self.heads))

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """(B, K, d) -> keys and values, each (B, h, K, d_h)."""
        key, value = self.key_value(source).chunk(2, dim=-1)
        return self.norm_key(split_heads(key, self.heads)), split_heads(value, self.heads)

    def join(self, values: Tensor) -> Tensor:
        """(B, h, Q, d_h) -> (B, Q, d) through W_O."""
        return self.output(join_heads(values).to(self.output.weight.dtype))


@dataclass(frozen=True)
class SoftmaxPartial(Partial):
    """Attention over some of the points: softmax(s) v = Σ exp(s - c) v / Σ exp(s - c), for any c.

    Keeping the running maximum as c makes the merge exact for logits of any size.
    """

    maximum: Tensor
    """(B, h, M, 1) c = max s."""
    total: Tensor
    """(B, h, M, 1) Σ exp(s - c)."""
    weighted: Tensor
    """(B, h, M, d_h) Σ exp(s - c) v."""
    join: Callable[[Tensor], Tensor]
    """Heads back to latents."""

    @staticmethod
    def of(
        scores: Tensor, value: Tensor, bias: Tensor | None, join: Callable[[Tensor], Tensor]
    ) -> "SoftmaxPartial":
        """Scores (B, h, M, N) and values (B, h, N, d_h) at some of the points, bias (B, 1, 1, N)."""
        scores = at_least_float32(scores)
        scores = scores if bias is None else scores + bias
        # A finite floor: where every point is padding, exp(-inf - maximum) is 0 and not NaN.
        maximum = scores.detach().amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
        weights = (scores - maximum).exp()
        with torch.autocast(weights.device.type, enabled=False):
            weighted = weights @ value.to(weights.dtype)
        return SoftmaxPartial(maximum, weights.sum(-1, keepdim=True), weighted, join)

    def merge(self, other: Self) -> Self:
        maximum = torch.maximum(self.maximum, other.maximum)
        mine, theirs = (self.maximum - maximum).exp(), (other.maximum - maximum).exp()
        return type(self)(
            maximum,
            mine * self.total + theirs * other.total,
            mine * self.weighted + theirs * other.weighted,
            self.join,
        )

    def over(self, others: Others) -> Self:
        maximum = others.most(self.maximum)
        mine = (self.maximum - maximum).exp()
        sums = others.total(mine * torch.cat([self.total, self.weighted], dim=-1))  # (B, h, M, 1 + d_h)
        return replace(self, maximum=maximum, total=sums[..., :1], weighted=sums[..., 1:])

    def finish(self) -> Tensor:
        # A sample without any point has zeros, as in the fused attention, and no NaN.
        return self.join(self.weighted / self.total.clamp(min=torch.finfo(self.total.dtype).tiny))


class FFN(nn.Sequential):
    """Linear(d -> hidden), GELU, Linear(hidden -> out or d)."""

    def __init__(self, width: int, hidden: int, out: int | None = None) -> None:
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, out or width))


def head_width(width: int, heads: int) -> int:
    """d_h = d / h, or a clear refusal."""
    if heads < 1 or width % heads:
        raise LrsaError(f"width {width} is not a multiple of heads {heads}")
    return width // heads


def split_heads(values: Tensor, heads: int) -> Tensor:
    """(B, N, d) -> (B, h, N, d_h), a view."""
    return values.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(values: Tensor) -> Tensor:
    """(B, h, N, d_h) -> (B, N, d)."""
    return values.transpose(1, 2).flatten(2)
