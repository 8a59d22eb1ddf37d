"""Latent Spectral Models: a U-Net whose every scale passes a neural spectral block."""

import math
from itertools import chain
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, max_pool2d, max_pool3d, scaled_dot_product_attention

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN, head_width, join_heads, split_heads
from lrsa.models.baselines.fno import GridLift, crop_grid, pad_grid
from lrsa.models.baselines.projection import GridProjection, grid_needs
from lrsa.models.hidden import Declared
from lrsa.models.mixers.fourier import full_axes

Norm = Literal["batch", "instance"]
"""The normalisation inside the convolutions."""

PRESETS: dict[str, dict[str, object]] = {
    "navier-stokes": {
        "coord_dim": 2,
        "in_features": 10,
        "out_features": 1,
        "width": 64,
        "norm": "instance",
    },
    "plasticity": {"coord_dim": 3, "in_features": 1, "out_features": 4, "width": 32, "time_axis": True},
    "airfoil": {"coord_dim": 2, "in_features": 0, "out_features": 1, "width": 32},
    "pipe": {"coord_dim": 2, "in_features": 0, "out_features": 1, "width": 32},
    "darcy": {"coord_dim": 2, "in_features": 1, "out_features": 1, "width": 64},
    "elasticity": {
        "coord_dim": 2,
        "in_features": 0,
        "out_features": 1,
        "width": 32,
        "latent_grid": (96, 96),
    },
}
SCALES = (1, 2, 4, 8, 8)
"""Channels of the five scales, in units of the width."""
MODES = (12, 12)
"""Frequencies of the projection to a latent grid."""
PATCHES = 16
"""Patches per axis at the finest scale: the coarsest, 16 times smaller, is one patch."""


