"""Gaussian random fields on the unit square: draws of N(0, (-Δ + τ²)^-α), scaled, with zero mean.

A draw is a sum of the eigenfunctions of -Δ with independent normal coefficients, whose deviations are
τ^(α-1) (|k|² + τ²)^(-α/2) at the eigenvalue |k|²: 1/τ is the correlation length, α the smoothness.
"""

import numpy as np
from scipy.fft import idctn


def cosine_field(rng: np.random.Generator, resolution: int, tau: float, alpha: float) -> np.ndarray:
    """(s, s) values at cell centres of a draw from N(0, τ^(2α-2) (-Δ + τ²)^-α), zero Neumann."""
    k = np.pi * np.arange(resolution)
    deviations = _deviations(k[:, None] ** 2 + k**2, tau, alpha)
    coefficients = resolution * deviations * rng.standard_normal((resolution, resolution))
    coefficients[0, 0] = 0.0
    return np.asarray(idctn(coefficients, type=2, norm="ortho", workers=1))


def fourier_modes(rng: np.random.Generator, modes: int, tau: float, alpha: float) -> np.ndarray:
    """(K + 1, 2 K + 1) spectrum, K = `modes`, of a real periodic draw from N(0, 2 τ^(2α-2) (-Δ + τ²)^-α).

    Rows are 0 <= k_y <= K, columns k_x in the order of the discrete transform; the field is the plain sum of
    all modes times exp(2πi k·x), those of k_y < 0 being the conjugates.
    """
    kx, ky = np.fft.fftfreq(2 * modes + 1, 1 / (2 * modes + 1)), np.arange(modes + 1)[:, None]
    deviations = _deviations(4 * np.pi**2 * (kx**2 + ky**2), tau, alpha)
    real, imaginary = rng.standard_normal((2, *deviations.shape))
    spectrum = deviations * (real + 1j * imaginary)
    spectrum[0, 0] = 0.0
    spectrum[0, modes + 1 :] = spectrum[0, modes:0:-1].conj()  # a real field has conjugate opposite modes
    return spectrum


def _deviations(eigenvalues: np.ndarray, tau: float, alpha: float) -> np.ndarray:
    return tau ** (alpha - 1) * (eigenvalues + tau**2) ** (-alpha / 2)
