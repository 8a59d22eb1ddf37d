"""The low-rank template K ≈ U G Vᵀ that every global mixing layer fills in (paper, section 3.2)."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs


class GlobalMix(nn.Module, ABC):
    """A layer in which points meet: GlobalMix(H, X) of Eq. (backbone-globalmix)."""

    needs: Needs = Needs()
    """Without which the layer has no meaning."""

    @abstractmethod
    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """h (B, N, d) normalised features, x (B, N, p) coordinates -> Δh (B, N, d)."""


class Others(Protocol):
    """Whoever holds the other points of a sample: what all of them together sum to."""

    def total(self, values: Tensor) -> Tensor:
        """The sum over all, differentiable."""
        ...

    def most(self, values: Tensor) -> Tensor:
        """The largest of all, a constant."""
        ...


class Partial(ABC):
    """The compression Vᵀ over some of the points, not yet normalised.

    Partials of disjoint sets of points merge to the partial of their union, in any order; this is what
    makes streaming and sharding exact. Subclasses are dataclasses of tensors, differentiable.
    """

    @abstractmethod
    def merge(self, other: Any) -> Self:
        """The partial of both sets of points; `other` is of the same layer."""

    @abstractmethod
    def finish(self) -> Tensor:
        """The latents (B, M, d) of all points merged so far."""

    def over(self, others: Others) -> Self:
        """The partial of all points, of which others hold the rest; each of them calls this."""
        sums = {name: others.total(value) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **sums)  # pyright: ignore[reportArgumentType, reportReturnType]


def at_least_float32(values: Tensor) -> Tensor:
    """Sums over many points are kept, merged and divided in fp32 or better, whatever made them."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


P = TypeVar("P", bound=Partial)


class LowRankMix(GlobalMix, Generic[P]):
    """GlobalMix(H, X) = U G Vᵀ H with U, V of M columns, Eq. (lowrank-factorization).

    compress     Vᵀ: N points -> M latents, the only place where points meet
    process      G : latents -> latents, never sees N
    reconstruct  U : M latents -> each point by itself

    `partial(all points).finish()` equals `compress(all points)`.
    """

    @abstractmethod
    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> (B, M, d) latents, on the fast path."""

    @abstractmethod
    def partial(self, h: Tensor, x: Tensor, context: Context) -> P:
        """The same reduction over some of the points."""

    @abstractmethod
    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, M, d) latents."""

    @abstractmethod
    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> Δh (B, N, d) at the points of h, whichever they are."""

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        return self.reconstruct(h, x, context, self.process(self.compress(h, x, context)))