class LSM(nn.Module):
    """Each scale: tokens read a patch, z' = z + Σ_m a_m sin(πmz/K) + b_m cos(πmz/K), points read the tokens.

    H. Wu et al., Solving High-Dimensional PDEs with Latent Spectral Models, 2023; reference
    thuml/Neural-Solver-Library, models/LSM.py, two-axis grids: the lift and padding of its FNO, a U-Net of
    five scales with max-pooling and bilinear up-sampling, head Linear-GELU-Linear. With time as a third axis
    the U-Net is that of thuml/Latent-Spectral-Models, models/LSM_3D.py. Any points of two coordinates by a
    projection to a latent grid.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of the finest scale; the coarsest has 8 d.
        heads: Attention heads of the spectral blocks.
        tokens: Latent tokens per patch and head.
        bases: Sines, and as many cosines, of the token transition.
        norm: Normalisation inside the convolutions: batch, or instance (the reference's for sets in time).
        reference: Points per axis of a reference grid whose distances replace the coordinates; 0 keeps them.
        time: Condition on the time of the sample.
        latent_grid: Points per axis of a latent grid for data that has none; none: the grid of the data.
        time_axis: Predict all frames of a case at once, with time as the third axis of the grid.
    """

    matrices: ClassVar[Declared] = {"*": None}  # by AdamW: see results/optimiser-weights.md

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 64,
        heads: int = 8,
        tokens: int = 4,
        bases: int = 12,
        norm: Norm = "batch",
        reference: int = 0,
        time: bool = False,
        latent_grid: tuple[int, int] | None = None,
        time_axis: bool = False,
    ) -> None:
        super().__init__()
        self.needs = grid_needs(latent_grid, time_axis, time)
        self.norm, self.axes = norm, 3 if time_axis else 2
        channels = [width * scale for scale in SCALES]
        self.lift = GridLift(coord_dim, in_features, width, reference, time)
        self.down = nn.ModuleList(
            double_conv(fine, coarse, coarse, norm, self.axes)
            for fine, coarse in zip([width, *channels], channels, strict=False)
        )
        self.process = nn.ModuleList(SpectralBlock(c, heads, tokens, bases) for c in channels)
        # From the coarsest up: a skip and the scale below it come in, the channels of the next skip go out.
        skips = channels[:-1][::-1]
        self.up = nn.ModuleList(
            double_conv(2 * skip, skip, out, norm, self.axes)
            for skip, out in zip(skips, [*skips[1:], width], strict=True)
        )
        self.out = (nn.Conv3d if time_axis else nn.Conv2d)(width, width, 1)
        self.head = FFN(width, 2 * width, out_features)
        self.projection = GridProjection(coord_dim, width, latent_grid, MODES) if latent_grid else None

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o), N the points of the grid unless it is latent."""
        context = context or Context()
        if self.projection is not None:
            g = self._unet(self.projection.to_grid(self.lift(x, f, context), x, context))
            return self.head(self.projection.to_points(g.permute(0, 2, 3, 1), x))
        grid = full_axes(context, "LSM", x.shape[1], self.axes)
        g = self._unet(self.lift(x, f, context).unflatten(1, grid))
        return self.head(g.flatten(2).transpose(1, 2))

    def _unet(self, values: Tensor) -> Tensor:
        """(B, H, W, d) -> (B, d, H, W), or of three axes."""
        h = pad_grid(values).movedim(-1, 1)  # (B, d, H, W)
        patch = tuple(size // PATCHES for size in h.shape[2:])
        self._check_norm(h.shape[0] if self.norm == "batch" else 1, patch)
        halve, enlarge = (max_pool3d, "trilinear") if self.axes == 3 else (max_pool2d, "bilinear")
        scales = [self.down[0](h)]
        for conv in self.down[1:]:
            scales.append(conv(halve(scales[-1], 2)))
        scales = [process(scale, patch) for process, scale in zip(self.process, scales, strict=True)]
        h = scales.pop()
        for conv in self.up:
            coarse = interpolate(h, scale_factor=2, mode=enlarge, align_corners=True)
            h = conv(torch.cat([scales.pop(), coarse], dim=1))
        return crop_grid(self.out(h), values.shape[1:-1], first=2)

    def _check_norm(self, samples: int, coarsest: tuple[int, ...]) -> None:
        alone = samples * math.prod(coarsest) == 1
        if alone and (self.training or self.norm == "instance"):
            raise LrsaError(
                "LSM cannot normalise the one value that its coarsest scale keeps of a grid of"
                f" {' x '.join([str(PATCHES)] * self.axes)} points or fewer. Use a finer grid, or norm=batch"
                " with a larger batch"
            )


class SpectralBlock(nn.Module):
    """The neural spectral block on images of C channels, patch by patch; attention without 1/√d."""

    def __init__(self, channels: int, heads: int, tokens: int, bases: int) -> None:
        super().__init__()
        self.heads, self.bases = heads, bases
        self.latent = nn.Parameter(torch.rand(heads, tokens, head_width(channels, heads)) / channels)
        self.weights = nn.Parameter(torch.rand(channels, 2 * bases) / channels)
        self.key_value = nn.Linear(channels, 2 * channels)  # a key and a value for each channel in turn
        self.query = nn.Linear(channels, channels)

    def forward(self, h: Tensor, patch: tuple[int, ...]) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W), or of three axes."""
        batch, channels, *sizes = h.shape
        counts, axes = [size // side for size, side in zip(sizes, patch, strict=True)], len(patch)
        split = list(chain(*zip(counts, patch, strict=True)))  # which patch, and where in it
        which, where = range(2, 2 * axes + 2, 2), range(3, 2 * axes + 2, 2)
        points = h.reshape(batch, channels, *split).permute(0, *which, *where, 1)
        points = points.reshape(-1, math.prod(patch), channels)  # (P, n, C)
        points = points + self.read(points, self.transition(self.write(points)))
        points = points.view(batch, *counts, *patch, channels)
        back = chain(*zip(range(1, axes + 1), range(axes + 1, 2 * axes + 1), strict=True))
        return points.permute(0, -1, *back).reshape(h.shape)

    def write(self, points: Tensor) -> Tensor:
        """Tokens (P, h, t, C/h) that attended to the points (P, n, C) of their patch."""
        key, value = self.key_value(points).unflatten(-1, (self.heads, -1, 2)).transpose(1, 2).unbind(-1)
        latent = self.latent.expand(points.shape[0], -1, -1, -1)
        return latent + scaled_dot_product_attention(latent, key, value, scale=1.0)

    def transition(self, tokens: Tensor) -> Tensor:
        """z + Σ_m a_m sin(πmz/K) + b_m cos(πmz/K), with coefficients of its own for each channel."""
        rates = torch.arange(self.bases, dtype=tokens.dtype, device=tokens.device) * (math.pi / self.bases)
        angles = tokens[..., None] * rates
        sines, cosines = self.weights.unflatten(0, (self.heads, 1, -1)).chunk(2, dim=-1)  # (h, 1, C/h, K)
        return tokens + (sines * angles.sin() + cosines * angles.cos()).sum(-1)

    def read(self, points: Tensor, tokens: Tensor) -> Tensor:
        """(P, n, C) what the points attend to among the tokens."""
        query = split_heads(self.query(points), self.heads)
        return join_heads(scaled_dot_product_attention(query, tokens, tokens, scale=1.0))


def double_conv(inputs: int, hidden: int, outputs: int, norm: Norm, axes: int) -> nn.Sequential:
    """Twice: convolution with a kernel of 3 along every axis and no bias, normalisation, ReLU."""
    conv = nn.Conv3d if axes == 3 else nn.Conv2d
    over_batch = nn.BatchNorm3d if axes == 3 else nn.BatchNorm2d
    over_instance = nn.InstanceNorm3d if axes == 3 else nn.InstanceNorm2d
    layers: list[nn.Module] = []
    for fan_in, fan_out in ((inputs, hidden), (hidden, outputs)):
        normalise = over_batch(fan_out) if norm == "batch" else over_instance(fan_out, affine=True)
        layers += [conv(fan_in, fan_out, 3, padding=1, bias=False), normalise, nn.ReLU()]
    return nn.Sequential(*layers)
