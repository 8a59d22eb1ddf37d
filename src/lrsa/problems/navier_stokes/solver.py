"""Two-dimensional incompressible flow on the unit torus, by its vorticity w:

    ∂w/∂t + u·∇w = ν Δw + f,   u = (∂ψ/∂y, -∂ψ/∂x),   -Δψ = w,   f = 0.1 (sin + cos)(2π(x + y)),

from a draw of N(0, 2τ³ (-Δ + τ²)^-2.5), τ = 7, with zero mean. Fourier pseudo-spectral with the 2/3 rule; the
viscous term exactly, by its integrating factor, the rest by the classical Runge-Kutta method of order four,
with steps as long as the fastest velocity allows. Advection in Basdevant's form, with P = uv and Q = u² - v²,

    u·∇w = (∂xx - ∂yy) P - ∂xy Q,

takes two transforms to the grid and two back. Spectra are (K + 1, n): rows 0 <= k_y <= K, columns k_x in the
order of the discrete transform, zero beyond |k_x| = K. The field is the plain sum of all ŵ_k exp(2πi k·x).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lrsa.errors import LrsaError
from lrsa.numerics.random_fields import fourier_modes
from lrsa.pointset import Names, PointSet

MODES = 85
"""Largest wavenumber along an axis of a random initial vorticity: what the 2/3 rule keeps of 256 × 256. All
are drawn at every resolution, so that every resolution solves the same case."""
COURANT = 2.5
"""Largest step times the highest frequency 2πK (|u| + |v|); the method is stable up to 2.83. With this and
the next, the error of the steps at t = 20 is 5e-5 (relative L2, 128 × 128), below that of float32."""
LONGEST = 0.05
"""Longest step, for the slow flow of the beginning."""


@dataclass(frozen=True)
class NavierStokes:
    """The benchmark: the vorticity at the times 1, 2, ..., of which the first ten frames are the input."""

    resolution: int = 256
    """Grid points along each axis of the grid that is solved on."""
    stride: int = 4
    """Every stride-th point along each axis is kept: 64 × 64 of 256 × 256."""
    frames: int = 20
    """Recorded frames, one unit of time apart; the initial condition is not one of them."""
    viscosity: float = 1e-5
    forcing: float = 0.1
    """Amplitude of f."""
    tau: float = 7.0
    """Inverse correlation length of the initial vorticity."""
    alpha: float = 2.5
    """Smoothness of the initial vorticity: its covariance falls off as |k|^(-2 alpha)."""
    dtype: str = "float32"
    """Arithmetic of the solver, float32 or float64; frames are stored in float32."""

    names: ClassVar[Names] = Names(coords=("x", "y"), targets=("w",), units={"x": "1", "y": "1", "w": "1"})

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random initial vorticity and the frames that follow, float32; on torch's default device."""
        flow = self.flow()
        start = flow.spectrum(fourier_modes(rng, MODES, self.tau, self.alpha))
        frames = flow.frames(start, range(1, self.frames + 1))
        return self.case(
            torch.stack([w[:: self.stride, :: self.stride].float() for w in frames]).cpu().numpy()
        )

    def case(self, frames: np.ndarray) -> PointSet:
        """The case of frames (T, m, m) on the points that are kept."""
        x = self.points()
        return PointSet(
            x=x,
            u=frames.reshape(len(frames), len(x), 1),
            weights=np.full(len(x), 1 / len(x), np.float32),
            grid=self.grid,
            times=np.arange(1, len(frames) + 1, dtype=np.float32),
            names=self.names,
        )

    @property
    def grid(self) -> tuple[int, int]:
        """(m, m) of the points that are kept."""
        kept = len(range(0, self.resolution, self.stride))
        return kept, kept

    def flow(self) -> "VorticityFlow":
        """The equation, discretised."""
        # sin s + cos s is the real part of (1 - i) exp(is): half of that for k = (1, 1), half for (-1, -1).
        half = self.forcing * (1 - 1j) / 2
        modes = np.array([[0, 0, 0], [0, half, 0]])
        dtype = {"float32": torch.float32, "float64": torch.float64}.get(self.dtype)
        if dtype is None:
            raise LrsaError(f'no arithmetic "{self.dtype}" for Navier-Stokes. There are: float32, float64')
        return VorticityFlow(self.resolution, self.viscosity, modes, dtype)

    def points(self) -> np.ndarray:
        """(m², 2) float32, the grid points that are kept, the first axis of the grid being x."""
        nodes = np.arange(0, self.resolution, self.stride) / self.resolution
        x, y = np.meshgrid(nodes, nodes, indexing="ij")
        return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


