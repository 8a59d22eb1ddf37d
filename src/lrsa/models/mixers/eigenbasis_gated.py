"""Gated spectral mixing of HPM: eigenvectors, re-weighted at every point (Yue et al. 2024; section 3.3)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import head_width, join_heads, split_heads
from lrsa.models.hidden import Declared, stacked, whole
from lrsa.models.mixers.transolver import GRID_CLAMP, GridConv, HeadSoftmax
from lrsa.models.template import GlobalMix, LowRankMix, Partial, at_least_float32


class GatedEigenbasis(LowRankMix["SpectrumPartial"]):
    """Gated eigenbasis on irregular points, per head of d_h channels.

    basis        Φ = E ⊙ softmax over frequencies of W_g(H W_x) / τ     (N, K)
    compress     Z = Φᵀ (H W_f), a plain sum over the points
    process      Z' = LayerNorm over (K, d_h) of Z, times one d_h × d_h matrix
    reconstruct  ΔH = (Φ Z') W_O

    E is `Context.basis`, its first K columns, each row divided by its norm. The sum over points has no
    normaliser; with quadrature weights (mean 1) each point counts by its weight, so uniform weights change
    nothing, and the LayerNorm removes the scale.

    Args:
        width: Channels d.
        heads: Heads; W_g and the d_h × d_h matrix are shared by them, τ is not.
        rank: Frequencies K.
        clamp: Range of τ; None leaves it free, as published for irregular points.
    """

    matrices: ClassVar[Declared] = {"project.weight": stacked(2)}

    def __init__(self, width: int, heads: int, rank: int, clamp: tuple[float, float] | None = None) -> None:
        super().__init__()
        self.needs = Needs(eigenfunctions=rank)
        self.project = nn.Linear(width, 2 * width)  # W_f, W_x in one product
        self.spectrum = GatedSpectrum(width, heads, rank, clamp)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """As in the template, with the gates computed once."""
        return self.spectrum(self.project(h), context)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, K, d) coefficients."""
        return self.partial(h, x, context).finish()

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "SpectrumPartial":
        """The coefficients of some of the points."""
        values, features = self.project(h).chunk(2, dim=-1)
        return self.spectrum.gather(self.spectrum.basis(features, context), values, context.measure())

    def process(self, latents: Tensor) -> Tensor:
        """(B, K, d) -> (B, K, d)."""
        return self.spectrum.mix(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, K, d) coefficients -> (B, N, d); the points need their eigenvectors."""
        width = self.project.in_features
        features = linear(h, self.project.weight[width:], self.project.bias[width:])
        return self.spectrum.scatter(self.spectrum.basis(features, context), latents)


class PlainEigenbasis(LowRankMix["SpectrumPartial"]):
    """The same without gates, Φ = E: points tell neither frequencies nor, as outputs, anything of themselves.

    Args:
        width: Channels d.
        heads: Heads.
        rank: Frequencies K.
    """

    matrices: ClassVar[Declared] = {"weight": whole}

    def __init__(self, width: int, heads: int, rank: int) -> None:
        super().__init__()
        self.heads, self.rank, self.needs = heads, rank, Needs(eigenfunctions=rank)
        inner = head_width(width, heads)
        self.project = nn.Linear(width, width)  # W_f
        self.norm = nn.LayerNorm([rank, inner])
        self.weight = nn.Parameter(torch.empty(inner, inner))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.output = nn.Linear(width, width)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, K, d) coefficients."""
        return self.partial(h, x, context).finish()

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "SpectrumPartial":
        """The coefficients of some of the points."""
        values, measure = self.project(h), context.measure()
        if measure is not None:
            values = values * measure.to(values.dtype)[:, :, None]
        basis = unit_rows(context, self.rank, values.dtype)[:, None]
        return SpectrumPartial(at_least_float32(basis.transpose(-1, -2) @ split_heads(values, self.heads)))

    def process(self, latents: Tensor) -> Tensor:
        """(B, K, d) -> (B, K, d)."""
        return join_heads(self.norm(split_heads(latents.to(self.weight.dtype), self.heads)) @ self.weight)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, K, d) coefficients -> (B, N, d)."""
        basis = unit_rows(context, self.rank, latents.dtype)[:, None]
        return self.output(join_heads(basis @ split_heads(latents, self.heads)).to(h.dtype))


class GridGatedEigenbasis(GlobalMix):
    """Gated eigenbasis on a structured grid: convolutions for W_f and W_x, τ clamped to [0.1, 5].

    Args:
        width: Channels d.
        heads: Heads.
        rank: Frequencies K.
        kernel_size: Size of the square convolutions.
    """

    def __init__(self, width: int, heads: int, rank: int, kernel_size: int = 3) -> None:
        super().__init__()
        self.needs = Needs(grid=True, eigenfunctions=rank)
        self.project = GridConv(width, 2 * width, kernel_size)
        self.spectrum = GatedSpectrum(width, heads, rank, GRID_CLAMP)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a grid of two axes."""
        return self.spectrum(self.project(h, context), context)


