"""Physics attention of Transolver: points are softly assigned to M slices, the slices attend to each other
(Wu et al. 2024; paper, section 3.3 and appendix B.2).

The building blocks that LinearNO, Transolver++ and HPM share with it live here too.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import head_width, join_heads, split_heads
from lrsa.models.hidden import Declared, stacked
from lrsa.models.template import GlobalMix, LowRankMix, Partial, at_least_float32

GRID_CLAMP = (0.1, 5.0)
"""Range of the temperatures of the models on structured grids."""


class PhysicsAttention(LowRankMix["SlicePartial"]):
    """Physics attention on irregular points, per head of d_h channels.

    slice        w = softmax over slices of W_s(H W_x) / τ           (N, M)
    compress     z_m = Σ w_nm (H W_f)_n / (Σ w_nm + 1e-5)            over points n
    process      Z' = softmax(Z W_Q (Z W_K)ᵀ / √d_h) Z W_V
    reconstruct  ΔH = (w Z') W_O

    U and V are the same w: points read where they write. With quadrature weights both sums of the
    compression become integrals; the 1e-5 stays.

    Args:
        width: Channels d.
        heads: Heads; W_s, W_Q, W_K and W_V are shared by them, τ is not.
        rank: Slices M.
        clamp: Range of τ; None leaves it free, as published for irregular points.
    """

    matrices: ClassVar[Declared] = {"project.weight": stacked(2)}

    def __init__(self, width: int, heads: int, rank: int, clamp: tuple[float, float] | None = None) -> None:
        super().__init__()
        self.project = nn.Linear(width, 2 * width)  # W_f, W_x in one product
        self.slices = HeadSoftmax(width, heads, rank, clamp)
        self.tokens = SliceTokens(width, heads)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As in the template, with the slice weights computed once."""
        values, features = self.project(h).chunk(2, dim=-1)
        return self.tokens(self.slices(features), values, context.measure())

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) slice tokens."""
        return self.partial(h, x, context).finish()

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "SlicePartial":
        """Weighted sums and weights over some of the points."""
        values, features = self.project(h).chunk(2, dim=-1)
        return self.tokens.gather(self.slices(features), values, context.measure())

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d): attention among the tokens of each head."""
        return self.tokens.attend(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) tokens -> (B, N, d), by the slice weights of each point."""
        width = self.project.in_features
        features = linear(h, self.project.weight[width:], self.project.bias[width:])
        return self.tokens.scatter(self.slices(features), latents)


class GridPhysicsAttention(GlobalMix):
    """Physics attention on a structured grid: 3x3 convolutions for W_f and W_x, τ clamped to [0.1, 5].

    Args:
        width: Channels d.
        heads: Heads.
        rank: Slices M.
    """

    needs = Needs(grid=True)

    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.project = GridConv(width, 2 * width)
        self.slices = HeadSoftmax(width, heads, rank, GRID_CLAMP)
        self.tokens = SliceTokens(width, heads)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a grid of two axes."""
        values, features = self.project(h, context).chunk(2, dim=-1)
        return self.tokens(self.slices(features), values, context.measure())


class HeadSoftmax(nn.Module):
    """softmax over M of (W x + b) / τ at every point and head; W and b shared by heads, τ one per head.

    The temperature divides the small W and b rather than the (B, h, N, M) scores, the largest tensor of
    the model.
    """

    def __init__(self, width: int, heads: int, rank: int, clamp: tuple[float, float] | None) -> None:
        super().__init__()
        self.heads, self.clamp = heads, clamp
        self.linear = nn.Linear(head_width(width, heads), rank)
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), 0.5))

    def forward(self, features: Tensor) -> Tensor:
        """(B, N, d) -> (B, h, N, M)."""
        batch = features.shape[0]
        temperature = self.temperature if self.clamp is None else self.temperature.clamp(*self.clamp)
        weight = (self.linear.weight.t() / temperature).repeat(batch, 1, 1)  # (B h, d_h, M)
        bias = (self.linear.bias / temperature).repeat(batch, 1, 1)  # (B h, 1, M)
        points = split_heads(features, self.heads).flatten(0, 1)  # (B h, N, d_h)
        return torch.baddbmm(bias, points, weight).softmax(-1).unflatten(0, (batch, self.heads))


class SliceTokens(nn.Module):
    """Everything of physics attention but the slice weights: gather, attend, scatter."""

    matrices: ClassVar[Declared] = {"query_key_value.weight": stacked(3)}

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, inner = heads, head_width(width, heads)
        self.query_key_value = nn.Linear(inner, 3 * inner, bias=False)
        self.output = nn.Linear(width, width)

    def forward(self, weights: Tensor, values: Tensor, measure: Tensor | None) -> Tensor:
        """weights (B, h, N, M), values (B, N, d), measure (B, N) -> (B, N, d)."""
        return self.scatter(weights, self.attend(self.gather(weights, values, measure).finish()))

    def gather(self, weights: Tensor, values: Tensor, measure: Tensor | None) -> "SlicePartial":
        """The sums over points of weights times values, and of weights."""
        if measure is None:
            total = weights.sum(2).unsqueeze(-1)
        else:
            measure = measure.to(values.dtype)[:, :, None]
            total = weights.transpose(-1, -2) @ measure.to(weights.dtype)[:, None]
            values = values * measure
        weighted = weights.transpose(-1, -2) @ split_heads(values, self.heads).to(weights.dtype)
        return SlicePartial(at_least_float32(total), at_least_float32(weighted))

    def attend(self, tokens: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d)."""
        heads = split_heads(tokens.to(self.output.weight.dtype), self.heads)
        return join_heads(scaled_dot_product_attention(*self.query_key_value(heads).chunk(3, dim=-1)))

    def scatter(self, weights: Tensor, tokens: Tensor) -> Tensor:
        """weights (B, h, N, M), tokens (B, M, d) -> (B, N, d)."""
        return self.output(join_heads(weights @ split_heads(tokens.to(weights.dtype), self.heads)))


@dataclass(frozen=True)
class SlicePartial(Partial):
    """Slice tokens over some of the points, before the division."""

    total: Tensor
    """(B, h, M, 1) Σ w."""
    weighted: Tensor
    """(B, h, M, d_h) Σ w v."""

    def merge(self, other: Self) -> Self:
        return replace(self, total=self.total + other.total, weighted=self.weighted + other.weighted)

    def finish(self) -> Tensor:
        return join_heads(self.weighted / (self.total + 1e-5))


class GridConv(nn.Module):
    """Square convolution on the index grid, (B, N, d) -> (B, N, out), size kept."""

    def __init__(self, width: int, out: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, out, kernel_size, padding=kernel_size // 2)

    def forward(self, h: Tensor, context: Context) -> Tensor:
        grid = context.need("grid", "a convolution")
        if context.mask is not None or len(grid) != 2:
            raise LrsaError("a model with convolutions takes full grids of two axes. Use its pointwise form")
        # (B, d, H, W), a view that is channels last in memory: the fast layout of convolutions.
        image = h.unflatten(1, grid).permute(0, 3, 1, 2)
        return self.conv(image).flatten(2).transpose(1, 2)
