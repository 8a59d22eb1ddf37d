"""Message passing in plain torch.

A batch of B cases is one disjoint graph over its real points, edges sorted by target. The two primitives

    sum      (n, d) -> (n, d)   over the sources of every point
    collect  (E, d) -> (n, d)   over the incoming edges of every point

need no atomic or serial additions, forward or backward: the gradient of a sum is the sum over the edges
sorted by source, that of a collection takes the value at the target. A sum makes no (E, d) array.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.machine import memory
from lrsa.models.operator import check_points

CHUNK = 2**24
"""Numbers that one chunk of edges (or of a Fourier basis) may hold: 64 MB in single precision."""


class Graph:
    """The directed edges source -> target among n points."""

    def __init__(self, edges: Tensor, points: int) -> None:
        """edges (2, E), in any order."""
        if edges.shape[1] and not bool((edges[1, 1:] >= edges[1, :-1]).all()):
            edges = edges[:, torch.argsort(edges[1], stable=True)]
        self.source, self.target = edges[0].contiguous(), edges[1].contiguous()
        self.points = points
        self.degree, self.starts = _segments(self.target, points)

    def mean(self, h: Tensor) -> Tensor:
        """(n, d) -> (n, d): the mean of h over the sources of every point; 0 where there is none."""
        return self.sum(h) / self.degree.clamp(min=1)[:, None].to(h.dtype)

    def sum(self, h: Tensor) -> Tensor:
        """(n, d) -> (n, d): the sum of h over the sources of every point."""
        return _NeighbourSum.apply(h, self)  # pyright: ignore[reportReturnType]

    def collect(self, messages: Tensor) -> Tensor:
        """(E, m) -> (n, m): the sum of the messages of the incoming edges, given in the graph's order."""
        return _Collect.apply(messages, self)  # pyright: ignore[reportReturnType]

    @cached_property
    def transposed(self) -> tuple[Tensor, Tensor]:
        """Targets ordered by source, and where each source starts."""
        starts = _segments(self.source, self.points)[1]
        if self.source.device.type != "cpu":
            return self.target[torch.argsort(self.source, stable=True)], starts
        # The transpose of a sparse matrix is a counting sort, which torch does not have.
        ends, there = self.starts.new_full((1,), len(self.source)), np.ones(len(self.source), bool)
        rows = (there, self.source.numpy(), torch.cat([self.starts, ends]).numpy())
        matrix = sparse.csr_array(rows, (self.points, self.points)).tocsc()
        return torch.from_numpy(matrix.indices.astype(np.int64)), starts


class _NeighbourSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, graph: Graph) -> Tensor:
        ctx.graph = graph
        return _bags(h, graph.source, graph.starts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        targets, starts = ctx.graph.transposed
        return _bags(gradient, targets, starts), None


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, messages: Tensor, graph: Graph) -> Tensor:
        ctx.graph = graph
        return _bags(messages, torch.arange(len(messages), device=messages.device), graph.starts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return gradient.index_select(0, ctx.graph.target), None


def _bags(h: Tensor, index: Tensor, starts: Tensor) -> Tensor:
    """Σ h[index[s:e]] for every segment [s, e), without the array of all h[index]."""
    return F.embedding_bag(index, h.contiguous(), starts, mode="sum")


def _segments(index: Tensor, points: int) -> tuple[Tensor, Tensor]:
    degree = torch.bincount(index, minlength=points)
    return degree, degree.cumsum(0) - degree


@dataclass(frozen=True)
class BatchLayout:
    """The real points of a padded batch (B, N), case after case."""

    shape: tuple[int, int]
    counts: tuple[int, ...]
    """Real points of every case."""
    mask: Tensor | None

    @staticmethod
    def of(x: Tensor, context: Context) -> "BatchLayout":
        batch, points = x.shape[:2]
        if context.mask is None:
            return BatchLayout((batch, points), (points,) * batch, None)
        return BatchLayout((batch, points), tuple(context.mask.sum(1).tolist()), context.mask)

    def pack(self, h: Tensor) -> Tensor:
        """(B, N, d) -> (n, d)."""
        return h.flatten(0, 1) if self.mask is None else h[self.mask]

    def unpack(self, h: Tensor) -> Tensor:
        """(n, d) -> (B, N, d), 0 where padded."""
        if self.mask is None:
            return h.unflatten(0, self.shape)
        padded = h.new_zeros(*self.shape, h.shape[-1])
        padded[self.mask] = h
        return padded

    def graph(self, context: Context, who: str) -> Graph:
        """`Context.edges` among the real points."""
        edges: Tensor = context.need("edges", who)
        if edges.ndim != 2 or len(edges) != 2:
            raise LrsaError(f"edges are (2, E), sources and targets, not of shape {tuple(edges.shape)}")
        total = self.shape[0] * self.shape[1]
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < total:
            raise LrsaError(f"an edge leaves the {total} points of the batch. Build the edges for this batch")
        if not bool((edges[0] // self.shape[1] == edges[1] // self.shape[1]).all()):
            raise LrsaError("an edge joins two cases of the batch. Build the edges of every case by itself")
        if self.mask is None:
            return Graph(edges, total)
        real = self.mask.flatten()
        if not bool(real[edges].all()):
            raise LrsaError("an edge touches a padded point. Build the edges among the real points only")
        return Graph((real.cumsum(0) - 1)[edges], sum(self.counts))


class GraphNorm(nn.BatchNorm1d):
    """Batch norm by the mean and variance over the points of each case, in training and after."""

    def __init__(self, width: int) -> None:
        super().__init__(width, track_running_stats=False)

    def forward(self, input: Tensor, counts: Sequence[int] = ()) -> Tensor:
        """(n, d), the points of every case -> (n, d)."""
        parts = input.split(list(counts)) if counts else (input,)
        return torch.cat([self._case(part) for part in parts])

    def _case(self, h: Tensor) -> Tensor:
        if len(h) < 2:  # torch refuses a single point, which is its own mean
            return (h - h) * self.weight + self.bias
        return F.batch_norm(h, None, None, self.weight, self.bias, training=True, eps=self.eps)


def mlp(*widths: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def point_features(x: Tensor, f: Tensor | None, coord_dim: int, in_features: int) -> Tensor:
    """[x, f] (B, N, p + c), or a refusal of other channels than the model was made for."""
    check_points(x, f, coord_dim, in_features)
    return x if f is None else torch.cat([x, f], dim=-1)


def check_memory(kept: int, what: str, device: torch.device) -> None:
    """Refuse to keep more bytes for the backward pass than there are, before the system kills the process."""
    if device.type != "cpu":
        return
    with suppress(AttributeError, ValueError):
        if kept > memory():
            raise LrsaError(
                f"{what} take at least {kept / 1e9:.1f} GB, this machine has {memory() / 1e9:.1f} GB."
                " Use smaller batches, fewer points or a narrower model"
            )


def over_chunks(part: Callable[[slice], Tensor], count: int, chunk: int) -> list[Tensor]:
    """`part` of consecutive slices of `count` rows; beyond one slice the backward pass recomputes each.

    What `part` reads from the function around it must not be assigned again there.
    """
    slices = [slice(i, min(i + chunk, count)) for i in range(0, count, chunk)] or [slice(0, 0)]
    if len(slices) == 1 or not torch.is_grad_enabled():
        return [part(rows) for rows in slices]
    return [checkpoint(part, rows, use_reentrant=False, preserve_rng_state=False) for rows in slices]  # pyright: ignore[reportReturnType]
