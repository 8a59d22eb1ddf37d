"""A block of an operator: a global mixing layer and a point FFN (paper, section 3.1)."""

import math
from collections.abc import Callable
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN
from lrsa.models.mixers.fourier import SpectralFilter
from lrsa.models.template import GlobalMix, LowRankMix, Partial

Local = Literal["pointwise", "depthwise", "conv"]
"""The point FFN: the paper's, or with a 3 x 3 convolution in front of it (structured grids only)."""


class Block(nn.Module):
    """g = h + GlobalMix(Norm(h), x),  h' = g + FFN(Norm(g)), Eq. (backbone-globalmix)."""

    def __init__(
        self, width: int, mix: GlobalMix, ffn: nn.Module, norm: Callable[[int], nn.Module] = nn.LayerNorm
    ) -> None:
        super().__init__()
        self.norm_mix, self.mix = norm(width), mix
        self.norm_ffn, self.ffn = norm(width), ffn

    @property
    def needs(self) -> Needs:
        return self.mix.needs | Needs(grid=isinstance(self.ffn, LocalFFN))

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d)."""
        return self.join(h, self.mix(self.norm_mix(h), x, context), context)

    def latents(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """G Vᵀ: the processed latents (B, M, d) of all points."""
        return self.low_rank.process(self.low_rank.compress(self.norm_mix(h), x, context))

    def partial(self, h: Tensor, x: Tensor, context: Context) -> Partial:
        """Vᵀ over some of the points."""
        return self.low_rank.partial(self.norm_mix(h), x, context)

    def update(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """U and the FFN: the block at these points, given its latents."""
        return self.join(h, self.low_rank.reconstruct(self.norm_mix(h), x, context, latents), context)

    def join(self, h: Tensor, mixed: Tensor, context: Context) -> Tensor:
        """h and what the mixing layer says of it -> h', each point by itself."""
        g = h + mixed
        normed = self.norm_ffn(g)
        return g + (self.ffn(normed, context) if isinstance(self.ffn, LocalFFN) else self.ffn(normed))

    @property
    def low_rank(self) -> LowRankMix[Partial]:
        assert isinstance(self.mix, LowRankMix)
        return self.mix


def point_ffn(width: int, hidden: int, local: Local, periodic: bool = False) -> nn.Module:
    """The point FFN of a block."""
    if local not in get_args(Local):
        raise LrsaError(f'no point FFN "{local}". There are: {", ".join(get_args(Local))}')
    if local == "pointwise":
        return FFN(width, hidden)
    return LocalFFN(width, hidden, dense=local == "conv", periodic=periodic)


class GridFilter(nn.Conv2d):
    """3x3 convolution of images with the channels last, (B, H, W, d) -> (B, H, W, d).

    Args:
        width: Channels d.
        dense: Mix channels (default: depthwise).
        periodic: Beyond the edge of the grid lies its other side (default: zeros).
    """

    def __init__(self, width: int, dense: bool, periodic: bool) -> None:
        super().__init__(width, width, 3, padding=1, groups=1 if dense else width)
        self.periodic = periodic

    def forward(self, input: Tensor, reach: tuple[int, int] = (1, 1)) -> Tensor:
        """`reach`: how many points away the neighbours are that it takes, along each axis."""
        image, padding = input, reach
        if self.periodic:  # padding of torch's own would leave the channels first in memory, which is slow
            padding = (0, 0)
            for axis, far in ((1, reach[0]), (2, reach[1])):
                first, last = image.narrow(axis, 0, far), image.narrow(axis, image.shape[axis] - far, far)
                image = torch.cat([last, image, first], dim=axis)
        image = image.permute(0, 3, 1, 2)
        found = conv2d(image, self.weight, self.bias, 1, padding, dilation=reach, groups=self.groups)
        return found.permute(0, 2, 3, 1)


