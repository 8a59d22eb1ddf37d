"""Transolver++ as published: Luo et al., "Transolver++: An Accurate Neural Solver for PDEs on Million-Scale
Geometries", ICML 2025; reference implementation https://github.com/thuml/Transolver_plus."""

from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.models.baselines.skeleton import Coordinates, TransolverSkeleton, initialise, preset
from lrsa.models.mixers.transolver_plus import EideticAttention


class TransolverPlus(TransolverSkeleton):
    """Transolver++: physics attention with one projection, and slice weights sharpened at every point.

    v = H W_x,  τ_n = max(τ₀ + MLP(v_n), 0.01),  w = softmax over slices of (W_s v + g)/τ,  then as Transolver

    The Gumbel noise g is added in training only. (The reference adds it at evaluation too, so that its
    predictions are random.) A learned placeholder is added to every lifted point, and the embedded
    parameters of the whole sample where there are any.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and slice.
        depth: Blocks L.
        heads: Attention heads.
        rank: Slices M.
        mlp_ratio: Hidden width of the point MLP over the width.
        globals_dim: Parameters of the whole sample (`Context.globals`) the model is conditioned on.
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
        globals_dim: int = 0,
        time: bool = False,
    ) -> None:
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lambda: EideticAttention(width, heads, rank),
            width=width,
            depth=depth,
            mlp_ratio=mlp_ratio,
            placeholder=True,
            position=Coordinates(coord_dim),
            time=time,
        )
        self.embedding = nn.Linear(globals_dim, width) if globals_dim else None
        if self.embedding is not None:
            initialise(self.embedding)

    @property
    def needs(self) -> Needs:
        """Without which the model cannot run."""
        return super().needs | Needs(globals=self.embedding is not None)

    def lift(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, p), (B, N, c) -> (B, N, d)."""
        h = super().lift(x, f, context)
        if self.embedding is None:
            return h
        return h + self.embedding(context.need("globals", "the condition of Transolver++"))[:, None]


PRESETS: dict[str, dict[str, object]] = {
    # No configuration of the standard benchmarks is released: these are Transolver's sizes.
    "elasticity": preset(2, 0, 1, 128, 8, 64, 1),
    "shapenet-car": preset(3, 4, 4, 256, 8, 32, 2),
}
