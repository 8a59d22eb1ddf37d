"""Linear attention of LinearNO: ΔH = φ(Q) (ψ(K)ᵀ V), no latent mixing (Hu et al. 2025; appendix B.2)."""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from lrsa.context import Context, Needs
from lrsa.models.attention import SoftmaxPartial, head_width, join_heads, split_heads
from lrsa.models.mixers.transolver import GridConv
from lrsa.models.template import GlobalMix, LowRankMix, at_least_float32


class LinearAttention(LowRankMix[SoftmaxPartial]):
    """Linear attention on irregular points, per head of d_h channels, from one projection Y = H W.

    compress     Z = softmax over points of (Y W_K / τ_K)ᵀ Y           (M, d_h)
    process      Z' = Z W_V: V is linear in Y, so it is applied to M latents rather than to N points
    reconstruct  ΔH = Out(softmax over M of (Y W_Q / τ_Q) Z')

    Both softmaxes are attention with learned queries W_K / τ_K or learned keys W_Q / τ_Q, and run on the
    fused kernels. Quadrature weights enter the softmax over points by their logarithm.

    Args:
        width: Channels d.
        heads: Heads; W_Q, W_K and W_V are shared by them.
        rank: Latents M.
        temperature: Range to which the learned τ of each head are clamped; None is the variant without τ.
        deep_output: Out is Linear-GELU-Linear rather than Linear.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        rank: int,
        temperature: tuple[float, float] | None = None,
        deep_output: bool = False,
    ) -> None:
        super().__init__()
        self.project = nn.Linear(width, width)
        self.kernel = LinearKernel(width, heads, rank, temperature, deep_output)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As in the template, with the projection computed once."""
        return self.kernel(self.project(h), context)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) latents."""
        return self.kernel.gather(self.project(h), context)

    def partial(self, h: Tensor, x: Tensor, context: Context) -> SoftmaxPartial:
        """The same softmax over some of the points, as a log-sum-exp that merges."""
        return self.kernel.partial(self.project(h), context)

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d): W_V."""
        return self.kernel.values(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, N, d), each point by itself."""
        return self.kernel.scatter(self.project(h), latents)


class GridLinearAttention(GlobalMix):
    """Linear attention on a structured grid: W is a 3x3 convolution and Out has two layers.

    Args:
        width: Channels d.
        heads: Heads.
        rank: Latents M.
        temperature: Range to which the learned τ of each head are clamped; None is the variant without τ.
    """

    needs = Needs(grid=True)

    def __init__(
        self, width: int, heads: int, rank: int, temperature: tuple[float, float] | None = None
    ) -> None:
        super().__init__()
        self.project = GridConv(width, width)
        self.kernel = LinearKernel(width, heads, rank, temperature, deep_output=True)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a grid of two axes."""
        return self.kernel(self.project(h, context), context)


class LinearKernel(nn.Module):
    """Everything of linear attention but the input projection Y."""

    def __init__(
        self, width: int, heads: int, rank: int, temperature: tuple[float, float] | None, deep_output: bool
    ) -> None:
        super().__init__()
        self.heads, self.clamp, inner = heads, temperature, head_width(width, heads)
        self.query = nn.Linear(inner, rank, bias=False)
        self.key = nn.Linear(inner, rank, bias=False)
        self.value = nn.Linear(inner, inner, bias=False)
        self.temperature_query = nn.Parameter(torch.full((heads, 1, 1), 0.5)) if temperature else None
        self.temperature_key = nn.Parameter(torch.full((heads, 1, 1), 0.5)) if temperature else None
        self.output = (
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
            if deep_output
            else nn.Linear(width, width)
        )

    def forward(self, features: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        return self.scatter(features, self.values(self.gather(features, context)))

    def gather(self, features: Tensor, context: Context) -> Tensor:
        """Y (B, N, d) -> Z (B, M, d)."""
        points = split_heads(features, self.heads)
        queries = self._divided(self.key, self.temperature_key, features.shape[0])
        bias = context.log_measure(features.dtype)
        return join_heads(scaled_dot_product_attention(queries, points, points, attn_mask=bias, scale=1.0))

    def partial(self, features: Tensor, context: Context) -> SoftmaxPartial:
        """Numerator and denominator of Z over some of the points, in fp32 at least."""
        points = split_heads(features, self.heads)
        scores = self._divided(self.key, self.temperature_key, features.shape[0]) @ points.transpose(-1, -2)
        scores = at_least_float32(scores)  # (B, h, M, N)
        return SoftmaxPartial.of(scores, points, context.log_measure(scores.dtype), join_heads)

    def values(self, latents: Tensor) -> Tensor:
        """Z (B, M, d) -> Z W_V (B, M, d)."""
        return self.value(latents.to(self.value.weight.dtype).unflatten(-1, (self.heads, -1))).flatten(2)

    def scatter(self, features: Tensor, latents: Tensor) -> Tensor:
        """Y (B, N, d), Z' (B, M, d) -> (B, N, d)."""
        keys = self._divided(self.query, self.temperature_query, features.shape[0])
        points, values = split_heads(features, self.heads), split_heads(latents, self.heads)
        return self.output(join_heads(scaled_dot_product_attention(points, keys, values, scale=1.0)))

    def _divided(self, weight: nn.Linear, temperature: nn.Parameter | None, batch: int) -> Tensor:
        """W / τ of every head, (B, h, M, d_h)."""
        if temperature is None or self.clamp is None:
            return weight.weight.expand(batch, self.heads, -1, -1)
        return (weight.weight / temperature.clamp(*self.clamp)).expand(batch, -1, -1, -1)
