"""Graph U-Net: GraphSAGE on a pyramid of random point sets, as the AirfRANS benchmark runs it."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from lrsa.context import Context, Edges, Needs
from lrsa.errors import LrsaError
from lrsa.geometry.neighbours import Level, pooling_levels
from lrsa.models.baselines.graph import BatchLayout, Graph, GraphNorm, mlp, point_features
from lrsa.models.baselines.graph_sage import SAGEConv

REMEMBERED = 2**30
"""Bytes of pooling levels that a model remembers, so that a case that comes again is not searched again."""


class GraphUNet(nn.Module):
    """Encoder, L levels down by random pooling, L levels up by nearest neighbours, decoder.

    down   h^{k+1} = ReLU(Norm(Conv(h^k at the kept points)))       widths w, 2w, 4w ...
    up     g^{k}   = ReLU(Norm(Conv([g^{k+1} at the nearest kept point, h^k])))     no ReLU at the finest

    with the graph convolution of `GraphSAGE`. The finest graph is `Context.edges`; every coarser one keeps a
    share of the points and joins those within a radius. The published code draws the kept points anew in
    every call and takes two of the standardised features as positions; here the draw is fixed by the
    coordinates of the points, which are the positions. Gao, Ji, ICML 2019; parity with
    github.com/Extrality/AirfRANS.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels w of the finest level; each coarser one has twice as many.
        code: Channels between the MLPs and the graph convolutions.
        radii: Radius of the graph of every coarser level, in the coordinates that the model sees.
        pool_ratio: Share of the points that a level keeps.
        neighbours: Most neighbours of a point on the coarser levels.
        encoder_hidden: Hidden widths of the encoder.
        decoder_hidden: Hidden widths of the decoder.
        norm: Batch norm after every graph convolution.
        residual: Add the encoder's output to the decoder's input.
    """

    needs = Needs(edges=Edges())

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 8,
        code: int = 8,
        radii: tuple[float, ...] = (0.05, 0.2, 0.5, 1.0),
        pool_ratio: float = 0.5,
        neighbours: int = 64,
        encoder_hidden: tuple[int, ...] = (64, 64),
        decoder_hidden: tuple[int, ...] = (64, 64),
        norm: bool = True,
        residual: bool = False,
    ) -> None:
        super().__init__()
        if not 0 < pool_ratio <= 1 or not radii or not all(radius > 0 for radius in radii):
            raise LrsaError(
                f"pool_ratio {pool_ratio} and radii {radii} make no coarser levels: a share above 0 and up to"
                " 1, and one radius above 0 or more"
            )
        self.coord_dim, self.in_features, self.residual = coord_dim, in_features, residual
        self.pooling = Pooling(pool_ratio, radii, neighbours)
        widths = [width * 2**k for k in range(len(radii) + 1)]
        ups = [widths[k] if k else code for k in range(len(radii))]
        self.encoder = mlp(coord_dim + in_features, *encoder_hidden, code)
        self.down = nn.ModuleList(
            SAGEConv(widths[k - 1] if k else code, widths[k]) for k in range(len(widths))
        )
        self.up = nn.ModuleList(SAGEConv(widths[k] + widths[k + 1], ups[k]) for k in range(len(radii)))
        self.down_norms = nn.ModuleList(GraphNorm(w) if norm else _NoNorm() for w in widths)
        self.up_norms = nn.ModuleList(GraphNorm(w) if norm else _NoNorm() for w in ups)
        self.decoder = mlp(code, *decoder_hidden, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = context or Context()
        cases = BatchLayout.of(x, context)
        positions = cases.pack(x).detach().float().cpu().numpy()
        levels, counts = self.pooling(np.split(positions, np.cumsum(cases.counts)[:-1]), x.device)
        graph = cases.graph(context, "Graph U-Net")
        h = cases.pack(point_features(x, f, self.coord_dim, self.in_features))
        return cases.unpack(self._run(h, graph, levels, [cases.counts, *counts]))

    def forward_levels(self, x: Tensor, f: Tensor | None, edges: Tensor, levels: Sequence[Level]) -> Tensor:
        """One case, x (1, N, p) and f (1, N, c), on given levels (of tensors) -> u (1, N, o)."""
        if len(x) != 1 or len(levels) != len(self.up):
            raise LrsaError(f"forward_levels takes one case and {len(self.up)} levels below the finest")
        h = point_features(x, f, self.coord_dim, self.in_features)[0]
        counts = [(len(h),), *((len(level.kept),) for level in levels)]
        return self._run(h, Graph(edges, len(h)), levels, counts)[None]

    def _run(
        self, h: Tensor, finest: Graph, levels: Sequence[Level], counts: Sequence[Sequence[int]]
    ) -> Tensor:
        """h (n, p + c), the coarser levels, the points of every case on every level -> (n, o)."""
        graphs = [finest, *(Graph(level.edges, len(level.kept)) for level in levels)]
        code = g = self.encoder(h)
        skips: list[Tensor] = []
        for k, graph in enumerate(graphs):
            g = g if k == 0 else g[levels[k - 1].kept]
            g = self.down_norms[k](self.down[k](g, graph), counts[k]).relu()
            skips.append(g)
        for k in reversed(range(len(levels))):
            g = torch.cat([g.index_select(0, levels[k].nearest), skips[k]], dim=1)
            g = self.up_norms[k](self.up[k](g, graphs[k]), counts[k])
            g = g.relu() if k else g
        return self.decoder(g + code if self.residual else g)


class Pooling:
    """The coarser levels of a batch, case by case: searched once, remembered while there is room."""

    def __init__(self, ratio: float, radii: Sequence[float], neighbours: int) -> None:
        self.ratio, self.radii, self.neighbours = ratio, tuple(radii), neighbours
        self._memory: OrderedDict[bytes, list[Level]] = OrderedDict()
        self._bytes = 0

    def __call__(
        self, positions: Sequence[np.ndarray], device: torch.device
    ) -> tuple[list[Level], list[tuple[int, ...]]]:
        """(n_b, p) of every case -> the levels of their union, and the points of every case on each."""
        cases = [self._case(x) for x in positions]
        levels: list[Level] = []
        finer = tuple(len(x) for x in positions)
        counts: list[tuple[int, ...]] = []
        for k in range(len(self.radii)):
            parts = [case[k] for case in cases]
            counts.append(tuple(len(part.kept) for part in parts))
            here = _starts(counts[-1])
            levels.append(
                Level(
                    _join([part.kept for part in parts], _starts(finer), device),
                    _join([part.nearest for part in parts], here, device),
                    _join([part.edges for part in parts], here, device),
                )
            )
            finer = counts[-1]
        return levels, counts

    def _case(self, x: np.ndarray) -> list[Level]:
        key = hashlib.blake2b(np.ascontiguousarray(x).tobytes()).digest()
        if key in self._memory:
            self._memory.move_to_end(key)
            return self._memory[key]
        levels = [
            Level(*(part.astype(np.int32) for part in (level.kept, level.nearest, level.edges)))
            for level in pooling_levels(x, self.ratio, self.radii, self.neighbours)
        ]
        self._memory[key] = levels
        self._bytes += _size(levels)
        while self._bytes > REMEMBERED and len(self._memory) > 1:
            self._bytes -= _size(self._memory.popitem(last=False)[1])
        return levels


class _NoNorm(nn.Module):
    def forward(self, h: Tensor, counts: Sequence[int]) -> Tensor:
        return h


def _starts(counts: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *counts[:-1]])


def _join(parts: Sequence[np.ndarray], starts: np.ndarray, device: torch.device) -> Tensor:
    shifted = [part.astype(np.int64) + start for part, start in zip(parts, starts, strict=True)]
    return torch.from_numpy(np.concatenate(shifted, axis=-1)).to(device)


def _size(levels: Sequence[Level]) -> int:
    return sum(level.kept.nbytes + level.nearest.nbytes + level.edges.nbytes for level in levels)


PRESETS: dict[str, dict[str, object]] = {
    "airfrans": {"coord_dim": 2, "in_features": 5, "out_features": 4},
    "shapenet-car": {
        "coord_dim": 3,
        "in_features": 4,
        "out_features": 4,
        "width": 16,
        "code": 16,
        "encoder_hidden": (32,),
        "decoder_hidden": (32,),
    },
}
"""AirfRANS benchmark (65,820 parameters); Neural-Solver-Library (221,780)."""
