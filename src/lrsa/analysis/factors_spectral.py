"""Factors of the layers in a given basis: eigenfunctions (NORM), gated (HPM), Fourier modes (FNO, F-FNO)."""

import torch
from torch import Tensor, nn

from lrsa.analysis.lowrank import Factors, OnGrid, factors_of, measured
from lrsa.context import Context
from lrsa.models.attention import split_heads
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.mixers.eigenbasis_gated import GatedEigenbasis, GatedSpectrum, GridGatedEigenbasis
from lrsa.models.mixers.factorised_fourier import FactorisedConvolution, FactorisedFourierMix
from lrsa.models.mixers.fourier import FourierMix, SpectralConvolution, full_grid


@factors_of.register
def _(layer: EigenbasisMix, h: Tensor, x: Tensor, context: Context) -> Factors:
    basis = layer.basis(h, context)
    weighted = measured(basis[:, None], context)[:, 0]
    gram = weighted.transpose(1, 2) @ basis
    v = torch.linalg.solve(gram, weighted.transpose(1, 2)).transpose(1, 2)
    return Factors(basis, v, h.to(basis.dtype), layer.weight.to(basis.dtype)[None])


@factors_of.register
def _(layer: GatedEigenbasis, h: Tensor, x: Tensor, context: Context) -> Factors:
    return _gated(layer.spectrum, layer.project(h), context)


@factors_of.register
def _(layer: GridGatedEigenbasis, h: Tensor, x: Tensor, context: Context) -> Factors:
    return _gated(layer.spectrum, layer.project(h, context), context)


def _gated(spectrum: GatedSpectrum, projected: Tensor, context: Context) -> Factors:
    """With its mean μ and deviation s fixed, the LayerNorm is a scale γ_k / s and a shift per mode."""
    values, features = projected.chunk(2, dim=-1)
    u = spectrum.basis(features, context)
    v, values = measured(u, context), split_heads(values, spectrum.heads)
    latents = v.transpose(-1, -2) @ values  # (1, C, K, e)
    mean = latents.mean((-1, -2), keepdim=True)
    scale = spectrum.norm.weight / (latents.var((-1, -2), False, keepdim=True) + spectrum.norm.eps).sqrt()
    shift = (spectrum.norm.bias - mean * scale) @ spectrum.weight
    return Factors(u[0], v[0], values[0], scale[0, ..., None] * spectrum.weight, spectrum.output, shift[0])


@factors_of.register(FourierMix)
@factors_of.register(FactorisedFourierMix)
@factors_of.register(OnGrid)
def _(layer: FourierMix | FactorisedFourierMix | OnGrid, h: Tensor, x: Tensor, context: Context) -> Factors:
    """Δh = Re Σ_k c_k e^{iθ_k(x)} G_k Σ_y e^{-iθ_k(y)} h(y) / n; c_k = 2 where -k has no term of its own."""
    grid = full_grid(context, "the Fourier transform", h.shape[1])
    u, v, g = _modes(layer.spectral, grid, h)
    return Factors(u[None], v[None], h, g[None])


def _modes(spectral: nn.Module, grid: tuple[int, int], like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = grid
    if isinstance(spectral, SpectralConvolution):
        m = spectral.modes
        upper, lower = min(m, (rows + 1) // 2), min(m, rows // 2)
        kept = torch.cat([torch.arange(upper), torch.arange(rows - lower, rows)])
        u2, v2 = _waves(columns, min(m, columns // 2 + 1), like)
        u1 = torch.exp(2j * torch.pi * torch.outer(torch.arange(rows), kept).to(like) / rows)
        weight = torch.cat([spectral.weight[:upper], spectral.weight[2 * m - lower :]])[:, : u2.shape[1]]
        u, v = torch.kron(u1 / rows, u2), torch.kron(u1.conj(), v2)
        return u, v, torch.view_as_complex(weight.to(like).contiguous()).flatten(0, 1)
    assert isinstance(spectral, FactorisedConvolution)
    # One axis after the other is left alone: its lines are modes of their own.
    (u1, v1), (u2, v2) = (
        _waves(n, min(len(w), n // 2 + 1), like)
        for n, w in ((rows, spectral.rows), (columns, spectral.columns))
    )
    eye1, eye2 = (torch.eye(n, dtype=u1.dtype) for n in grid)
    u = torch.cat([torch.kron(u1, eye2), torch.kron(eye1, u2)], 1)
    v = torch.cat([torch.kron(v1, eye2), torch.kron(eye1, v2)], 1)
    first, second = (
        torch.view_as_complex(w[: a.shape[1]].to(like).contiguous())
        for w, a in ((spectral.rows, u1), (spectral.columns, u2))
    )
    return u, v, torch.cat([first.repeat_interleave(columns, 0), second.repeat(rows, 1, 1)])


def _waves(points: int, modes: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Inverse and forward transform (n, k) of a real signal along one axis."""
    frequency = torch.arange(modes)
    waves = torch.exp(2j * torch.pi * torch.outer(torch.arange(points), frequency).to(like) / points)
    alone = (frequency == 0) | (2 * frequency == points)
    return waves * torch.where(alone, 1.0, 2.0).to(like) / points, waves.conj()
