"""Points to a latent grid and back, as Geo-FNO does it: how models of a grid take any points.

The Neural-Solver-Library puts this before and behind F-FNO and LSM on Elasticity.
"""

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines.geo_fno import VERSIONS, Deformation, Fourier

DEFORMATION = 32
"""Channels of the deformation network."""


class GridProjection(nn.Module):
    """ĥ_k = Σ_n w_n h_n exp(-2πi k·ξ_n), g = F⁻¹(W_k ĥ_k) + b(grid), and back Re Σ_k W_k ĝ_k exp(2πi k·ξ_n).

    ξ is a learned deformation of the coordinates, which fill [-1, 1]. Masks and quadrature weights enter.

    Args:
        coord_dim: Coordinates p per point.
        width: Channels d.
        grid: Points of the latent grid, for every coordinate.
        modes: Frequencies kept on each side of zero, for every coordinate.
    """

    def __init__(self, coord_dim: int, width: int, grid: tuple[int, int], modes: tuple[int, int]) -> None:
        super().__init__()
        kept = tuple(min(m, n // 2) for m, n in zip(modes, grid, strict=True))
        self.grid = grid
        self.fourier = Fourier(kept, grid, exact=True)
        self.deformation = Deformation(coord_dim, DEFORMATION, 0, VERSIONS["v2"])
        shape = (width, width, 2 * kept[0], kept[1], 2)
        self.inwards, self.outwards = (nn.Parameter(torch.rand(shape) / width**2) for _ in range(2))
        self.bias = nn.Linear(coord_dim, width)

    def to_grid(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) at the points x (B, N, p) -> (B, H, W, d)."""
        with torch.autocast(x.device.type, enabled=False):  # Fourier phases do not survive half precision
            measure = context.normalised().measure()
            h = h.to(x.dtype)
            h = h if measure is None else h * measure[..., None].to(h.dtype)
            coefficients = _mix(self.fourier.of_points(h, self._places(x)), self.inwards)
            g = self.fourier.to_grid(coefficients).transpose(1, 2)  # (B, S, d)
            return (g + self.bias(self.fourier.grid_points().to(x).T)).unflatten(1, self.grid)

    def to_points(self, g: Tensor, x: Tensor) -> Tensor:
        """(B, H, W, d) -> (B, N, d) at the points x (B, N, p)."""
        with torch.autocast(x.device.type, enabled=False):
            spectrum = self.fourier.of_grid(g.to(x.dtype).flatten(1, 2).transpose(1, 2))
            return self.fourier.at_points(_mix(spectrum, self.outwards), self._places(x))

    def _places(self, x: Tensor) -> Tensor:
        return self.deformation((x + 1) / 2, None)


def grid_needs(latent_grid: tuple[int, int] | None, time_axis: bool, time: bool = False) -> Needs:
    """What a model of a grid needs: that of the data, unless it has a latent one, and time as it takes it."""
    if time_axis and (time or latent_grid):
        other = "latent_grid" if latent_grid else "time"
        raise LrsaError(f"with time_axis the time is an axis of the data's own grid: leave out {other}")
    return Needs(grid=latent_grid is None, time=time, time_axis=time_axis)


def _mix(coefficients: Tensor, weight: Tensor) -> Tensor:
    """W_k ĥ_k: (B, d, K) -> (B, d, K), complex."""
    return torch.einsum("bik,iok->bok", coefficients, torch.view_as_complex(weight).flatten(2))
