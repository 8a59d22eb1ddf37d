"""MeshGraphNet: encode, process, decode on mesh edges (Pfaff et al. 2021)."""

import torch
from torch import Tensor, nn

from lrsa.context import Context, Edges, Needs
from lrsa.models.baselines.graph import (
    CHUNK,
    BatchLayout,
    Graph,
    check_memory,
    mlp,
    over_chunks,
    point_features,
)

KEPT = 4
"""Numbers per edge and channel that a step keeps where nothing is recomputed."""


class MeshGraphNet(nn.Module):
    """Points v and edges e with states of their own, updated in turn by residual MLPs.

    encode    v_i = MLP([x_i, f_i]),  e_ij = MLP([(x_j - x_i)/ℓ, |x_j - x_i|/ℓ])
    process   e_ij' = e_ij + MLP([e_ij, v_j, v_i]),  v_i' = v_i + MLP([v_i, Σ_j e_ij'])     `depth` times
    decode    u_i = MLP(v_i)

    Every MLP has two hidden layers with ReLU, and a LayerNorm at its end except in the decoder. ℓ is the mean
    edge length of the case. The architecture is that of Pfaff, Fortunato, Sanchez-Gonzalez, Battaglia,
    ICLR 2021, for one static map: no online normaliser (ℓ takes its place on the edges), coordinates
    among the point features, no noise, no world edges. Of E edges every step keeps (E, width) numbers for
    the backward pass (8 GB in all for 32 k points of 32 neighbours), and where they are more than one
    chunk recomputes the rest.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels of points and edges.
        depth: Processing steps.
    """

    needs = Needs(edges=Edges(self_loops=False))

    def __init__(
        self, coord_dim: int, in_features: int, out_features: int, width: int = 128, depth: int = 15
    ) -> None:
        super().__init__()
        self.coord_dim, self.in_features, self.width = coord_dim, in_features, width
        self.encode_points = _normed(coord_dim + in_features, width, width, width)
        self.encode_edges = _normed(coord_dim + 1, width, width, width)
        self.steps = nn.ModuleList(Step(width) for _ in range(depth))
        self.decode = mlp(width, width, width, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = context or Context()
        cases = BatchLayout.of(x, context)
        graph = cases.graph(context, "MeshGraphNet")
        v = self.encode_points(cases.pack(point_features(x, f, self.coord_dim, self.in_features)))
        geometry = edge_geometry(cases.pack(x), graph, cases.counts)
        count, chunk = len(geometry), max(1, CHUNK // self.width)
        if torch.is_grad_enabled():
            each = 1 if count > chunk else KEPT
            kept = each * (len(self.steps) + 1) * count * self.width * x.element_size()
            check_memory(kept, f"MeshGraphNet's states of {count:,} edges in training", x.device)
        e = torch.cat(over_chunks(lambda rows: self.encode_edges(geometry[rows]), count, chunk))
        for step in self.steps:
            e, v = step(e, v, graph)
        return cases.unpack(self.decode(v))


class Step(nn.Module):
    """One processing step: edges from their ends, then points from their edges."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.edge = nn.Linear(width, width, bias=False)
        self.sender = nn.Linear(width, width, bias=False)
        self.receiver = nn.Linear(width, width)
        self.message = nn.Sequential(nn.ReLU(), *_normed(width, width, width))
        self.update = _normed(2 * width, width, width, width)

    def forward(self, e: Tensor, v: Tensor, graph: Graph) -> tuple[Tensor, Tensor]:
        """e (E, d), v (n, d) -> the same, updated."""
        # The first layer of the edge MLP acts on [e, v_j, v_i]: its part for the points is done once a point.
        sent, received = self.sender(v), self.receiver(v)

        def edges(rows: slice) -> Tensor:
            part = e[rows]
            ends = sent.index_select(0, graph.source[rows]) + received.index_select(0, graph.target[rows])
            return part + self.message(self.edge(part) + ends)

        updated = torch.cat(over_chunks(edges, len(e), max(1, CHUNK // e.shape[1])))
        return updated, v + self.update(torch.cat([v, graph.collect(updated)], dim=1))


def edge_geometry(x: Tensor, graph: Graph, counts: tuple[int, ...]) -> Tensor:
    """(n, p) -> (E, p + 1): displacement from target to source and its length, in mean edge lengths."""
    displacement = x[graph.source] - x[graph.target]
    length = displacement.norm(dim=1, keepdim=True)
    case = torch.repeat_interleave(
        torch.arange(len(counts), device=x.device), torch.tensor(counts, device=x.device)
    )[graph.target]
    total = x.new_zeros(len(counts)).index_add(0, case, length[:, 0])
    edges = torch.bincount(case, minlength=len(counts)).to(x.dtype)
    mean = total / edges.clamp(min=1)
    scale = torch.where(mean > 0, mean, 1.0)[case][:, None]
    return torch.cat([displacement, length], dim=1) / scale


def _normed(*widths: int) -> nn.Sequential:
    return nn.Sequential(*mlp(*widths), nn.LayerNorm(widths[-1]))


PRESETS: dict[str, dict[str, object]] = {
    "airfrans": {"coord_dim": 2, "in_features": 5, "out_features": 4},
    "shapenet-car": {"coord_dim": 3, "in_features": 4, "out_features": 4},
}
"""The width and depth of Pfaff et al.; no reference for these benchmarks is public."""
