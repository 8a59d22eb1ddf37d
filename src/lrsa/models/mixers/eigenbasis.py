"""Mixing in a given basis of eigenfunctions: U = Φ, V = Φ⁺, G one matrix per mode (paper, section 3.3).

G. Chen et al., Learning neural operators on Riemannian manifolds (NORM), 2024.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.template import LowRankMix, Partial


class EigenbasisMix(LowRankMix["ProjectionPartial"]):
    """Δh = Φ G Φ⁺ h with Φ the first eigenfunctions at the points (`Context.basis`).

    compress     c  = (ΦᵀWΦ)⁻¹ ΦᵀW h,  the least-squares coefficients; W the measure of the points
    process      c'_k = G_k c_k,       one d x d matrix per mode
    reconstruct  Δh = Φ c'

    Both ΦᵀWh and ΦᵀWΦ are sums over points, so partials merge exactly.

    Args:
        width: Channels d.
        modes: Eigenfunctions K that are used.
    """

    def __init__(self, width: int, modes: int = 128) -> None:
        super().__init__()
        self.modes, self.needs = modes, Needs(eigenfunctions=modes)
        self.weight = nn.Parameter(torch.rand(modes, width, width) / width**2)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, K, d) coefficients."""
        return self.partial(h, x, context).finish()

    def partial(self, h: Tensor, x: Tensor, context: Context) -> "ProjectionPartial":
        """The two sums over some of the points, in fp32 at least."""
        basis, measure = self.basis(h, context), context.measure()
        weighted = basis if measure is None else basis * measure.to(basis.dtype)[..., None]
        adjoint = weighted.transpose(1, 2)
        with torch.autocast(h.device.type, enabled=False):
            return ProjectionPartial(adjoint @ h.to(basis.dtype), adjoint @ basis)

    def process(self, latents: Tensor) -> Tensor:
        """(B, K, d) -> (B, K, d), mode by mode."""
        return torch.einsum("bkc,kco->bko", latents, self.weight.to(latents.dtype))

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, K, d) coefficients -> (B, N, d) at the points of the basis."""
        basis = self.basis(h, context)
        return (basis @ latents.to(basis.dtype)).to(h.dtype)

    def basis(self, h: Tensor, context: Context) -> Tensor:
        """Φ (B, N, K)."""
        basis: Tensor = context.need("basis", "a mixer of eigenfunctions")
        if basis.shape[-1] < self.modes:
            raise LrsaError(f"the mixer uses {self.modes} eigenfunctions, and the data has {basis.shape[-1]}")
        return basis[..., : self.modes].to(torch.promote_types(h.dtype, torch.float32))


@dataclass(frozen=True)
class ProjectionPartial(Partial):
    """The normal equations of the projection onto the basis, summed over some of the points."""

    moments: Tensor
    """(B, K, d) ΦᵀWh."""
    gram: Tensor
    """(B, K, K) ΦᵀWΦ."""

    def merge(self, other: Self) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self)(self.moments + other.moments, self.gram + other.gram)

    def finish(self) -> Tensor:
        try:
            with torch.autocast(self.gram.device.type, enabled=False):
                return torch.cholesky_solve(self.moments, torch.linalg.cholesky(self.gram))
        except torch.linalg.LinAlgError as error:  # pyright: ignore[reportPrivateImportUsage]
            raise LrsaError(
                f"the first {self.gram.shape[-1]} eigenfunctions depend on each other at these points."
                " Use fewer modes"
            ) from error
