"""The unified view, executable: every global mixing layer as Δh = Out(U G Vᵀ H W) (paper, section 3.3).

With its routing (attention weights, gates, norm statistics) fixed at a sample, a layer has factors per head:
V (N, M) says where latents write from, U (N, M) where points read, G mixes the latents. G is an M x M matrix,
or one matrix of channels per mode for spectral layers; where it is a network (LRSA, LNO, Perceiver IO), it is
linearised at its latents.

Three definitions hold everywhere in this package:

contraction        of a block J_ij of e x e channels: tr(J_ij) / e, the mean over channels of what a channel
                   of point j sends to the same channel of point i. Exact where all channels of a head
                   share one kernel. Else the bound on the rank holds, but what one channel sends to
                   another does not show, and channels of opposite sign cancel.
interaction        K = U G Vᵀ (N, N) per head, G contracted. Its rank is at most M (2M for complex modes).
effective rank     exp(-Σ p_k log p_k) with p_k = σ_k / Σ σ, σ the singular values of K (Roy, Vetterli 2007).

`jacobian` differentiates the whole layer instead, routing included, with the same contraction.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import jvp, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.mixers.fourier import full_grid
from lrsa.models.template import GlobalMix, LowRankMix

POINTS = 4096
"""Points up to which an N x N matrix is made."""
DIRECTIONS = 16384
"""Derivatives up to which a Jacobian is taken: M d in the latents, or N d at the points without them."""
SMALLER = "Only a run of lower rank or width can be afforded"
CHUNK = 32
"""Derivatives that are taken at once."""


@dataclass(frozen=True)
class Factors:
    """A layer at one sample: Δh = Out(U G Vᵀ HW), C heads of e channels each."""

    u: Tensor
    """(C, N, M) reconstruction: what point n reads of latent m. Complex for Fourier modes."""
    v: Tensor
    """(C, N, M) compression: what latent m takes of point n, quadrature weights included."""
    values: Tensor
    """(C, N, e) HW, what is compressed."""
    g: Tensor | Callable[[Tensor], Tensor]
    """(C, M, M) the same for all channels; (C, M, e, e) one matrix per mode; or a network on (C, M, e)."""
    output: Callable[[Tensor], Tensor] = lambda joined: joined
    """(N, C e), the heads side by side, -> Δh (N, d)."""
    offset: Tensor | None = None
    """(C, M, e) what a shift in G adds to the latents."""

    @property
    def linear(self) -> bool:
        """Whether G is a matrix, so that the layer is linear in HW at fixed routing."""
        return isinstance(self.g, Tensor)

    def apply(self) -> Tensor:
        """Δh (N, d), by the factors alone."""
        read = self.u @ self._process(self._latents())
        return self.output(_real(read).transpose(0, 1).flatten(1))

    def mixing(self) -> Tensor:
        """G (C, M, M), contracted over channels."""
        if not isinstance(self.g, Tensor):
            return _contracted_jacobian(self.g, self._latents())
        if self.g.ndim == 3:
            return self.g
        return torch.diag_embed(self.g.diagonal(dim1=-2, dim2=-1).mean(-1))

    def kernel(self) -> Tensor:
        """The interaction K (C, N, N)."""
        _refuse(self.u.shape[-2], POINTS, "points for an N x N matrix")
        return _real(self.u @ self.mixing().to(self.u.dtype) @ self.v.transpose(-1, -2))

    def singular_values(self) -> Tensor:
        """Those of K that can differ from 0 (C, min(M, N)), descending; K is not made, so any N will do."""
        left, right = self.u @ self.mixing().to(self.u.dtype), self.v
        if left.is_complex():  # Re(a b) = Re a Re b - Im a Im b
            left, right = torch.cat([left.real, -left.imag], -1), torch.cat([right.real, right.imag], -1)
        (_, a), (_, b) = torch.linalg.qr(left, "r"), torch.linalg.qr(right, "r")
        return torch.linalg.svdvals(a @ b.transpose(-1, -2))

    def _latents(self) -> Tensor:
        return self.v.transpose(-1, -2) @ self.values.to(self.v.dtype)

    def _process(self, latents: Tensor) -> Tensor:
        if not isinstance(self.g, Tensor):
            return self.g(latents)
        per_mode = self.g.ndim == 4
        mixed = torch.einsum("cma,cmab->cmb", latents, self.g) if per_mode else self.g @ latents
        return mixed if self.offset is None else mixed + self.offset


@dataclass(frozen=True)
class Jacobian:
    """∂Δh_i/∂h_j of a whole layer, contracted over channels."""

    interaction: Tensor
    """(N, N) what passes from point j to point i through the latents."""
    own: Tensor
    """(N,) what reaches a point past them: its own reading, which is no interaction and not of low rank."""

    def total(self) -> Tensor:
        """(N, N)."""
        return self.interaction + torch.diag(self.own)


class OnGrid(GlobalMix):
    """A layer on images (B, H, W, d), as published Fourier models have it, seen as a mixing layer."""

    def __init__(self, image_layer: nn.Module) -> None:
        super().__init__()
        self.spectral = image_layer

    def forward(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        return self.spectral(h.unflatten(1, full_grid(context, "a layer on images", h.shape[1]))).flatten(
            1, 2
        )


def effective_rank(singular_values: Tensor) -> Tensor:
    """exp of the entropy of σ / Σσ, (..., K) -> (...): 1 for a single mode, K for K equal ones."""
    total = singular_values.sum(-1, keepdim=True)
    share = singular_values / total.clamp(min=torch.finfo(total.dtype).tiny)
    rank = torch.special.entr(share).sum(-1).exp()
    return torch.where(total[..., 0] > 0, rank, torch.zeros_like(rank))


@torch.no_grad()
def jacobian(layer: GlobalMix, h: Tensor, x: Tensor, context: Context) -> Jacobian:
    """The derivative of the layer's output by the features of every point, h (1, N, d).

    A layer of the template costs M d derivatives, through its latents; any other N d. (A grid layer has no
    `own` apart: all of its derivative is interaction.)
    """
    check_single(h)
    _refuse(h.shape[1], POINTS, "points for a Jacobian")
    with _differentiable():
        output = layer(h, x, context)
        if output.shape != h.shape:
            raise LrsaError(
                f"the Jacobian of {type(layer).__name__} has no trace: {h.shape[-1]} channels in,"
                f" {output.shape[-1]} out. Its factors can still be had"
            )
        if isinstance(layer, LowRankMix):
            return Jacobian(*_through_latents(layer, h, x, context))
        _refuse(h.numel(), DIRECTIONS, "derivatives")
        return Jacobian(_by_points(layer, h, x, context), h.new_zeros(h.shape[1]))


@contextmanager
def _differentiable() -> Iterator[None]:
    """Attention from its parts, since the fused kernels have no forward derivative."""
    with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
        # torch's own rules of forward derivatives are scripted when first used.
        warnings.filterwarnings("ignore", "`torch.jit.script` is", DeprecationWarning)
        yield


def _through_latents(layer: LowRankMix[Any], h: Tensor, x: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    """Chain rule: (∂Δh/∂Z)(∂Z/∂h), and ∂Δh/∂h at fixed Z, which is zero between different points."""
    width = h.shape[-1]
    latents, pull = vjp(lambda points: layer.compress(points, x, context), h)[:2]
    _refuse(latents.numel(), DIRECTIONS, "derivatives in the latents", SMALLER)

    def read(z: Tensor) -> Tensor:
        return layer.reconstruct(h, x, context, layer.process(z))

    interaction, own = h.new_zeros(h.shape[1], h.shape[1]), h.new_zeros(h.shape[1])
    for channel in range(latents.shape[-1]):
        units = _units(latents, channel)
        sent = vmap(lambda unit: pull(unit)[0][0], chunk_size=CHUNK)(units)  # (M, N, d)
        seen = vmap(lambda unit: jvp(read, (latents,), (unit,))[1][0], chunk_size=CHUNK)(units)
        interaction += torch.einsum("mic,mjc->ij", seen, sent) / width
    processed = layer.process(latents)
    for channel in range(width):
        unit = torch.zeros_like(h)
        unit[..., channel] = 1
        moved = jvp(lambda points: layer.reconstruct(points, x, context, processed), (h,), (unit,))[1]
        own += moved[0, :, channel] / width
    return interaction, own


def _by_points(layer: GlobalMix, h: Tensor, x: Tensor, context: Context) -> Tensor:
    pull = vjp(lambda points: layer(points, x, context), h)[1]
    width = h.shape[-1]
    rows = (
        vmap(lambda unit: pull(unit)[0][0], chunk_size=CHUNK)(_units(h, channel))[..., channel]
        for channel in range(width)
    )
    return reduce(torch.add, rows) / width


def _contracted_jacobian(step: Callable[[Tensor], Tensor], latents: Tensor) -> Tensor:
    """(C, M, M) of a network on latents (C, M, e): tr / e of the blocks within each head."""
    heads, _, width = latents.shape
    _refuse(latents.numel(), DIRECTIONS, "derivatives of the latent network", SMALLER)
    with _differentiable():
        pull = vjp(step, latents)[1]
        blocks = [
            sum(_pulled(pull, latents, head, channel) for channel in range(width)) / width
            for head in range(heads)
        ]
    return torch.stack([torch.as_tensor(block) for block in blocks])


def _pulled(pull: Any, latents: Tensor, head: int, channel: int) -> Tensor:
    units = torch.zeros(latents.shape[1], *latents.shape, dtype=latents.dtype)
    index = torch.arange(latents.shape[1])
    units[index, head, index, channel] = 1
    return vmap(lambda unit: pull(unit)[0][head, :, channel], chunk_size=CHUNK)(units)


def _units(like: Tensor, channel: int) -> Tensor:
    """The unit vectors (M, 1, M, d) of one channel of (1, M, d)."""
    units = like.new_zeros(like.shape[1], *like.shape)
    index = torch.arange(like.shape[1])
    units[index, 0, index, channel] = 1
    return units


@singledispatch
def factors_of(layer: GlobalMix, h: Tensor, x: Tensor, context: Context) -> Factors:
    """The factors of one family of layers; each registers its own."""
    raise LrsaError(f"no factors are known of {type(layer).__name__}. Register them with `factors_of`")


def measured(maps: Tensor, context: Context) -> Tensor:
    """(1, C, N, M), each point times its measure."""
    measure = context.measure()
    return maps if measure is None else maps * measure.to(maps.dtype)[:, None, :, None]


def _real(values: Tensor) -> Tensor:
    return values.real if values.is_complex() else values


def check_single(h: Tensor) -> None:
    """Refuse a batch of several samples."""
    if len(h) != 1:
        raise LrsaError(f"a layer is looked at one sample at a time, and here are {len(h)}")


def _refuse(count: int, limit: int, what: str, cure: str = "Take fewer points with --stride") -> None:
    if count > limit:
        raise LrsaError(f"{count} {what}, and {limit} are affordable. {cure}")
