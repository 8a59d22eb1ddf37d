"""Axial factorised attention: one kernel per grid axis (FactFormer, Li et al. 2023, arXiv 2305.17560).

Our own reading of the paper; there is no reference file to compare with.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import instance_norm

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN, head_width, join_heads, split_heads
from lrsa.models.hidden import Declared, stacked
from lrsa.models.template import GlobalMix


class FactorisedAttention(GlobalMix):
    """z(i₁, …, i_n) = Σ_j κ¹(i₁, j₁) ⋯ κⁿ(i_n, j_n) v(j₁, …, j_n), one sum per axis instead of N x N.

    uᵐ = γᵐ(mean of W h over the other axes), κᵐ = (R q)(R k)ᵀ / S_m with q, k = uᵐ W_Q, uᵐ W_K,
    Δh = W₂ GELU(W₁ InstanceNorm(z)).

    γᵐ is LayerNorm and FFN, R the rotary encoding of the index along the axis, S_m its length, and there is
    no softmax. The integral runs over the index grid, whose cells weigh the same: quadrature weights do not
    enter, and a padded grid is refused.

    Args:
        width: Channels d.
        heads: Attention heads.
        axes: Axes n of the grid.
        kernel_multiplier: Width of queries and keys, in units of the width of a head.
    """

    needs = Needs(grid=True)

    def __init__(self, width: int, heads: int, axes: int = 2, kernel_multiplier: int = 2) -> None:
        super().__init__()
        kernel_width = kernel_multiplier * head_width(width, heads)
        if kernel_width % 2:
            raise LrsaError("rotary encoding needs an even kernel width. Use kernel_multiplier=2")
        self.heads = heads
        self.value = nn.Linear(width, width, bias=False)
        self.kernels = nn.ModuleList(AxisKernel(width, heads, kernel_width) for _ in range(axes))
        self.output = nn.Sequential(
            nn.Linear(width, width, bias=False), nn.GELU(), nn.Linear(width, width, bias=False)
        )

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of the grid."""
        grid = self._grid(context, h.shape[1])
        z = self.integrate(self.value(h), self.axis_kernels(h, grid), grid)
        return self.output(instance_norm(z.transpose(1, 2)).transpose(1, 2))

    def axis_kernels(self, h: Tensor, grid: Sequence[int]) -> list[Tensor]:
        """κᵐ (B, h, S_m, S_m) for every axis m, from h (B, N, d)."""
        u = h.unflatten(1, tuple(grid))
        return [
            kernel(u.movedim(1 + m, 1).reshape(h.shape[0], grid[m], -1, h.shape[-1]))
            for m, kernel in enumerate(self.kernels)
        ]

    def integrate(self, v: Tensor, kernels: Sequence[Tensor], grid: Sequence[int]) -> Tensor:
        """Apply the kernels to v (B, N, d), one axis after the other -> (B, N, d)."""
        z = split_heads(v, self.heads).unflatten(2, tuple(grid))  # (B, h, S…, d_h)
        for m, kernel in enumerate(kernels):
            lines = z.movedim(2 + m, 2)
            z = (kernel @ lines.flatten(3)).unflatten(3, lines.shape[3:]).movedim(2, 2 + m)
        return join_heads(z.flatten(2, -2))

    def _grid(self, context: Context, points: int) -> tuple[int, ...]:
        grid = context.need("grid", "FactFormer")
        if context.mask is not None:
            raise LrsaError("FactFormer takes no mask: its kernels act along whole grid lines. Do not pad")
        if len(grid) != len(self.kernels):
            raise LrsaError(
                f"FactFormer was made for {len(self.kernels)} grid axes, and the data has a grid"
                f" {tuple(grid)}. Set axes={len(grid)}"
            )
        if math.prod(grid) != points:
            raise LrsaError(f"a grid {tuple(grid)} has {math.prod(grid)} points, and the sample has {points}")
        return tuple(grid)


class AxisKernel(nn.Module):
    """The function of one variable that an axis sees of h, and its kernel κ = (R q)(R k)ᵀ / S."""

    matrices: ClassVar[Declared] = {"query_key.weight": stacked(2)}

    def __init__(self, width: int, heads: int, kernel_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.pool = nn.Linear(width, width, bias=False)
        self.norm, self.ffn = nn.LayerNorm(width), FFN(width, width)
        self.query_key = nn.Linear(width, 2 * heads * kernel_width, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        """u (B, S, points on the other axes, d) -> κ (B, h, S, S)."""
        # The mean first: it commutes with the linear map and leaves it S rows instead of N.
        line = self.ffn(self.norm(self.pool(u.mean(2))))  # (B, S, d)
        query, key = self.query_key(line).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return rotate(query) @ rotate(key).transpose(-1, -2) / u.shape[1]


def rotate(values: Tensor, span: float = 64.0) -> Tensor:
    """Rotary encoding of values (..., S, e) at S equidistant positions over [0, span]."""
    length, half = values.shape[-2], values.shape[-1] // 2
    position = torch.linspace(0.0, span, length, dtype=values.dtype, device=values.device)
    rates = torch.exp(torch.arange(half, dtype=values.dtype, device=values.device) * (-math.log(1e4) / half))
    angles = position[:, None] * rates
    first, second = values.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)
