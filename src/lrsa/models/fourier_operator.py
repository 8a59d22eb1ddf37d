"""LRSA with Fourier filters, for structured grids: beyond the paper, and under a name of its own."""

from lrsa.models.attention import LowRankSpatialAttention
from lrsa.models.block import FourierFFN
from lrsa.models.operator import Backbone


class LRSAFourier(Backbone):
    """LRSA whose point FFN sees all of the grid through filters in Fourier space, channel by channel.

    The bottleneck of rank M mixes what the filters, which are the same everywhere, cannot: what depends on
    the place and on the input. They in turn carry the fine scales, which M latents cannot hold.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and latent.
        depth: Blocks L.
        heads: Attention heads.
        rank: Latents M, the rank of the global interaction.
        ffn_hidden: Hidden width of the point FFN (default: the width).
        modes: Frequencies of the filters on each side of zero, per axis.
        periodic: The grid closes on itself, for the 3x3 convolution beside the filters.
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
        rank: int = 64,
        ffn_hidden: int | None = None,
        modes: int = 12,
        periodic: bool = False,
        frequencies: int = 0,
        time: bool = False,
    ) -> None:
        hidden = ffn_hidden or width
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lambda: LowRankSpatialAttention(width, heads, rank, hidden),
            width=width,
            depth=depth,
            ffn=lambda: FourierFFN(width, hidden, modes, periodic),
            frequencies=frequencies,
            time=time,
        )
