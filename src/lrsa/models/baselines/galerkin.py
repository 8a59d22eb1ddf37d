"""Galerkin Transformer (Cao 2021, "Choose a Transformer: Fourier or Galerkin", arXiv 2105.14995).

Our own reading of the paper; there is no reference file to compare with.
"""

from torch import nn

from lrsa.models.attention import FFN
from lrsa.models.baselines.seeds import unused_head, unused_lift
from lrsa.models.block import Block
from lrsa.models.encoding import TimeEncoding
from lrsa.models.mixers.galerkin import GalerkinAttention
from lrsa.models.operator import NeuralOperator


class GalerkinTransformer(NeuralOperator):
    """Blocks without normalisation around them: the LayerNorms sit on keys and values.

    h = W [f, x];  h ← h + Galerkin(h),  h ← h + FFN(h) for L blocks;  u = FFN(h)
    Galerkin(h) = concat over heads of [x, Q] ([x, K̃]ᵀ [x, Ṽ]) / N, through an output projection

    This is the paper's encoder with its pointwise decoder, which acts on any point set. The convolutional
    down- and upscalers and the spectral decoder of its Darcy example need a regular grid and are left out,
    hence no presets.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Blocks L.
        heads: Attention heads.
        ffn_hidden: Hidden width of the point FFN (default: twice the width).
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 6,
        heads: int = 4,
        ffn_hidden: int | None = None,
        time: bool = False,
    ) -> None:
        def block() -> Block:
            """Without normalisation, so that the scale of h means something."""
            mix = GalerkinAttention(width, heads, coord_dim)
            return Block(width, mix, FFN(width, ffn_hidden or 2 * width), norm=nn.Identity)

        unused_lift(coord_dim + in_features, width)
        encoding = TimeEncoding(width) if time else None
        unused_head(width, out_features)
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            time=encoding,
            lift_ffn=nn.Linear(coord_dim + in_features, width),
            blocks=[block() for _ in range(depth)],
            head=FFN(width, width, out_features),
        )


PRESETS: dict[str, dict[str, object]] = {}
"""None published for this form of the model."""
