"""Fourier Neural Operator with four spectral layers, as the Neural-Solver-Library runs it."""

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, pad

from lrsa.context import Context, Needs
from lrsa.models.attention import FFN
from lrsa.models.encoding import TimeEncoding
from lrsa.models.mixers.fourier import SpectralConvolution, full_grid
from lrsa.models.operator import check_points

PRESETS: dict[str, dict[str, object]] = {
    "navier-stokes": {"coord_dim": 2, "in_features": 10, "out_features": 1, "width": 64},
    "darcy": {"coord_dim": 2, "in_features": 1, "out_features": 1, "width": 128, "reference": 8},
}
PAD = 16
"""Grids are filled up to a multiple of this."""


class FNO(nn.Module):
    """h' = GELU(F⁻¹(W_k · (F h)_k) + W h), without GELU in the last layer.

    Z. Li et al., Fourier Neural Operator for Parametric Partial Differential Equations, 2021; reference
    thuml/Neural-Solver-Library, models/FNO.py: lift Linear-GELU-Linear of [x, f], zeros at the end of
    each axis up to a multiple of 16, head Linear-GELU-Linear. Two-axis grids.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Spectral layers.
        modes: Frequencies kept on each side of zero, per axis.
        reference: Points per axis of a reference grid whose distances replace the coordinates; 0 keeps them.
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 64,
        depth: int = 4,
        modes: int = 12,
        reference: int = 0,
        time: bool = False,
    ) -> None:
        super().__init__()
        self.needs = Needs(grid=True, time=time)
        self.lift = GridLift(coord_dim, in_features, width, reference, time)
        self.spectral = nn.ModuleList(SpectralConvolution(width, modes) for _ in range(depth))
        self.skip = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = FFN(width, width, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o), N the points of the grid."""
        context = context or Context()
        grid = full_grid(context, "FNO", x.shape[1])
        h = pad_grid(self.lift(x, f, context).unflatten(1, grid))  # (B, H, W, d)
        for spectral, skip in zip(self.spectral[:-1], self.skip[:-1], strict=True):
            h = gelu(spectral(h) + skip(h))
        h = self.spectral[-1](h) + self.skip[-1](h)
        return self.head(h[:, : grid[0], : grid[1]].flatten(1, 2))


class GridLift(nn.Module):
    """Linear-GELU-Linear of [position, f], plus the time: the lift of all models of that library."""

    def __init__(self, coord_dim: int, in_features: int, width: int, reference: int, time: bool) -> None:
        super().__init__()
        self.coord_dim, self.in_features, self.reference = coord_dim, in_features, reference
        self.ffn = FFN((reference**2 or coord_dim) + in_features, 2 * width, width)
        self.time = TimeEncoding(width) if time else None

    def forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, p), (B, N, c) -> (B, N, d)."""
        check_points(x, f, self.coord_dim, self.in_features)
        if self.reference:
            grid = full_grid(context, "the distance to reference points", x.shape[1])
            x = reference_distances(grid, self.reference).to(x).expand(x.shape[0], -1, -1)
        h = self.ffn(x if f is None else torch.cat([x, f], dim=-1))
        return h if self.time is None else h + self.time(context.need("time", "the time encoding"))


def reference_distances(grid: tuple[int, int], reference: int) -> Tensor:
    """(H W, r²) distances of the points of the unit index grid to those of an r x r grid."""
    anchors = index_grid((reference, reference))
    return torch.cdist(index_grid(grid), anchors, compute_mode="donot_use_mm_for_euclid_dist")


def index_grid(grid: tuple[int, ...]) -> Tensor:
    """(H W, 2) the index grid on the unit square, in fp64; of three axes on the unit cube."""
    axes = [torch.linspace(0, 1, n, dtype=torch.float64) for n in grid]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


def pad_grid(h: Tensor) -> Tensor:
    """(B, H, W, d), or of three axes, with zeros at the end of each axis up to a multiple of 16."""
    missing = [end for size in reversed(h.shape[1:-1]) for end in (0, -size % PAD)]
    return pad(h, [0, 0, *missing])


def crop_grid(h: Tensor, grid: tuple[int, ...], first: int = 1) -> Tensor:
    """(B, H', W', d) without what was appended to the axes of the grid, of which this is the first."""
    return h[(*[slice(None)] * first, *(slice(size) for size in grid))]
