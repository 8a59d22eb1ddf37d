"""NACA profiles of four and five digits with a closed trailing edge, chord 1, and the flows of the data set.

A mean line y_c(x) carries a half thickness y_t(x) at right angles to it,

    y_t = 5 t (0.2969 √x - 0.1260 x - 0.3516 x² + 0.2843 x³ - 0.1036 x⁴).

Digits are real numbers here, as published.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

VISCOSITY = 1.56e-5
"""Of air, m²/s."""


@dataclass(frozen=True)
class Flow:
    """One case: a profile and the stream that comes to it."""

    digits: tuple[float, ...]
    """(M, P, XX) or (L, P, Q, XX)."""
    reynolds: float
    angle: float
    """Of attack, degrees."""

    @staticmethod
    def draw(rng: np.random.Generator) -> "Flow":
        """By the published law: half of the profiles have four digits, half five."""
        reynolds, angle, thickness = rng.uniform(2e6, 6e6), rng.uniform(-5, 15), rng.uniform(5, 20)
        if rng.integers(2):
            camber, place = rng.uniform(0, 7), rng.uniform(0, 7)
            return Flow((camber, place if place >= 1.5 else 0.0, thickness), reynolds, angle)
        lift, place, reflex = rng.uniform(0, 4), rng.uniform(3, 8), float(rng.integers(2))
        return Flow((lift, place, reflex, thickness), reynolds, angle)

    @property
    def speed(self) -> float:
        return self.reynolds * VISCOSITY

    @property
    def velocity(self) -> tuple[float, float]:
        """Far away."""
        angle = np.radians(self.angle)
        return float(self.speed * np.cos(angle)), float(self.speed * np.sin(angle))


def profile(digits: tuple[float, ...], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, 2) the lower and the upper side at stations x from 0 to 1."""
    t = digits[-1] / 100
    half = 5 * t * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    line, slope = mean_line(digits, x)
    across = np.stack([-slope, np.ones_like(x)], axis=1) / np.hypot(1, slope)[:, None]
    middle, half = np.stack([x, line], axis=1), half[:, None]
    return middle - half * across, middle + half * across


def nose_radius(digits: tuple[float, ...]) -> float:
    """Of curvature at the leading edge: y_t ≈ √(2 r x)."""
    return (5 * 0.2969 * digits[-1] / 100) ** 2 / 2


def mean_line(digits: tuple[float, ...], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y_c and dy_c/dx of the first digits."""
    if len(digits) == 4:
        return _five_digits(digits[0], digits[1], bool(digits[2]), x)
    m, p = digits[0] / 100, digits[1] / 10
    if p == 0:  # no camber, by convention
        return np.zeros_like(x), np.zeros_like(x)
    front = m / p**2 * (2 * p * x - x**2), 2 * m / p**2 * (p - x)
    back = m / (1 - p) ** 2 * (1 - 2 * p + 2 * p * x - x**2), 2 * m / (1 - p) ** 2 * (p - x)
    return np.where(x < p, front[0], back[0]), np.where(x < p, front[1], back[1])


def _five_digits(lift: float, place: float, reflex: bool, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean line of design lift 0.15 L with its highest point at 0.05 P; `reflex` turns its end up.

    m (1 - √(m/3)) = p says where the curvature ends, and k that the design lift is reached.
    """
    p = place / 20
    m = float(brentq(lambda m: m * (1 - np.sqrt(m / 3)) - p, 0, 1, xtol=1e-15))  # pyright: ignore[reportArgumentType]
    q = (3 * m - 7 * m**2 + 8 * m**3 - 4 * m**4) / np.sqrt(m * (1 - m))
    k = 0.15 * lift / (q - 1.5 * (1 - 2 * m) * (np.pi / 2 - np.arcsin(1 - 2 * m)))
    if not reflex:
        front = x**3 - 3 * m * x**2 + m**2 * (3 - m) * x, 3 * x**2 - 6 * m * x + m**2 * (3 - m)
        back = m**3 * (1 - x), np.full_like(x, -(m**3))
    else:
        r = (3 * (m - p) ** 2 - m**3) / (1 - m) ** 3
        straight, slope = m**3 - (r * (1 - m) ** 3 + m**3) * x, -(r * (1 - m) ** 3 + m**3)
        front = (x - m) ** 3 + straight, 3 * (x - m) ** 2 + slope
        back = r * (x - m) ** 3 + straight, 3 * r * (x - m) ** 2 + slope
    return k * np.where(x < m, front[0], back[0]), k * np.where(x < m, front[1], back[1])