class VorticityFlow:
    """The equation on a grid of n × n points: its operators and the memory that a step works in."""

    def __init__(
        self, resolution: int, viscosity: float, forcing: np.ndarray, dtype: torch.dtype = torch.float32
    ) -> None:
        if resolution < 4:
            raise LrsaError(
                f"a Navier-Stokes grid of {resolution} points along an axis is too coarse: from 4 on"
            )
        n, self.resolution, self.dtype = resolution, resolution, dtype
        self.cut = (n - 1) // 3  # products of the modes up to K alias beyond K: 3 K < n
        kx = 2 * np.pi * np.fft.fftfreq(n, 1 / n)
        ky = 2 * np.pi * np.arange(self.cut + 1)[:, None]
        kept = np.abs(kx) < 2 * np.pi * (self.cut + 0.5)
        squared = kx**2 + ky**2
        squared[0, 0] = 1.0  # the mean stays what it is
        self.decay = [self._real(-viscosity * k.ravel() ** 2) for k in (ky, np.repeat(kx, 2))]
        self.to_velocity = self._complex(1j * kept / squared * np.stack([ky + 0 * kx, -kx + 0 * ky]))
        products = np.stack([(kx**2 - ky**2) * kept, -kx * ky * kept])
        self.from_products = self._real(np.repeat(products, 2, axis=-1))
        self.highest = 2 * np.pi * self.cut
        self.forcing = _flat(self.spectrum(forcing))
        self._padded = self._complex(np.zeros((2, n, n // 2 + 1)))
        self._velocity = torch.empty_like(self.to_velocity)
        self._products = self._real(np.zeros((2, n, n)))

    def spectrum(self, modes: np.ndarray) -> Tensor:
        """(K + 1, n) from the spectrum (J + 1, 2 J + 1) of another grid: filled up with zeros, or cut."""
        least = min(self.cut, len(modes) - 1)
        out = np.zeros((self.cut + 1, self.resolution), complex)
        out[: least + 1, : least + 1] = modes[: least + 1, : least + 1]
        out[: least + 1, -least:] = modes[: least + 1, -least:]
        return self._complex(out)

    def field(self, w: Tensor) -> Tensor:
        """(n, n) values on the grid, its first axis being x."""
        return torch.fft.irfft2(w.T, s=(self.resolution, self.resolution), norm="forward")

    def frames(
        self, w: Tensor, times: Sequence[float], courant: float = COURANT, longest: float = LONGEST
    ) -> Iterator[Tensor]:
        """(n, n) vorticities at the given times, from the spectrum w at time 0.

        Args:
            w: (K + 1, n) complex.
            times: Ascending.
            courant: Largest step times the highest advection frequency.
            longest: Longest step.
        """
        now = 0.0
        for time in times:
            w, now = self.advance(w, time - now, courant, longest), time
            yield self.field(w)

    def advance(
        self, w: Tensor, duration: float, courant: float = COURANT, longest: float = LONGEST
    ) -> Tensor:
        """The spectrum after `duration`, in steps that follow the velocity and end exactly there."""
        w, steps = _flat(w.clone()), 2
        k1, k2, k3, k4, stage, base = (torch.empty_like(w) for _ in range(6))
        while steps > 1:
            speed = _largest(self.tendency(w, out=k1))
            if not math.isfinite(speed):
                raise LrsaError(
                    "the Navier-Stokes solve diverged: the steps are too long or the data is not finite"
                )
            frequency = max(self.highest * speed / courant, 1 / longest)
            steps = max(1, math.ceil(duration * frequency - 1e-9))
            dt = duration / steps
            half = torch.outer(*(torch.exp(rate * (dt / 2)) for rate in self.decay))
            torch.mul(w, half, out=base)
            k1 *= half
            self.tendency(torch.add(base, k1, alpha=dt / 2, out=stage), out=k2)
            self.tendency(torch.add(base, k2, alpha=dt / 2, out=stage), out=k3)
            self.tendency(torch.add(base, k3, alpha=dt, out=stage).mul_(half), out=k4)
            base.add_(k1, alpha=dt / 6).add_(k2.add_(k3), alpha=dt / 3).mul_(half)
            torch.add(base, k4, alpha=dt / 6, out=w)
            duration -= dt
        return _pairs(w)

    def tendency(self, w: Tensor, out: Tensor) -> Tensor:
        """-u·∇w + f for a flat spectrum; returns u - v and u + v on the grid, (2, n, n)."""
        used = self.cut + 1
        torch.mul(self.to_velocity, _pairs(w), out=self._velocity)
        # Along contiguous axes, and of the modes that are not zero: the rest of the padded array stays zero.
        self._padded[..., :used] = torch.fft.ifft(self._velocity, norm="forward").mT
        velocities = torch.fft.irfft(self._padded, n=self.resolution, norm="forward")
        u, v = velocities
        torch.mul(u, v, out=self._products[0])
        minus = u.sub_(v)
        plus = torch.add(minus, v, alpha=2, out=v)
        torch.mul(plus, minus, out=self._products[1])
        rows = torch.fft.rfft(self._products, norm="forward")[..., :used].mT.contiguous()
        p, q = _flat(torch.fft.fft(rows, norm="forward"))
        torch.addcmul(self.forcing, p, self.from_products[0], out=out).addcmul_(q, self.from_products[1])
        return velocities

    def _real(self, array: np.ndarray) -> Tensor:
        return torch.tensor(array, dtype=self.dtype)

    def _complex(self, array: np.ndarray) -> Tensor:
        return torch.tensor(array, dtype=self.dtype.to_complex())


def _flat(w: Tensor) -> Tensor:
    """(..., K + 1, 2 n) the same memory as real numbers: real factors then multiply in half the time."""
    return torch.view_as_real(w).flatten(-2)


def _pairs(w: Tensor) -> Tensor:
    return torch.view_as_complex(w.unflatten(-1, (-1, 2)))


def _largest(velocities: Tensor) -> float:
    """The largest |u| + |v|, which is the larger of |u - v| and |u + v|."""
    low, high = torch.aminmax(velocities)
    return float(torch.maximum(-low, high))
