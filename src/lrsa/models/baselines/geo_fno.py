"""Geo-FNO: a Fourier neural operator behind a learned deformation of the points (Li et al. 2023)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines.graph import CHUNK, over_chunks, point_features
from lrsa.models.hidden import Declared, whole

Version = Literal["v1", "v2"]


class GeoFNO(nn.Module):
    """Points to a latent grid, three Fourier layers there, and back to the points.

    ξ = x + x · MLP(NeRF(x, angle, radius), code)                          the deformation
    ĥ_k = Σ_n w_n h_n exp(-2πi k·ξ_n),  g = GELU(F⁻¹(W_k ĥ_k) + b(grid))   points to grid
    g = GELU(F⁻¹(W_k (F g)_k) + W g + b(grid))                             three times
    h_n = Re Σ_k W_k (F g)_k exp(2πi k·ξ_n) + b(x_n)                       grid to points, then an MLP

    The sums over points take masks and quadrature weights (w = 1 without). Li, Huang, Liu, Anandkumar, JMLR
    2023; parity with both elasticity scripts of github.com/neuraloperator/Geo-FNO. In three dimensions the
    angle is the one about the third axis.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels of the Fourier layers.
        modes: Frequencies kept on each side of zero, for every coordinate.
        grid: Points of the latent grid, for every coordinate.
        box: Interval that the coordinates fill; it is mapped to the unit interval, the period of the modes.
        deformation_width: Channels of the deformation network, a multiple of 4.
        code_dim: Numbers of the shape code of a case, read from its globals; 0 for none.
        version: Deformation network and Hermitian completion of the elder script (v1) or the newer one (v2).
    """

    needs = Needs(coordinates="box")
    """The normalisation that fills the period."""
    matrices: ClassVar[Declared] = {"skips.*.weight": whole}

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 32,
        modes: tuple[int, ...] = (12, 12),
        grid: tuple[int, ...] = (40, 40),
        box: tuple[float, float] = (-1.0, 1.0),
        deformation_width: int = 32,
        code_dim: int = 0,
        version: Version = "v2",
    ) -> None:
        super().__init__()
        _check(coord_dim, modes, grid, deformation_width)
        if version not in VERSIONS or not box[0] < box[1]:
            raise LrsaError(f'no version "{version}" or no box {box}: v1 or v2, a lower and an upper end')
        self.coord_dim, self.in_features, self.box, self.code_dim = coord_dim, in_features, box, code_dim
        self.needs |= Needs(globals=code_dim > 0)
        self.fourier = Fourier(modes, grid, exact=VERSIONS[version].exact)
        self.deformation = Deformation(coord_dim, deformation_width, code_dim, VERSIONS[version])
        shape = (width, width, *(2 * m for m in modes[:-1]), modes[-1], 2)
        # Complex weights, real and imaginary part last. Along all axes but the last: 0 .. m-1, -m .. -1.
        self.spectral = nn.ParameterList(torch.rand(shape) / width**2 for _ in range(5))
        self.lift = nn.Linear(coord_dim + in_features, width)
        self.skips = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(3))
        self.grid_bias = nn.ModuleList(nn.Conv1d(coord_dim, width, 1) for _ in range(4))
        self.point_bias = nn.Linear(coord_dim, width)
        self.project = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, out_features))

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        with torch.autocast(x.device.type, enabled=False):  # Fourier phases do not survive half precision
            return self._forward(x, f, (context or Context()).normalised())

    def _forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        low, high = self.box
        x = (x - low) / (high - low)
        h = self.lift(point_features(x, f, self.coord_dim, self.in_features))
        measure = context.measure()
        h = h if measure is None else h * measure[..., None].to(h.dtype)
        xi = self.deformation(x, self._code(context, x.shape[0]))
        place = self.fourier.grid_points().to(x)[None]  # (1, p, S)
        g = self.fourier.to_grid(self._mix(0, self.fourier.of_points(h, xi)))  # (B, w, S)
        g = gelu(g + self.grid_bias[0](place))
        for i in range(3):
            spectral = self.fourier.to_grid(self._mix(i + 1, self.fourier.of_grid(g)))
            g = gelu(spectral + self.skips[i](g) + self.grid_bias[i + 1](place))
        h = self.fourier.at_points(self._mix(4, self.fourier.of_grid(g)), xi)
        return self.project(h + self.point_bias(x))

    def _mix(self, layer: int, coefficients: Tensor) -> Tensor:
        """W_k ĥ_k: (B, w, K) -> (B, w, K), complex."""
        weight = torch.view_as_complex(self.spectral[layer]).flatten(2)
        return torch.einsum("bik,iok->bok", coefficients, weight)

    def _code(self, context: Context, batch: int) -> Tensor | None:
        if not self.code_dim:
            return None
        code: Tensor = context.need("globals", "the shape code of Geo-FNO")
        if code.shape != (batch, self.code_dim):
            raise LrsaError(f"Geo-FNO takes a shape code of {self.code_dim} numbers, not {code.shape[-1]}")
        return code


@dataclass(frozen=True)
class _Variant:
    centre: float
    hidden: int
    activation: Callable[[Tensor], Tensor]
    exact: bool
    """Whether the negative frequencies of the last layer are the true Hermitian partners."""


VERSIONS: dict[Version, _Variant] = {
    "v1": _Variant(0.0001, 3, torch.tanh, exact=False),
    "v2": _Variant(0.5, 2, gelu, exact=True),
}


class Deformation(nn.Module):
    """ξ = x + x · MLP([code, a, sin(2^k π a), cos(2^k π a)]), with a = (x, angle, radius) about a centre."""

    def __init__(self, coord_dim: int, width: int, code_dim: int, variant: _Variant) -> None:
        super().__init__()
        features, hidden = coord_dim + 2, 4 * width
        self.width, self.variant = width, variant
        known = width + 2 * features * (width // 4)
        self.features = nn.Linear(features, width)
        self.code = nn.Linear(code_dim, width) if code_dim else None
        self.no_code = None if code_dim else nn.Linear(known, hidden)
        first = width + known if code_dim else hidden
        self.layers = nn.ModuleList(nn.Linear(hidden if k else first, hidden) for k in range(variant.hidden))
        self.last = nn.Linear(hidden, coord_dim)

    def forward(self, x: Tensor, code: Tensor | None) -> Tensor:
        """x (B, N, p), code (B, g) or None -> (B, N, p)."""
        away = x - self.variant.centre
        angle = torch.atan2(away[..., 1], away[..., 0])
        a = torch.cat([x, angle[..., None], away.norm(dim=-1, keepdim=True)], dim=-1)
        frequency = math.pi * 2.0 ** torch.arange(self.width // 4, device=x.device, dtype=x.dtype)
        waves = (a[..., None] * frequency).flatten(2)
        h = torch.cat([self.features(a), waves.sin(), waves.cos()], dim=-1)
        if self.no_code is not None:
            h = self.no_code(h)
        if self.code is not None and code is not None:
            h = torch.cat([self.code(code)[:, None].expand(-1, x.shape[1], -1), h], dim=-1)
        for layer in self.layers:
            h = self.variant.activation(layer(h))
        return x + x * self.last(h)


class Fourier:
    """Low Fourier coefficients (B, w, K) of functions on points, or on the latent grid, and back."""

    def __init__(self, modes: tuple[int, ...], grid: tuple[int, ...], exact: bool) -> None:
        self.grid, self.exact = grid, exact
        self.half = (*grid[:-1], grid[-1] // 2 + 1)
        both = [[*range(m), *range(-m, 0)] for m in modes[:-1]]
        self.shape = (*(2 * m for m in modes[:-1]), modes[-1])
        self.waves = torch.cartesian_prod(*_axes([*both, list(range(modes[-1]))])).view(-1, len(grid))
        symmetric = [*range(modes[-1]), *range(1 - modes[-1], 0)]
        self.all_waves = torch.cartesian_prod(*_axes([*both, symmetric])).view(-1, len(grid))
        strides = torch.tensor([math.prod(self.half[a + 1 :]) for a in range(len(grid))])
        self.place = (self.waves.long() % torch.tensor(grid) * strides).sum(1)

    def of_points(self, h: Tensor, xi: Tensor) -> Tensor:
        """Σ_n h_n exp(-2πi k·ξ_n): h (B, N, w), ξ (B, N, p) -> (B, w, K)."""

        def part(rows: slice) -> Tensor:
            phase = self._phase(xi[:, rows], self.waves)
            values = h[:, rows].transpose(1, 2)
            return torch.complex(values @ phase.cos(), -values @ phase.sin())

        parts = over_chunks(part, h.shape[1], self._chunk(h.shape[0], self.waves))
        return torch.stack(parts).sum(0)

    def at_points(self, coefficients: Tensor, xi: Tensor) -> Tensor:
        """Re Σ_k c_k exp(2πi k·ξ_n) over all frequencies: (B, w, K), (B, N, p) -> (B, N, w)."""
        c = coefficients.unflatten(2, self.shape)
        axes = tuple(range(2, c.ndim - 1))
        negative = c[..., 1:].flip(*axes, -1).conj()
        if self.exact and axes:
            negative = negative.roll((1,) * len(axes), axes)
        c = torch.cat([c, negative], dim=-1).flatten(2).transpose(1, 2)  # (B, K', w)

        def part(rows: slice) -> Tensor:
            phase = self._phase(xi[:, rows], self.all_waves)
            return phase.cos() @ c.real - phase.sin() @ c.imag

        return torch.cat(over_chunks(part, xi.shape[1], self._chunk(xi.shape[0], self.all_waves)), dim=1)

    def of_grid(self, g: Tensor) -> Tensor:
        """(B, w, S) -> (B, w, K)."""
        spectrum = torch.fft.rfftn(g.unflatten(2, self.grid), dim=tuple(range(2, 2 + len(self.grid))))
        return spectrum.flatten(2).index_select(2, self.place.to(g.device))

    def to_grid(self, coefficients: Tensor) -> Tensor:
        """(B, w, K) -> (B, w, S)."""
        spectrum = coefficients.new_zeros(*coefficients.shape[:2], math.prod(self.half))
        spectrum = spectrum.index_copy(2, self.place.to(coefficients.device), coefficients)
        axes = tuple(range(2, 2 + len(self.grid)))
        return torch.fft.irfftn(spectrum.unflatten(2, self.half), s=self.grid, dim=axes).flatten(2)

    def grid_points(self) -> Tensor:
        """(p, S) in the unit box."""
        axes = [torch.linspace(0, 1, n, dtype=torch.float64) for n in self.grid]
        return torch.stack(torch.meshgrid(*axes, indexing="ij")).flatten(1)

    def _phase(self, xi: Tensor, waves: Tensor) -> Tensor:
        return 2 * math.pi * (xi @ waves.to(xi).T)  # (B, n, K)

    def _chunk(self, batch: int, waves: Tensor) -> int:
        return max(1, CHUNK // (batch * len(waves)))


def _axes(frequencies: list[list[int]]) -> list[Tensor]:
    return [torch.tensor(values, dtype=torch.float64) for values in frequencies]


def _check(coord_dim: int, modes: tuple[int, ...], grid: tuple[int, ...], deformation_width: int) -> None:
    if coord_dim < 2 or len(modes) != coord_dim or len(grid) != coord_dim:
        raise LrsaError(
            f"Geo-FNO on {coord_dim} coordinates needs modes and grid for each, two at least,"
            f" not {modes} and {grid}. For example modes=(6, 6, 6), grid=(16, 16, 16) in space"
        )
    if any(m < 1 or 2 * m > n for m, n in zip(modes, grid, strict=True)):
        raise LrsaError(
            f"a grid of {grid} has no {modes} modes on each side. Take one or more, and two points for each"
        )
    if deformation_width % 4:
        raise LrsaError(f"deformation_width {deformation_width} is not a multiple of 4")


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": {"coord_dim": 2, "in_features": 0, "out_features": 1},
    "shapenet-car": {
        "coord_dim": 3,
        "in_features": 4,
        "out_features": 4,
        "modes": (8, 8, 8),
        "grid": (24, 24, 24),
    },
    "airfrans": {"coord_dim": 2, "in_features": 5, "out_features": 4},
}
"""The newer elasticity script, without the 42 boundary radii as a shape code (code_dim=42 takes them); the
industrial cases are nowhere published: in space fewer modes per axis, else the same."""
