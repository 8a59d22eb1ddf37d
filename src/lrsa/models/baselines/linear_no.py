"""LinearNO as published: Hu et al., "Transolver is a Linear Transformer: Revisiting Physics-Attention through
the Lens of Linear Attention", 2025; reference implementation https://github.com/HiPRL/LinearNO."""

from torch import nn

from lrsa.models.baselines.skeleton import TransolverSkeleton, preset, reference_position
from lrsa.models.mixers.linear_no import GridLinearAttention, LinearAttention
from lrsa.models.template import GlobalMix


class LinearNO(TransolverSkeleton):
    """LinearNO: Transolver's skeleton around linear attention with M features, and no latent mixing.

    Y = H W,  ΔH = Out(softmax_M(Y W_Q/τ_Q) (softmax_N(Y W_K/τ_K)ᵀ Y W_V))

    Its published variants: "linear" (neither option), "temp" (temperature), "conv" (structured),
    "conv_temp" (both). A learned placeholder is added to every lifted point if there are no input features.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and latent.
        depth: Blocks L.
        heads: Attention heads.
        rank: Features M of queries and keys.
        mlp_ratio: Hidden width of the point MLP over the width.
        structured: The form for structured grids: W is a 3x3 convolution, Out has two layers.
        temperature: Learned temperatures of queries and keys, one per head.
        temperature_range: Range to which they are clamped.
        deep_output: Out has two layers on irregular points too.
        reference: Anchors per axis of the reference-distance ("unified") positions; 0 feeds the coordinates.
        reference_box: Low and high of each axis: the anchors stand in this box, in the units of the
            coordinates, and the distances are added to the coordinates. Empty: the distances are taken on
            the index grid and replace the coordinates.
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
        mlp_ratio: int = 1,
        structured: bool = False,
        temperature: bool = True,
        temperature_range: tuple[float, float] = (0.01, 1.0),
        deep_output: bool = False,
        reference: int = 0,
        reference_box: tuple[float, ...] = (),
        time: bool = False,
    ) -> None:
        clamp = temperature_range if temperature else None

        def mixer() -> GlobalMix:
            if structured:
                return GridLinearAttention(width, heads, rank, clamp)
            return LinearAttention(width, heads, rank, clamp, deep_output)

        super().__init__(
            coord_dim,
            in_features,
            out_features,
            mixer,
            width=width,
            depth=depth,
            mlp_ratio=mlp_ratio,
            placeholder=not in_features,
            position=reference_position(coord_dim, reference, reference_box),
            time=time,
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)


_CAR = {"deep_output": True, "temperature_range": (0.1, 2.0)}
_AIRFRANS = {"temperature": False, "reference": 8, "reference_box": (-2.0, 4.0, -1.5, 1.5)}

PRESETS: dict[str, dict[str, object]] = {
    "elasticity": preset(2, 0, 1, 128, 8, 64, 1),
    "navier-stokes": preset(2, 10, 1, 256, 8, 32, 2, {"temperature": False, "reference": 10}),
    "plasticity": preset(2, 1, 4, 128, 8, 64, 1, {"structured": True, "temperature": False, "time": True}),
    "airfoil": preset(2, 0, 1, 128, 8, 64, 1, {"structured": True}),
    "pipe": preset(2, 0, 1, 128, 8, 64, 1, {"structured": True}),
    "darcy": preset(2, 1, 1, 128, 8, 64, 1, {"structured": True}),
    "shapenet-car": preset(3, 4, 4, 256, 8, 32, 2, _CAR),
    "airfrans": preset(2, 5, 4, 256, 8, 32, 2, _AIRFRANS),
}
