"""Perceiver IO: read into latents, think there, read out (Jaegle et al. 2021, arXiv 2107.14795).

Our own reading of the paper; there is no reference file to compare with.
"""

import torch
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.attention import FFN, Attention, SoftmaxPartial
from lrsa.models.baselines.lno import LatentBlock, OnlyMix
from lrsa.models.baselines.seeds import unused_lift
from lrsa.models.encoding import PositionalEncoding, TimeEncoding
from lrsa.models.operator import NeuralOperator
from lrsa.models.template import LowRankMix


class PerceiverIO(NeuralOperator):
    """The latents are the backbone: everything an output knows of other points has passed through them.

    h = W [f, PE(x)]
    Z = P + Attn(Norm P, Norm h),  Z ← Z + FFN(Norm Z),  Z ← L pre-norm Transformer blocks(Z)
    y = Attn(Norm h, Norm Z),  y ← y + FFN(Norm y),  u = W Norm y

    The output queries are the embedded points, as in the paper's optical flow; no residual leads around
    the latents, neither to the queries nor to the input.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of points and latents.
        depth: Transformer blocks on the latents.
        heads: Attention heads.
        rank: Latents M.
        ffn_hidden: Hidden width of the FFNs (default: the width).
        frequencies: Frequencies of the positional encoding; 0 is the raw coordinate.
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 8,
        heads: int = 8,
        rank: int = 256,
        ffn_hidden: int | None = None,
        frequencies: int = 8,
        time: bool = False,
    ) -> None:
        mix = LatentBackbone(width, depth, heads, rank, ffn_hidden or width)
        position = PositionalEncoding(coord_dim, frequencies)
        inputs = position.features + in_features
        unused_lift(inputs, width)
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            position=position,
            time=TimeEncoding(width) if time else None,
            norm=nn.LayerNorm(width),
            head=nn.Linear(width, out_features),
            lift_ffn=nn.Linear(inputs, width),
            blocks=[OnlyMix(mix)],
        )


class LatentBackbone(LowRankMix[SoftmaxPartial]):
    """Encoder, latent Transformer and decoder of Perceiver IO, as one compression and one reconstruction."""

    def __init__(self, width: int, depth: int, heads: int, rank: int, hidden: int) -> None:
        super().__init__()
        self.latents = nn.Parameter(0.02 * torch.randn(rank, width))  # P
        self.norm_latents, self.norm_input = nn.LayerNorm(width), nn.LayerNorm(width)
        self.encoder = Attention(width, heads)
        self.norm_ffn, self.ffn = nn.LayerNorm(width), FFN(width, hidden)
        self.transformer = nn.Sequential(*(LatentBlock(width, heads, hidden) for _ in range(depth)))
        self.norm_query, self.norm_source = nn.LayerNorm(width), nn.LayerNorm(width)
        self.decoder = Attention(width, heads)
        self.norm_out, self.ffn_out = nn.LayerNorm(width), FFN(width, hidden)

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, d) points -> what the latents read of them (B, M, d)."""
        return self.encoder(self._queries(h), self.norm_input(h), context.log_measure(h.dtype))

    def partial(self, h: Tensor, x: Tensor, context: Context) -> SoftmaxPartial:
        """The same attention over some of the points."""
        return self.encoder.partial(self._queries(h), self.norm_input(h), context.log_measure(h.dtype))

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) read -> (B, M, d) processed."""
        latents = self.latents + latents
        return self.transformer(latents + self.ffn(self.norm_ffn(latents)))

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, N, d), each point of h by itself."""
        y = self.decoder(self.norm_query(h), self.norm_source(latents))
        return y + self.ffn_out(self.norm_out(y))

    def _queries(self, h: Tensor) -> Tensor:
        return self.norm_latents(self.latents).expand(h.shape[0], -1, -1)


PRESETS: dict[str, dict[str, object]] = {}
"""None published for our benchmarks."""