class DilatedFilter(nn.Module):
    """Filters of several reaches, each of its share of the channels: (B, H, W, d) -> (B, H, W, d).

    Args:
        width: Channels d.
        count: How many reaches, from next to each other to a quarter of the axis by one factor.
        periodic: Beyond the edge of the grid lies its other side (default: zeros).
    """

    def __init__(self, width: int, count: int, periodic: bool) -> None:
        super().__init__()
        shares = torch.arange(width).tensor_split(count)
        self.filters = nn.ModuleList(GridFilter(len(share), False, periodic) for share in shares)

    def forward(self, image: Tensor) -> Tensor:
        rows, columns = (reaches(points, len(self.filters)) for points in image.shape[1:3])
        shares = image.tensor_split(len(self.filters), dim=-1)
        each = zip(self.filters, shares, zip(rows, columns, strict=True), strict=True)
        return torch.cat([one(share, reach) for one, share, reach in each], dim=-1)


def reaches(points: int, count: int) -> list[int]:
    """(n / 4)^(k / (count - 1)) for k = 0, 1, ...: 1, 2, 4 and 8 of an axis of n = 32 points."""
    return [max(1, round((points / 4) ** (k / (count - 1)))) for k in range(count)]


class LocalFFN(nn.Module):
    """3x3 convolution on the index grid, LayerNorm, then the FFN.

    Args:
        width: Channels d.
        hidden: Hidden width of the FFN.
        dense: Mix channels in the convolution (default: depthwise).
        periodic: Beyond the edge of the grid lies its other side (default: zeros).
    """

    instead: ClassVar[str] = "Train with local=pointwise"
    """What to do where there is no such grid."""

    def __init__(self, width: int, hidden: int, dense: bool = False, periodic: bool = False) -> None:
        super().__init__()
        self.conv: nn.Module = GridFilter(width, dense, periodic)
        self.norm = nn.LayerNorm(width)
        self.ffn = FFN(width, hidden)

    def forward(self, h: Tensor, context: Context) -> Tensor:
        """(B, N, d) -> (B, N, d), N the points of a grid of two axes."""
        grid = context.need("grid", "a local FFN")
        if context.mask is not None or len(grid) != 2 or math.prod(grid) != h.shape[1]:
            raise LrsaError(f"a local FFN takes a full grid of two axes, not {grid}. {self.instead}")
        return self.ffn(self.norm(self.filtered(h.unflatten(1, grid)).flatten(1, 2)))

    def filtered(self, image: Tensor) -> Tensor:
        """(B, H, W, d) -> (B, H, W, d), each point from its neighbours."""
        return self.conv(image)


class DilatedFFN(LocalFFN):
    """The same with depthwise filters of several reaches.

    Args:
        width: Channels d.
        hidden: Hidden width of the FFN.
        count: How many reaches, each for its share of the channels.
        periodic: Beyond the edge of the grid lies its other side (default: zeros).
    """

    instead: ClassVar[str] = "Train lrsa with local=pointwise"

    def __init__(self, width: int, hidden: int, count: int, periodic: bool = False) -> None:
        super().__init__(width, hidden)
        self.conv = DilatedFilter(width, count, periodic)


class FourierFFN(LocalFFN):
    """The same with a filter as large as the grid beside the 3x3 one: w_k · (F h)_k, channel by channel.

    Args:
        width: Channels d.
        hidden: Hidden width of the FFN.
        modes: Frequencies kept on each side of zero, per axis.
        periodic: Beyond the edge of the grid lies its other side (default: zeros), for the 3x3 filter.
    """

    instead: ClassVar[str] = DilatedFFN.instead

    def __init__(self, width: int, hidden: int, modes: int, periodic: bool = False) -> None:
        super().__init__(width, hidden, periodic=periodic)
        self.far = SpectralFilter(width, modes)

    def filtered(self, image: Tensor) -> Tensor:
        return super().filtered(image) + self.far(image)
