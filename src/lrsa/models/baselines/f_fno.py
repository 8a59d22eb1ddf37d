"""Factorised Fourier Neural Operator: the official one, and the widely run one without feed-forward."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.parametrizations import weight_norm as normalise_weight

from lrsa.context import Context, Needs
from lrsa.models.attention import FFN
from lrsa.models.baselines.fno import GridLift, crop_grid, index_grid, pad_grid
from lrsa.models.baselines.projection import GridProjection, grid_needs
from lrsa.models.mixers.factorised_fourier import FactorisedConvolution
from lrsa.models.mixers.fourier import full_axes, full_grid
from lrsa.models.operator import check_points

LATENT = (96, 96)
"""The grid that any points are projected to."""
PRESETS: dict[str, dict[str, object]] = {
    "navier-stokes": {
        "coord_dim": 2,
        "in_features": 10,
        "out_features": 1,
        "share_weights": True,
        "index_grid_input": False,
        "padding": 0,
    },
    "airfoil": {"coord_dim": 2, "in_features": 0, "out_features": 1, "modes": (32, 16)},
    "pipe": {"coord_dim": 2, "in_features": 0, "out_features": 1},
    "plasticity": {
        "coord_dim": 3,
        "in_features": 1,
        "out_features": 4,
        "modes": (32, 12),
        "index_grid_input": False,
        "time_axis": True,
    },
    "darcy": {"coord_dim": 2, "in_features": 1, "out_features": 1},
    "elasticity": {"coord_dim": 2, "in_features": 0, "out_features": 1, "latent_grid": LATENT, "padding": 0},
}
"""Elasticity as in the Neural-Solver-Library, by a projection to a grid. The coordinates of Plasticity, time
among them, are those of the index grid that was published. Darcy is nowhere published: the defaults."""
LINEAR_PRESETS: dict[str, dict[str, object]] = {
    "navier-stokes": {"coord_dim": 2, "in_features": 10, "out_features": 1, "width": 20},
    "plasticity": {"coord_dim": 2, "in_features": 1, "out_features": 4, "time": True},
    "airfoil": {"coord_dim": 2, "in_features": 0, "out_features": 1, "width": 32},
    "pipe": {"coord_dim": 2, "in_features": 0, "out_features": 1},
    "darcy": {"coord_dim": 2, "in_features": 1, "out_features": 1, "reference": 8},
}
HEAD_HIDDEN = 128


class FFNO(nn.Module):
    """y = W₂ ReLU(W₁ S(h)), h' = h + y with S the factorised spectral convolution; at last u = W₄ W₃ y.

    A. Tran et al., Factorized Fourier Neural Operators, 2023; reference alasdairtran/fourierflow,
    modules/factorized_fno (mesh_2d: airfoil and pipe; mesh_3d: plasticity; grid_2d: Navier-Stokes). All
    linear layers are weight-normalised. The head reads the last layer's branch, not the residual sum, and has
    no activation. Two-axis grids, with time as a third axis where it is one, or any points of two coordinates
    by a projection to a latent grid.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Layers.
        modes: Frequencies kept along the first and the second axis.
        factor: Hidden width of the feed-forward, in units of the width.
        share_weights: One spectral convolution for all layers.
        index_grid_input: Append the position on the unit index grid to the input.
        padding: Zeros appended to each axis after the lift (0 for periodic domains).
        weight_norm: Normalise the rows of every linear layer.
        layer_norm: End every feed-forward with a LayerNorm.
        latent_grid: Points per axis of a latent grid for data that has none; none: the grid of the data.
        time_axis: Predict all frames of a case at once, with time as the third axis of the grid.
        time_modes: Frequencies kept along that axis.
    """

    needs = Needs(grid=True)

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 64,
        depth: int = 24,
        modes: tuple[int, int] = (16, 16),
        factor: int = 4,
        share_weights: bool = False,
        index_grid_input: bool = True,
        padding: int = 8,
        weight_norm: bool = True,
        layer_norm: bool = False,
        latent_grid: tuple[int, int] | None = None,
        time_axis: bool = False,
        time_modes: int = 8,
    ) -> None:
        super().__init__()
        self.needs = grid_needs(latent_grid, time_axis)
        self.axes = 3 if time_axis else 2
        index_grid_input = index_grid_input and latent_grid is None
        self.coord_dim, self.in_features = coord_dim, in_features
        self.index_grid_input, self.padding = index_grid_input, padding

        def linear(inputs: int, outputs: int) -> nn.Module:
            layer = nn.Linear(inputs, outputs)
            return normalise_weight(layer) if weight_norm else layer

        def feed_forward() -> nn.Sequential:
            norm = nn.LayerNorm(width) if layer_norm else nn.Identity()
            return nn.Sequential(
                linear(width, factor * width), nn.ReLU(), linear(factor * width, width), norm
            )

        self.lift = linear(coord_dim + in_features + self.axes * index_grid_input, width)
        kept = (*modes, time_modes) if time_axis else modes
        self.spectral = nn.ModuleList(
            FactorisedConvolution(width, kept) for _ in range(1 if share_weights else depth)
        )
        self.feed_forward = nn.ModuleList(feed_forward() for _ in range(depth))
        self.head = nn.Sequential(linear(width, HEAD_HIDDEN), linear(HEAD_HIDDEN, out_features))
        self.projection = GridProjection(coord_dim, width, latent_grid, modes) if latent_grid else None

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o), N the points of the grid unless it is latent."""
        context = context or Context()
        check_points(x, f, self.coord_dim, self.in_features)
        inputs = [x] if f is None else [x, f]
        if self.projection is not None:
            h = self.projection.to_grid(self.lift(torch.cat(inputs, dim=-1)), x, context)
            return self.head(self.projection.to_points(self._trunk(h), x))
        grid = full_axes(context, "F-FNO", x.shape[1], self.axes)
        if self.index_grid_input:
            inputs.append(index_grid(grid).to(x).expand(x.shape[0], -1, -1))
        return self.head(self._trunk(self.lift(torch.cat(inputs, dim=-1)).unflatten(1, grid)).flatten(1, -2))

    def _trunk(self, h: Tensor) -> Tensor:
        """(B, H, W, d), or of three axes -> the branch of the last layer, of the same shape."""
        grid = h.shape[1:-1]
        h = pad(h, [0, 0, *(0, self.padding) * len(grid)])
        branch = h
        for k, feed_forward in enumerate(self.feed_forward):
            branch = feed_forward(self.spectral[k % len(self.spectral)](h))
            h = h + branch
        return crop_grid(branch, grid)


class FFNOLinear(nn.Module):
    """h' = h + S(h) with S the factorised spectral convolution: no feed-forward, a linear trunk.

    The F-FNO that most tables report; reference thuml/Neural-Solver-Library, models/F_FNO.py, with the lift,
    padding and head of its FNO. Two-axis grids.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Layers.
        modes: Frequencies kept along the first and the second axis.
        reference: Points per axis of a reference grid whose distances replace the coordinates; 0 keeps them.
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 8,
        modes: tuple[int, int] = (12, 12),
        reference: int = 0,
        time: bool = False,
    ) -> None:
        super().__init__()
        self.needs = Needs(grid=True, time=time)
        self.lift = GridLift(coord_dim, in_features, width, reference, time)
        self.spectral = nn.ModuleList(FactorisedConvolution(width, modes) for _ in range(depth))
        self.head = FFN(width, width, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o), N the points of the grid."""
        context = context or Context()
        grid = full_grid(context, "F-FNO", x.shape[1])
        h = pad_grid(self.lift(x, f, context).unflatten(1, grid))  # (B, H, W, d)
        for spectral in self.spectral:
            h = h + spectral(h)
        return self.head(h[:, : grid[0], : grid[1]].flatten(1, 2))
