"""Radial basis functions and ridge regression, and which of them errs least when a case is left out.

c(d) = Σ wᵢ φ(|d - dᵢ|) + v·[1, d]        (K + λ I) w + P v = c,  Pᵀ w = 0

as scipy's RBFInterpolator with `degree=1` has it. The error at case i of the fit to all the others is
wᵢ / Bᵢᵢ, where B maps c to w (Rippa 1999), so that it costs no fit of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

CUBIC, PLATE, LINEAR, RIDGE = range(4)
SMOOTHING = (1e-12, 1e-6, 1e-3, 1e-1)
"""λ of radial basis functions, of the largest eigenvalue of K."""
PENALTIES = (1e-12, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Of ridge regression, of the largest eigenvalue."""
DRAWN = 300
"""Cases that decide which kernel, λ and number of inputs are compared with ridge regression on all."""
BETTER = 0.98
"""What the error must fall to for a fit of more inputs, or of a further kernel, to be preferred."""


@dataclass(frozen=True)
class Fit:
    """What [φ(|d - centres|), 1, d] is multiplied with; ridge regression has no centres."""

    KERNELS: ClassVar[tuple[str, ...]] = (
        "cubic radial basis functions",
        "thin-plate radial basis functions",
        "linear radial basis functions",
        "ridge regression",
    )

    centres: Tensor
    """(S, D), or (0, D)."""
    weights: Tensor
    """(S + 1 + D, m)."""
    kernel: int
    inputs: int
    """How many of the inputs are among the D."""
    error: Tensor
    """() root of the mean square of what is missed with each case left out in turn."""


def fitted(parameters: Tensor, inputs: Tensor, c: Tensor, regression: str = "auto") -> Fit:
    """The best fit from parameters (S, g) and the first of inputs (S, k) to c (S, m), by leaving out."""
    best = _mean(parameters, c)
    if regression != "rbf":
        for count in counts(parameters, inputs, len(c) - 2):
            best = _better(best, *_ridges(parameters, inputs[:, :count], c))
    if regression != "ridge":
        some = torch.linspace(0, len(c) - 1, min(DRAWN, len(c)), dtype=torch.float64).round().long()
        few: Fit | None = None
        chosen = (0, CUBIC, SMOOTHING[0])
        for count in counts(parameters, inputs, len(some) // 2 - 2):
            d = torch.cat([parameters, inputs[:, :count]], dim=1)[some]
            for kernel in (CUBIC, PLATE, LINEAR):
                for smoothing, fit in _radial(d, c[some], kernel, count, SMOOTHING):
                    if few is None or fit.error < BETTER * few.error:
                        few, chosen = fit, (count, kernel, smoothing)
        if few is not None:
            count, kernel, smoothing = chosen
            d = torch.cat([parameters, inputs[:, :count]], dim=1)
            best = _better(best, *(fit for _, fit in _radial(d, c, kernel, count, (smoothing,))))
    return best


def counts(parameters: Tensor, inputs: Tensor, most: int) -> list[int]:
    """How many inputs are tried: none where parameters are, then powers of two, up to what cases allow."""
    there = min(inputs.shape[1], max(most - parameters.shape[1], 0))
    powers = [2**i for i in range(there.bit_length()) if 2**i < there]
    zero = [0] if parameters.shape[1] and most >= parameters.shape[1] else []
    return [*zero, *powers, *([there] if there else [])]


def design(d: Tensor) -> Tensor:
    """(S, D) -> (S, 1 + D): what the linear part is of."""
    return torch.cat([torch.ones_like(d[:, :1]) if d.shape[1] else d.new_ones(len(d), 1), d], dim=1)


def kernel_matrix(d: Tensor, centres: Tensor, kernel: int) -> Tensor:
    """(B, D), (S, D) -> (B, S), conditionally positive definite."""
    r = torch.linalg.vector_norm(d[:, None] - centres, dim=-1) if d.shape[1] < 8 else torch.cdist(d, centres)
    if kernel == CUBIC:
        return r**3
    if kernel == PLATE:
        return torch.where(r > 0, r**2 * r.clamp(min=1e-300).log(), 0.0)
    return -r


def _mean(parameters: Tensor, c: Tensor) -> Fit:
    """Nothing depends on anything."""
    weights = c.new_zeros(1 + parameters.shape[1], c.shape[1])
    weights[0] = c.mean(0)
    left_out = (c - c.mean(0)) * len(c) / max(len(c) - 1, 1)
    return Fit(parameters[:0], weights, RIDGE, 0, _size(left_out))


def _ridges(parameters: Tensor, inputs: Tensor, c: Tensor) -> Iterator[Fit]:
    """Least squares with a penalty on all but the constant, for every penalty."""
    d = torch.cat([parameters, inputs], dim=1)
    middle, level = d.mean(0), c.mean(0)
    left, sizes, right = torch.linalg.svd(d - middle, full_matrices=False)
    sizes = torch.where(sizes > 1e-10 * sizes.max(), sizes, 0.0)
    for penalty in PENALTIES:
        shrink = sizes / (sizes**2 + penalty * sizes.max() ** 2).clamp(min=1e-300)
        linear = right.T @ (shrink[:, None] * (left.T @ (c - level)))
        hat = (left**2) @ (shrink * sizes) + 1 / len(c)
        missed = (c - level - (d - middle) @ linear) / (1 - hat).clamp(min=1e-9)[:, None]
        weights = torch.cat([(level - middle @ linear)[None], linear])
        yield Fit(d[:0], weights, RIDGE, inputs.shape[1], _size(missed))


def _radial(
    d: Tensor, c: Tensor, kernel: int, inputs: int, smoothing: tuple[float, ...]
) -> Iterator[tuple[float, Fit]]:
    """Radial basis functions with a linear part, for every λ."""
    polynomial = design(d)
    # The weights are orthogonal to the linear part: they live in the complement of its span.
    basis, sizes, _ = torch.linalg.svd(polynomial, full_matrices=True)
    rank = int((sizes > 1e-10 * sizes.max()).sum())
    free = basis[:, rank:]
    if not free.shape[1]:
        return
    near = kernel_matrix(d, d, kernel)
    energy, vectors = torch.linalg.eigh(free.T @ near @ free)
    turned = free @ vectors
    for share in smoothing:
        penalty = share * energy.abs().max().clamp(min=1e-300)
        inverse = 1 / (energy.clamp(min=0) + penalty)
        weights = turned @ (inverse[:, None] * (turned.T @ c))
        missed = weights / (turned**2 @ inverse).clamp(min=1e-300)[:, None]
        rest = c - near @ weights - penalty * weights
        linear = torch.linalg.lstsq(polynomial, rest, driver="gelsd").solution
        yield share, Fit(d, torch.cat([weights, linear]), kernel, inputs, _size(missed))


def _better(best: Fit, *others: Fit) -> Fit:
    for other in others:
        if torch.isfinite(other.error) and other.error < BETTER * best.error:
            best = other
    return best


def _size(missed: Tensor) -> Tensor:
    return missed.square().sum(1).mean().sqrt()
