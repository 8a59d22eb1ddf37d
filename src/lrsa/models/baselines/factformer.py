"""FactFormer: a Transformer of axial factorised attention (Li et al. 2023, arXiv 2305.17560).

Our own reading of the paper; there is no reference file to compare with.
"""

from lrsa.models.attention import FFN
from lrsa.models.mixers.factformer import FactorisedAttention
from lrsa.models.operator import Backbone


class FactFormer(Backbone):
    """Pre-norm blocks in which every grid axis has its own instance-based kernel.

    h ← h + W₂ GELU(W₁ InstanceNorm(κ¹ ⋯ κⁿ v)),  h ← h + FFN(Norm h),  κᵐ = (R q)(R k)ᵀ / S_m

    The map from inputs to fields at one time; the latent time marching of the paper's roll-outs is left
    out, and the paper's data sets are not among our benchmarks, hence no presets.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Blocks L.
        heads: Attention heads.
        axes: Axes of the structured grid.
        kernel_multiplier: Width of queries and keys, in units of the width of a head.
        ffn_hidden: Hidden width of the point FFN (default: twice the width).
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 4,
        heads: int = 8,
        axes: int = 2,
        kernel_multiplier: int = 2,
        ffn_hidden: int | None = None,
        time: bool = False,
    ) -> None:
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lambda: FactorisedAttention(width, heads, axes, kernel_multiplier),
            width=width,
            depth=depth,
            ffn=lambda: FFN(width, ffn_hidden or 2 * width),
            time=time,
        )


PRESETS: dict[str, dict[str, object]] = {}
"""None published for our benchmarks."""
