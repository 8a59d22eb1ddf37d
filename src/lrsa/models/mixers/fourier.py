"""Spectral convolution on an index grid: Φ the low Fourier modes, G one matrix per mode (paper, section 3.3).

Z. Li et al., Fourier Neural Operator for Parametric Partial Differential Equations, 2021.
"""

import math

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.template import GlobalMix

FILTER = 0.1
"""The deviation of the factors of a new filter: weak beside what it is added to."""


class FourierMix(GlobalMix):
    """Δh = F⁻¹ (W_k · (F h)_k), with |k| below `modes` along each of the two axes of the grid.

    The transform is that of the index grid, whose points are equidistant: quadrature weights do not enter.

    Args:
        width: Channels d.
        modes: Frequencies kept on each side of zero, per axis.
    """

    needs = Needs(grid=True)

    def __init__(self, width: int, modes: int = 12) -> None:
        super().__init__()
        self.spectral = SpectralConvolution(width, modes)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a full grid of two axes."""
        return self.spectral(h.unflatten(1, full_grid(context, "the Fourier transform", h.shape[1]))).flatten(
            1, 2
        )


class SpectralConvolution(nn.Module):
    """The same on images with the channels last: (B, H, W, d) -> (B, H, W, d).

    Frequencies that the grid does not have (beyond half its points) have no coefficient and are left out.
    """

    def __init__(self, width: int, modes: int) -> None:
        super().__init__()
        self.modes = modes
        # Rows are the frequencies 0 .. m-1, -m .. -1 of the first axis; columns 0 .. m-1 of the second.
        self.weight = nn.Parameter(self.initial(2 * modes, modes, width))

    def forward(self, h: Tensor) -> Tensor:
        rows, columns = h.shape[1:3]
        values = h.to(torch.promote_types(h.dtype, torch.float32))  # no half-precision transform exists
        upper, lower = min(self.modes, (rows + 1) // 2), min(self.modes, rows // 2)
        coefficients = torch.fft.rfft(values, dim=2)[:, :, : self.modes]
        coefficients = torch.fft.fft(coefficients, dim=1)  # (B, H, k, d)
        kept = torch.cat([coefficients[:, :upper], coefficients[:, rows - lower :]], dim=1)
        weight = torch.cat([self.weight[:upper], self.weight[2 * self.modes - lower :]])
        weight = torch.view_as_complex(weight[:, : kept.shape[2]].to(values.dtype).contiguous())
        mixed = self.multiply(kept, weight)
        gap = mixed.new_zeros(h.shape[0], rows - upper - lower, *mixed.shape[2:])
        spectrum = torch.cat([mixed[:, :upper], gap, mixed[:, upper:]], dim=1)
        return torch.fft.irfft(torch.fft.ifft(spectrum, dim=1), n=columns, dim=2).to(h.dtype)

    def initial(self, rows: int, columns: int, width: int) -> Tensor:
        """Real and imaginary part of a matrix for each frequency."""
        return torch.rand(rows, columns, width, width, 2) / width**2

    def multiply(self, kept: Tensor, weight: Tensor) -> Tensor:
        """W_k · (F h)_k: coefficients (B, r, k, d) by a matrix (d, d) for each."""
        return torch.einsum("brkc,rkco->brko", kept, weight)


class SpectralFilter(SpectralConvolution):
    """The same with a number for each frequency and channel instead of a matrix: channels do not mix."""

    def initial(self, rows: int, columns: int, width: int) -> Tensor:
        return FILTER * torch.randn(rows, columns, width, 2)

    def multiply(self, kept: Tensor, weight: Tensor) -> Tensor:
        return kept * weight


def full_grid(context: Context, who: str, points: int) -> tuple[int, int]:
    """The two axes of the grid of so many points, or a clear refusal on behalf of `who`."""
    rows, columns = full_axes(context, who, points, 2)
    return rows, columns


def full_axes(context: Context, who: str, points: int, axes: int) -> tuple[int, ...]:
    """The axes of the grid of so many points, if they are so many, or a clear refusal on behalf of `who`."""
    grid = context.need("grid", who)
    if len(grid) != axes:
        count = {2: "two", 3: "three"}[axes]
        raise LrsaError(
            f"{who} takes grids of {count} axes, and this one has {len(grid)}. Choose a model for point sets"
        )
    if context.mask is not None:
        raise LrsaError(f"{who} takes full grids, and this batch is padded. Choose a model for point sets")
    if math.prod(grid) != points:
        raise LrsaError(f"{who} takes full grids: {points} points do not fill {' x '.join(map(str, grid))}")
    return grid