class GatedSpectrum(nn.Module):
    """Everything of the gated eigenbasis but the input projections."""

    matrices: ClassVar[Declared] = {"weight": whole}

    def __init__(self, width: int, heads: int, rank: int, clamp: tuple[float, float] | None) -> None:
        super().__init__()
        self.heads, self.rank, inner = heads, rank, head_width(width, heads)
        self.gates = HeadSoftmax(width, heads, rank, clamp)
        self.norm = nn.LayerNorm([rank, inner])
        self.weight = nn.Parameter(torch.empty(inner, inner))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        self.output = nn.Linear(width, width)

    def forward(self, projected: Tensor, context: Context) -> Tensor:
        """(B, N, 2 d) -> (B, N, d)."""
        values, features = projected.chunk(2, dim=-1)
        basis = self.basis(features, context)
        return self.scatter(basis, self.mix(self.gather(basis, values, context.measure()).finish()))

    def basis(self, features: Tensor, context: Context) -> Tensor:
        """Φ of every head, (B, h, N, K)."""
        gates = self.gates(features)
        return gates * unit_rows(context, self.rank, gates.dtype)[:, None]

    def gather(self, basis: Tensor, values: Tensor, measure: Tensor | None) -> "SpectrumPartial":
        """Φᵀ values over the points given."""
        if measure is not None:
            values = values * measure.to(values.dtype)[:, :, None]
        return SpectrumPartial(
            at_least_float32(basis.transpose(-1, -2) @ split_heads(values, self.heads).to(basis.dtype))
        )

    def mix(self, latents: Tensor) -> Tensor:
        """(B, K, d) -> (B, K, d)."""
        heads = split_heads(latents.to(self.weight.dtype), self.heads)  # (B, h, K, d_h)
        return join_heads(self.norm(heads) @ self.weight)

    def scatter(self, basis: Tensor, latents: Tensor) -> Tensor:
        """Φ (B, h, N, K), coefficients (B, K, d) -> (B, N, d)."""
        return self.output(join_heads(basis @ split_heads(latents.to(basis.dtype), self.heads)))


def unit_rows(context: Context, rank: int, dtype: torch.dtype) -> Tensor:
    """E (B, N, K): the first eigenvectors, each point's row of norm 1."""
    eigenvectors = context.need("basis", "the gated eigenbasis")
    if eigenvectors.shape[-1] < rank:
        raise LrsaError(
            f"the model has {rank} frequencies, but the data only {eigenvectors.shape[-1]}"
            " eigenvectors. Compute more of them, or lower rank"
        )
    eigenvectors = normalize(eigenvectors[..., :rank].to(dtype), dim=-1)
    if context.mask is not None:
        eigenvectors = eigenvectors.masked_fill(~context.mask[..., None], 0)  # whatever the padding holds
    return eigenvectors


@dataclass(frozen=True)
class SpectrumPartial(Partial):
    """Coefficients summed over some of the points."""

    coefficients: Tensor
    """(B, h, K, d_h) Φᵀ v."""

    def merge(self, other: Self) -> Self:
        return replace(self, coefficients=self.coefficients + other.coefficients)

    def finish(self) -> Tensor:
        return join_heads(self.coefficients)
