"""Factorised spectral convolution: one transform per axis of the grid, summed.

A. Tran et al., Factorized Fourier Neural Operators, 2023.
"""

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.models.mixers.fourier import full_grid
from lrsa.models.template import GlobalMix


class FactorisedFourierMix(GlobalMix):
    """Δh = Σ_a F_a⁻¹ (W_{a,k} · (F_a h)_k) over the two axes a, each with its own low modes k.

    The transform is that of the index grid, whose points are equidistant: quadrature weights do not enter.

    Args:
        width: Channels d.
        modes: Frequencies kept along the first and the second axis.
    """

    needs = Needs(grid=True)

    def __init__(self, width: int, modes: tuple[int, int] = (12, 12)) -> None:
        super().__init__()
        self.spectral = FactorisedConvolution(width, modes)

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a full grid of two axes."""
        grid = full_grid(context, "the factorised Fourier transform", h.shape[1])
        return self.spectral(h.unflatten(1, grid)).flatten(1, 2)


class FactorisedConvolution(nn.Module):
    """The same on images with the channels last: (B, H, W, d) -> (B, H, W, d), or with a third axis of time.

    Frequencies that the grid does not have (beyond half its points) have no coefficient and are left out.
    """

    frames: nn.Parameter | None

    def __init__(self, width: int, modes: tuple[int, ...]) -> None:
        super().__init__()
        self.rows, self.columns, *third = (axis_weight(width, kept) for kept in modes)
        self.register_parameter("frames", third[0] if third else None)

    def forward(self, h: Tensor) -> Tensor:
        values = h.to(torch.promote_types(h.dtype, torch.float32))  # no half-precision transform exists
        filtered = filter_along(values, 1, self.rows) + filter_along(values, 2, self.columns)
        if self.frames is not None:
            filtered = filtered + filter_along(values, 3, self.frames)
        return filtered.to(h.dtype)


def axis_weight(width: int, modes: int) -> nn.Parameter:
    """One d x d complex matrix per frequency (m, d, d, 2), Xavier-normal with m frequencies as its field."""
    return nn.Parameter(torch.randn(modes, width, width, 2) * (2 * width * modes) ** -0.5)


def filter_along(values: Tensor, axis: int, weight: Tensor) -> Tensor:
    """Filter (B, ..., d) along one of the axes between with one matrix per frequency."""
    moved = values.movedim(axis, -2)
    return filter_axis(moved.flatten(1, -3), weight).unflatten(1, moved.shape[1:-2]).movedim(-2, axis)


def filter_axis(values: Tensor, weight: Tensor) -> Tensor:
    """Filter (B, ., n, d) along its third axis with one matrix per frequency."""
    coefficients = torch.fft.rfft(values, dim=2, norm="ortho")[:, :, : len(weight)]
    matrices = torch.view_as_complex(weight[: coefficients.shape[2]].to(values.dtype).contiguous())
    mixed = torch.einsum("bakc,kco->bako", coefficients, matrices)
    return torch.fft.irfft(mixed, n=values.shape[2], dim=2, norm="ortho")
