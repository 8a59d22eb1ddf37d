"""FLARE: fast low-rank attention routing engine (Puri et al. 2025, arXiv 2508.12594).

Reference: github.com/vpuri3/FLARE.py, with which `tests/test_parity_flare.py` compares.
"""

from typing import Any

from torch import nn

from lrsa.models.baselines.seeds import unused_head, unused_lift
from lrsa.models.block import Block
from lrsa.models.encoding import TimeEncoding
from lrsa.models.mixers.flare import FlareAttention, ResidualMLP
from lrsa.models.operator import NeuralOperator


class FLARE(NeuralOperator):
    """The tied, latent-mixer-free relative of LRSA, with residual MLPs throughout.

    h = MLP([f, x]);  h ← h + Flare(Norm h),  h ← h + MLP(Norm h) for L blocks;  u = MLP(Norm h)

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d.
        depth: Blocks L.
        heads: Attention heads.
        rank: Latents M per head.
        kv_layers: Middle layers of the key and value MLPs.
        ffn_layers: Middle layers of the point FFN.
        qk_norm: Normalise queries and keys.
        time: Condition on the time of the sample.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 64,
        depth: int = 8,
        heads: int = 8,
        rank: int = 64,
        kv_layers: int = 3,
        ffn_layers: int = 3,
        qk_norm: bool = False,
        time: bool = False,
    ) -> None:
        def block() -> Block:
            mix = FlareAttention(width, heads, rank, kv_layers, kv_layers, qk_norm)
            return Block(width, mix, ResidualMLP(width, width, ffn_layers))

        unused_lift(coord_dim + in_features, width)
        encoding = TimeEncoding(width) if time else None
        unused_head(width, out_features)
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            time=encoding,
            lift_ffn=ResidualMLP(coord_dim + in_features, width, 2, input_residual=False),
            blocks=[block() for _ in range(depth)],
            norm=nn.LayerNorm(width),
            head=ResidualMLP(width, width, 2, out_features, output_residual=False),
        )
        self.apply(_initialise)


def _initialise(module: nn.Module) -> None:
    """The published start: weights N(0, 0.02), biases 0. The latents keep their own N(0, 0.1)."""
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight, std=0.02)
        nn.init.zeros_(module.bias)


def _preset(in_features: int, heads: int, rank: int) -> dict[str, Any]:
    data = {"coord_dim": 2, "in_features": in_features, "out_features": 1}
    return {**data, "width": 64, "depth": 8, "heads": heads, "rank": rank}


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": _preset(0, 8, 64),
    "darcy": _preset(1, 16, 256),
    "airfoil": _preset(0, 8, 256),
    "pipe": _preset(0, 8, 128),
}
"""The published configurations among our benchmarks."""
