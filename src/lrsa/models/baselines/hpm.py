"""HPM as published: Yue et al., "Holistic Physics Mixer", 2024; reference implementation
https://github.com/yuexihang/HPM."""

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.baselines.skeleton import (
    Position,
    TransolverSkeleton,
    initialise,
    preset,
    reference_position,
)
from lrsa.models.domains import CrossingBlock, DomainMix, domain_of
from lrsa.models.mixers.eigenbasis_gated import GatedEigenbasis, GridGatedEigenbasis, PlainEigenbasis
from lrsa.models.mixers.transolver import GRID_CLAMP
from lrsa.models.template import GlobalMix


class HPM(TransolverSkeleton):
    """HPM: Transolver's skeleton around a spectral transform that every point re-weights.

    Φ = E ⊙ softmax over frequencies of W_g(H W_x)/τ,  Z = Φᵀ H W_f,  ΔH = (Φ LayerNorm(Z) W) W_O

    E are Laplacian eigenvectors of the mesh (`Context.basis`), each point's row of norm 1. On irregular
    points all maps are linear. On structured grids W_f and W_x are convolutions and τ is clamped; unless
    the convolutions are 1x1, that form needs its full grid. Irregular models add a learned placeholder to
    every lifted point, structured ones only if there are no input features.

    With inputs at some points and outputs at others, one block crosses: Φ are then the eigenvectors
    themselves, of the inputs in Z and of the outputs in ΔH, and h' = ΔH without residual and MLP.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and frequency.
        depth: Blocks L.
        heads: Heads.
        rank: Frequencies K, that is eigenvectors.
        mlp_ratio: Hidden width of the point MLP over the width.
        structured: The form for structured grids.
        kernel_size: Size of the convolutions of the structured form.
        coordinates: Feed the position to the lift; the published irregular models do not.
        reference: Anchors per axis of the reference-distance ("unified") positions on the index grid, which
            replace the coordinates; 0 feeds the coordinates.
        eigen_positions: Eigenvectors fed to the lift as positions.
        time: Condition on the time of the sample.
        domain_change: The block, counted from 0, that crosses from the points that give inputs to the others;
            0: all points are one domain.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 8,
        heads: int = 8,
        rank: int = 128,
        mlp_ratio: int = 1,
        structured: bool = False,
        kernel_size: int = 3,
        coordinates: bool = True,
        reference: int = 0,
        eigen_positions: int = 0,
        time: bool = False,
        domain_change: int = 0,
    ) -> None:
        if not (coordinates or eigen_positions or in_features):
            raise LrsaError("HPM has no input: no features, coordinates=false and eigen_positions=0")
        if not 0 <= domain_change < depth or (structured and domain_change):
            raise LrsaError(
                f"HPM has blocks 0 to {depth - 1}, and on structured grids one domain: domain_change is"
                f" {domain_change}"
            )
        pointwise = not structured or kernel_size == 1
        position = reference_position(coord_dim, reference, ()) if coordinates else None

        def mixer() -> GlobalMix:
            if pointwise:
                return GatedEigenbasis(width, heads, rank, GRID_CLAMP if structured else None)
            return GridGatedEigenbasis(width, heads, rank, kernel_size)

        super().__init__(
            coord_dim,
            in_features,
            out_features,
            mixer,
            width=width,
            depth=depth,
            mlp_ratio=mlp_ratio,
            placeholder=not (structured and in_features),
            position=EigenPositions(position, eigen_positions),
            time=time,
        )
        for block in self.each_block():
            # Published as 1x1 convolutions, which keep PyTorch's initialisation.
            if structured and isinstance(block.mix, GatedEigenbasis):
                block.mix.project.reset_parameters()
        if domain_change:
            crossing = PlainEigenbasis(width, heads, rank).apply(initialise)
            for k, block in enumerate(self.each_block()):
                mix = crossing if k == domain_change else block.low_rank
                block.mix = DomainMix(mix, domain_of(k, domain_change))
            self.blocks[domain_change] = CrossingBlock(width, DomainMix(crossing, "inputs"), nn.LayerNorm)


class EigenPositions(Position):
    """Another position, or none, and the first eigenvectors at each point."""

    def __init__(self, position: Position | None, eigenvectors: int) -> None:
        super().__init__((position.features if position else 0) + eigenvectors)
        self.position, self.eigenfunctions = position, eigenvectors
        self.needs = (position.needs if position else Needs()) | Needs(eigenfunctions=eigenvectors)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        place = x[..., :0] if self.position is None else self.position(x, context)
        if not self.eigenfunctions:
            return place
        basis = context.need("basis", "HPM")
        if basis.shape[-1] < self.eigenfunctions:
            raise LrsaError(
                f"eigen_positions is {self.eigenfunctions}, but the data has {basis.shape[-1]} eigenvectors"
            )
        return torch.cat([place, basis[..., : self.eigenfunctions].to(x.dtype)], dim=-1)


PRESETS: dict[str, dict[str, object]] = {
    "navier-stokes": preset(2, 10, 1, 256, 8, 128, 1, {"structured": True, "reference": 8}),
    "plasticity": preset(2, 1, 4, 128, 8, 128, 1, {"structured": True, "time": True}),
    "airfoil": preset(2, 0, 1, 128, 8, 128, 1, {"structured": True, "kernel_size": 1}),
    "darcy": preset(2, 1, 1, 128, 8, 128, 1, {"structured": True, "reference": 8}),
    "pipe": preset(2, 0, 1, 128, 8, 128, 1, {"structured": True}),  # no script is released: as for Plasticity
    "irregular-darcy": preset(2, 1, 1, 128, 4, 32, 1, {"coordinates": False, "eigen_positions": 32}),
    "pipe-turbulence": preset(2, 1, 1, 128, 8, 64, 1, {"coordinates": False}),
    "heat-transfer": preset(
        3, 1, 1, 32, 4, 128, 1, {"heads": 1, "coordinates": False, "eigen_positions": 64, "domain_change": 1}
    ),
    "composite": preset(3, 1, 1, 128, 4, 64, 1, {"coordinates": False}),
}
