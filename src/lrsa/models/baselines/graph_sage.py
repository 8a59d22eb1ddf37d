"""GraphSAGE: neighbourhood means (Hamilton et al. 2017), as the AirfRANS benchmark runs it."""

from typing import ClassVar

from torch import Tensor, nn

from lrsa.context import Context, Edges, Needs
from lrsa.models.baselines.graph import BatchLayout, Graph, GraphNorm, mlp, point_features
from lrsa.models.hidden import Declared, whole


class GraphSAGE(nn.Module):
    """Encoder, graph convolutions with batch norm between them, decoder.

    h_i' = W mean_{j -> i} h_j + b + W₀ h_i                        one convolution
    u = Decoder(Conv(ReLU(Norm(Conv(... Encoder([x, f])))))        MLPs with ReLU

    The norm takes the statistics of the points of each case, also after training. Hamilton, Ying, Leskovec,
    NeurIPS 2017; parity with github.com/Extrality/AirfRANS.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        width: Channels of the hidden graph convolutions.
        depth: Graph convolutions before the last one.
        code: Channels between the MLPs and the graph convolutions.
        encoder_hidden: Hidden widths of the encoder.
        decoder_hidden: Hidden widths of the decoder.
        norm: Batch norm between the convolutions.
    """

    needs = Needs(edges=Edges())
    matrices: ClassVar[Declared] = {"last.*.weight": whole}

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 64,
        depth: int = 3,
        code: int = 8,
        encoder_hidden: tuple[int, ...] = (64, 64),
        decoder_hidden: tuple[int, ...] = (64, 64),
        norm: bool = True,
    ) -> None:
        super().__init__()
        self.coord_dim, self.in_features = coord_dim, in_features
        self.encoder = mlp(coord_dim + in_features, *encoder_hidden, code)
        self.convs = nn.ModuleList(SAGEConv(width if k else code, width) for k in range(depth))
        self.norms = nn.ModuleList(GraphNorm(width) for _ in range(depth if norm else 0))
        self.last = SAGEConv(width if depth else code, code)
        self.decoder = mlp(code, *decoder_hidden, out_features)

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = context or Context()
        cases = BatchLayout.of(x, context)
        graph = cases.graph(context, "GraphSAGE")
        h = self.encoder(cases.pack(point_features(x, f, self.coord_dim, self.in_features)))
        for k, conv in enumerate(self.convs):
            h = conv(h, graph)
            h = (self.norms[k](h, cases.counts) if self.norms else h).relu()
        return cases.unpack(self.decoder(self.last(h, graph)))


class SAGEConv(nn.Module):
    """W mean_{j -> i} h_j + b + W₀ h_i."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(width, out)
        self.self = nn.Linear(width, out, bias=False)

    def forward(self, h: Tensor, graph: Graph) -> Tensor:
        """(n, d) -> (n, d')."""
        lin = self.neighbours
        if lin.out_features >= lin.in_features:
            return lin(graph.mean(h)) + self.self(h)
        # W mean(h) = mean(W h): the edges carry the narrower of the two.
        return graph.mean(h @ lin.weight.T) + lin.bias + self.self(h)


PRESETS: dict[str, dict[str, object]] = {
    "airfrans": {"coord_dim": 2, "in_features": 5, "out_features": 4},
    "shapenet-car": {
        "coord_dim": 3,
        "in_features": 4,
        "out_features": 4,
        "width": 128,
        "depth": 8,
        "code": 128,
        "encoder_hidden": (256,),
        "decoder_hidden": (256,),
    },
}
"""AirfRANS benchmark (29,204 parameters); Neural-Solver-Library (367,876 with its 7 features)."""
