"""Transolver as published: Wu et al., "Transolver: A Fast Transformer Solver for PDEs on General Geometries",
ICML 2024; reference implementation https://github.com/thuml/Transolver."""

from lrsa.models.baselines.skeleton import TransolverSkeleton, preset, reference_position
from lrsa.models.mixers.transolver import GridPhysicsAttention, PhysicsAttention


class Transolver(TransolverSkeleton):
    """Transolver: pre-norm blocks of physics attention and MLP.

    w = softmax over slices of W_s(H W_x)/τ,  z_m = Σ w_nm (H W_f)_n / Σ w_nm,  Z' = Attn(Z),  ΔH = (w Z') W_O

    On irregular points all maps are linear and the model streams, decodes and takes masks. On structured
    grids, as published, W_f and W_x are 3x3 convolutions and τ is clamped; that form needs its full grid.
    Irregular models add a learned placeholder to every lifted point, structured ones only if there are no
    input features.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and slice.
        depth: Blocks L.
        heads: Attention heads.
        rank: Slices M.
        mlp_ratio: Hidden width of the point MLP over the width.
        structured: The form for structured grids, with 3x3 convolutions.
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
        reference: int = 0,
        reference_box: tuple[float, ...] = (),
        time: bool = False,
    ) -> None:
        mixer = GridPhysicsAttention if structured else PhysicsAttention
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lambda: mixer(width, heads, rank),
            width=width,
            depth=depth,
            mlp_ratio=mlp_ratio,
            placeholder=not (structured and in_features),
            position=reference_position(coord_dim, reference, reference_box),
            time=time,
        )


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": preset(2, 0, 1, 128, 8, 64, 1),
    "navier-stokes": preset(2, 10, 1, 256, 8, 32, 1, {"structured": True, "reference": 8}),
    "plasticity": preset(2, 1, 4, 128, 8, 64, 1, {"structured": True, "time": True}),
    "airfoil": preset(2, 0, 1, 128, 8, 64, 1, {"structured": True}),
    "pipe": preset(2, 0, 1, 128, 8, 64, 2, {"structured": True}),
    "darcy": preset(2, 1, 1, 128, 8, 64, 1, {"structured": True, "reference": 8}),
    "shapenet-car": preset(3, 4, 4, 256, 8, 32, 2),
    "airfrans": preset(2, 5, 4, 256, 8, 32, 2, {"reference": 8, "reference_box": (-2.0, 4.0, -1.5, 1.5)}),
}
