"""Graph neural operator: a kernel integral by message passing (Anandkumar et al. 2020)."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from lrsa.context import Context, Edges, Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines.graph import CHUNK, BatchLayout, Graph, mlp, over_chunks, point_features
from lrsa.models.hidden import Declared, whole


class GNO(nn.Module):
    """Lift, `depth` kernel convolutions, projection.

    h_i' = W h_i + b + mean_{j -> i} κ(x_j, x_i, f_j, f_i) h_j       κ an MLP to d x d matrices
    GELU between the convolutions.

    The kernels are never formed. The last layer of the MLP, K, is linear, so it can wait until the sum over
    the edges is taken:  Σ_j K(a_ij) h_j = K(Σ_j a_ij ⊗ h_j), with a_ij the last hidden layer at edge (j, i).
    With D neighbours and k channels of a_ij that takes D d / (D + d) times fewer products, and d² / k times
    less memory where there are at least d neighbours.
    Anandkumar et al., Neural Operator: Graph Kernel Network, 2020; parity with the elasticity script of
    github.com/neuraloperator/Geo-FNO, whose kernel sees the coordinates only (its data has no features).

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels d.
        depth: Kernel convolutions.
        kernel_width: Channels of the last hidden layer of the kernel MLP; the first has half as many.
        head_hidden: Hidden width of the projection.
        radius: In the units of the coordinates: a point gathers from the 32 nearest within it. By default
            from its neighbours in the mesh, or from the 16 nearest points where there is none.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 32,
        depth: int = 4,
        kernel_width: int = 128,
        head_hidden: int = 128,
        radius: float | None = None,
    ) -> None:
        super().__init__()
        if radius is not None and not radius > 0:
            raise LrsaError(f"a radius of {radius} joins no points: above 0, in the units of the coordinates")
        self.needs = Needs(edges=Edges(radius))
        self.coord_dim, self.in_features = coord_dim, in_features
        inputs = coord_dim + in_features
        self.lift = nn.Linear(inputs, width)
        self.convs = nn.ModuleList(KernelConv(inputs, width, kernel_width) for _ in range(depth))
        self.project = nn.Sequential(
            nn.Linear(width, head_hidden), nn.GELU(), nn.Linear(head_hidden, out_features)
        )

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = context or Context()
        cases = BatchLayout.of(x, context)
        neighbourhoods = Neighbourhoods(cases.graph(context, "GNO"))
        a = cases.pack(point_features(x, f, self.coord_dim, self.in_features))
        h = self.lift(a)
        for k, conv in enumerate(self.convs):
            h = conv(h if k == 0 else nn.functional.gelu(h), a, neighbourhoods)
        return cases.unpack(self.project(h))


class Neighbourhoods:
    """The incoming edges of every point side by side; points sorted by degree, so that little is padded."""

    def __init__(self, graph: Graph) -> None:
        self.source, self.starts = graph.source, graph.starts
        self.degree, self.order = torch.sort(graph.degree, descending=True, stable=True)
        self.back = torch.argsort(self.order)

    def chunks(self, rows: int, width: int) -> list[slice]:
        """Runs of points in the sorted order, of at most so many edges with padding, or channels."""
        degrees, runs, i = self.degree.tolist(), [], 0
        while i < len(degrees):
            run = slice(i, min(i + max(1, rows // max(width, degrees[i])), len(degrees)))
            runs.append(run)
            i = run.stop
        return runs

    def edges(self, run: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Targets (n,), their sources (n, D), and which of these are edges (n, D)."""
        target, degree = self.order[run], self.degree[run]
        place = torch.arange(int(degree[0]), device=degree.device)
        there = place < degree[:, None]
        index = torch.where(there, self.starts[target][:, None] + place, 0)
        return target, self.source[index], there


class KernelConv(nn.Module):
    """W h_i + b + mean_{j -> i} κ(a_j, a_i) h_j."""

    matrices: ClassVar[Declared] = {"root": whole}

    def __init__(self, inputs: int, width: int, kernel_width: int) -> None:
        super().__init__()
        bound = width**-0.5
        self.width = width
        self.kernel = mlp(2 * inputs, kernel_width // 2, kernel_width, width * width)
        self.root = nn.Parameter(torch.empty(width, width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, h: Tensor, a: Tensor, neighbourhoods: Neighbourhoods) -> Tensor:
        """h (n, d), a (n, p + c) -> (n, d)."""
        last = self.kernel[-1]
        assert isinstance(last, nn.Linear)
        runs = neighbourhoods.chunks(max(1, CHUNK // last.in_features), self.width)
        means = over_chunks(lambda rows: self._mean(h, a, neighbourhoods, runs[rows.start]), len(runs), 1)
        return torch.cat(means)[neighbourhoods.back] + h @ self.root + self.bias

    def _mean(self, h: Tensor, a: Tensor, neighbourhoods: Neighbourhoods, run: slice) -> Tensor:
        target, source, there = neighbourhoods.edges(run)  # (n,), (n, D), (n, D)
        hidden, last = self.kernel[:-1], self.kernel[-1]
        assert isinstance(last, nn.Linear)
        ends = torch.cat([a[source], a[target][:, None].expand(-1, source.shape[1], -1)], dim=-1)
        senders = h.index_select(0, source.flatten()).view(*source.shape, self.width) * there[..., None].to(
            h.dtype
        )
        outer = hidden(ends).transpose(1, 2) @ senders  # (n, k, d): Σ_j a_ij ⊗ h_j
        matrices = last.weight.view(self.width, self.width, -1).permute(2, 0, 1)  # (k, d, d')
        total = outer.flatten(1) @ matrices.flatten(0, 1)
        total = total + senders.sum(1) @ last.bias.view(self.width, self.width)
        return total / there.sum(1, keepdim=True).clamp(min=1).to(h.dtype)


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": {"coord_dim": 2, "in_features": 0, "out_features": 1},
    "shapenet-car": {"coord_dim": 3, "in_features": 4, "out_features": 4},
    "airfrans": {"coord_dim": 2, "in_features": 5, "out_features": 4},
}
"""The elasticity script of Geo-FNO (571,617 parameters); the industrial cases are nowhere published, and are
given the same sizes."""
