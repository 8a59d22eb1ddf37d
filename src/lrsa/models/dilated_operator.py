"""LRSA with dilated filters, for structured grids: beyond the paper, and under a name of its own."""

from lrsa.models.attention import LowRankSpatialAttention
from lrsa.models.block import DilatedFFN
from lrsa.models.operator import Backbone

REACHES = 4
"""How many, each for its share of the channels."""


class LRSADilated(Backbone):
    """LRSA with 3x3 convolutions in front of the point FFN whose neighbours are one point to a quarter of the
    axis away: on 32 points 1, 2, 4 and 8, each in a quarter of the channels.

    F. Yu and V. Koltun, Multi-Scale Context Aggregation by Dilated Convolutions, 2016: there one layer after
    another reaches farther, here each has all reaches. It has as many weights as the filter whose neighbours
    are all next to each other.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and latent.
        depth: Blocks L.
        heads: Attention heads.
        rank: Latents M, the rank of the global interaction.
        ffn_hidden: Hidden width of the point FFN (default: the width).
        periodic: The grid closes on itself, for the convolution.
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
            ffn=lambda: DilatedFFN(width, hidden, REACHES, periodic),
            frequencies=frequencies,
            time=time,
        )
