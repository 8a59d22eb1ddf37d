"""FLARE: two tied attentions without a latent mixer, the symmetric corner of LRSA (arXiv 2508.12594)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from lrsa.context import Context
from lrsa.models.attention import SoftmaxPartial, head_width, join_heads, split_heads
from lrsa.models.template import LowRankMix


class FlareAttention(LowRankMix[SoftmaxPartial]):
    """Points write to and read from per-head latent queries by the same scores, without 1/√d_h.

    compress     Z  = softmax over points of (Q Kᵀ) V
    process      nothing
    reconstruct  ΔH = softmax over latents of (K Qᵀ) Z, through an output projection

    K and V are deep residual MLPs of the points; Q are M learned latents of each head's own.

    Args:
        width: Channels d.
        heads: Attention heads.
        rank: Latents M per head.
        key_layers: Middle layers of the key MLP.
        value_layers: Middle layers of the value MLP.
        qk_norm: Normalise the queries and keys of every head.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        rank: int,
        key_layers: int = 3,
        value_layers: int = 3,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        self.heads, inner = heads, head_width(width, heads)
        self.latents = nn.Parameter(0.1 * torch.randn(heads, rank, inner))  # Q
        self.key, self.value = ResidualMLP(width, width, key_layers), ResidualMLP(width, width, value_layers)
        self.norm_query = nn.LayerNorm(inner) if qk_norm else nn.Identity()
        self.norm_key = nn.LayerNorm(inner) if qk_norm else nn.Identity()
        self.output = nn.Linear(width, width)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As the template has it, with the keys computed once."""
        key = self.keys(h)
        return self._scatter(key, self._gather(key, h, context))

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) latents."""
        return join_heads(self._gather(self.keys(h), h, context))

    def partial(self, h: Tensor, x: Tensor, context: Context) -> SoftmaxPartial:
        """The same attention over some of the points."""
        scores = self.queries(h) @ self.keys(h).transpose(-1, -2)
        return SoftmaxPartial.of(
            scores, split_heads(self.value(h), self.heads), context.log_measure(h.dtype), join_heads
        )

    def process(self, latents: Tensor) -> Tensor:
        """G = I."""
        return latents

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, N, d) at the points of h, each by itself."""
        return self._scatter(self.keys(h), split_heads(latents, self.heads))

    def queries(self, h: Tensor) -> Tensor:
        """(B, h, M, d_h), the same for every sample of h (B, N, d)."""
        return self.norm_query(self.latents).expand(h.shape[0], -1, -1, -1)

    def keys(self, h: Tensor) -> Tensor:
        """(B, N, d) -> (B, h, N, d_h)."""
        return self.norm_key(split_heads(self.key(h), self.heads))

    def _gather(self, key: Tensor, h: Tensor, context: Context) -> Tensor:
        bias, value = context.log_measure(h.dtype), split_heads(self.value(h), self.heads)
        return scaled_dot_product_attention(self.queries(h), key, value, attn_mask=bias, scale=1.0)

    def _scatter(self, key: Tensor, latents: Tensor) -> Tensor:
        read = scaled_dot_product_attention(key, self.queries(key), latents.to(key.dtype), scale=1.0)
        return self.output(join_heads(read))


class ResidualMLP(nn.Module):
    """v = act(W u), v ← v + act(W_i v) for each middle layer, then W v; tanh-approximated GELU.

    Args:
        width: Channels in.
        hidden: Channels of the middle layers.
        layers: Middle layers.
        out: Channels out (default: hidden).
        input_residual: Add u to the first layer.
        output_residual: Add v to the last layer.
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        layers: int,
        out: int | None = None,
        input_residual: bool = True,
        output_residual: bool = True,
    ) -> None:
        super().__init__()
        self.input_residual, self.output_residual = input_residual, output_residual
        self.first = nn.Linear(width, hidden)
        self.middle = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.last = nn.Linear(hidden, out or hidden)

    def forward(self, u: Tensor) -> Tensor:
        """(..., width) -> (..., out)."""
        v = gelu(self.first(u), approximate="tanh")
        if self.input_residual:
            v = v + u
        for layer in self.middle:
            v = v + gelu(layer(v), approximate="tanh")
        return self.last(v) + v if self.output_residual else self.last(v)
