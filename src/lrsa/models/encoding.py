"""Encodings of position and time."""

import math

import torch
from torch import Tensor, nn

from lrsa.errors import LrsaError


class PositionalEncoding(nn.Module):
    """PE(x) = [x, sin(2ᵏ π x), cos(2ᵏ π x)] for k centred on 0, per axis; Eq. (lift).

    With no frequencies it is the coordinate itself.
    """

    def __init__(self, coord_dim: int, frequencies: int = 0) -> None:
        super().__init__()
        self.features = coord_dim * (1 + 2 * frequencies)
        powers = torch.arange(frequencies, dtype=torch.get_default_dtype()) - frequencies // 2
        self.register_buffer("rates", math.pi * 2.0**powers, persistent=False)
        self.rates: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """(B, N, p) -> (B, N, p (1 + 2 frequencies))."""
        if not len(self.rates):
            return x
        angles = (x[..., None] * self.rates).flatten(-2)
        return torch.cat([x, angles.sin(), angles.cos()], dim=-1)


class TimeEncoding(nn.Module):
    """Sinusoids of the time through Linear, SiLU, Linear: one vector added to every lifted point."""

    def __init__(self, width: int) -> None:
        super().__init__()
        if width % 2:
            raise LrsaError(f"the time encoding needs an even width, not {width}")
        self.width = width
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, time: Tensor) -> Tensor:
        """(B,) -> (B, 1, d)."""
        half, dtype = self.width // 2, next(self.mlp.parameters()).dtype
        powers = torch.arange(half, dtype=torch.float64, device=time.device)
        angles = time.double()[:, None] * torch.exp(powers * (-math.log(1e4) / half))
        return self.mlp(torch.cat([angles.cos(), angles.sin()], dim=-1).to(dtype))[:, None]
