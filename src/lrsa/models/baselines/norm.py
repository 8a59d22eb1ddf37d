"""NORM: a neural operator in the eigenfunctions of the Laplace-Beltrami operator."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from lrsa.context import Context
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN
from lrsa.models.block import Block
from lrsa.models.domains import CrossingBlock, DomainMix, domain_of
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.operator import NeuralOperator

PRESETS: dict[str, dict[str, object]] = {
    "irregular-darcy": {"coord_dim": 2, "in_features": 1, "out_features": 1},
    "pipe-turbulence": {"coord_dim": 2, "in_features": 1, "out_features": 1},
    "heat-transfer": {"coord_dim": 3, "in_features": 1, "out_features": 1, "width": 64, "domain_change": 1},
    "composite": {"coord_dim": 3, "in_features": 1, "out_features": 1, "node_index": False},
}
HEAD_HIDDEN = 128


class NORM(NeuralOperator):
    """h' = GELU(Φ G_k Φ⁺ h + W h), without GELU in the last layer; Φ the eigenfunctions, Φ⁺ = (ΦᵀΦ)⁻¹Φᵀ.

    G. Chen et al., Learning neural operators on Riemannian manifolds, 2024; reference gengxiangc/NORM:
    linear lift of the features alone (the geometry enters through Φ), head Linear-GELU-Linear.

    The reference appends the index of each node, scaled to [0, 1], as if it were a coordinate. It has no
    meaning and ties the model to the numbering of the nodes: with it, point sets cannot be streamed.

    With inputs at some points and outputs at others, one layer crosses from the eigenfunctions of the inputs
    to those of the outputs, h' = GELU(Φ_out G_k Φ_in⁺ h). The lift then has a hidden layer, and the layers
    behind the crossing have no GELU.

    Args:
        coord_dim: Coordinates p per point; they are not used.
        in_features: Input features c per point, at least one.
        out_features: Output fields o per point.
        width: Channels d.
        depth: Layers.
        modes: Eigenfunctions K.
        node_index: Append the scaled node index to the features, as published.
        domain_change: The layer, counted from 0, that crosses from the points that give inputs to the others;
            0: all points are one domain.
    """

    renamed: ClassVar[Mapping[str, str]] = {"lift_linear": "lift_ffn"}

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 32,
        depth: int = 4,
        modes: int = 128,
        node_index: bool = True,
        domain_change: int = 0,
    ) -> None:
        if in_features == 0:
            raise LrsaError(
                "NORM maps an input function to an output function, and this data has no features. Use the"
                ' model "hpm", which takes the coordinates too'
            )
        if not 0 <= domain_change < depth:
            raise LrsaError(f"NORM has layers 0 to {depth - 1}, and domain_change is {domain_change}")
        given = in_features + node_index

        def block(k: int) -> Block:
            mix = EigenbasisMix(width, modes)
            if not domain_change:
                return EigenbasisBlock(width, mix, last=k == depth - 1)
            side = DomainMix(mix, domain_of(k, domain_change))
            if k == domain_change:
                return CrossingBlock(width, side, nn.Identity, gelu)
            return EigenbasisBlock(width, side, last=k > domain_change)

        super().__init__(
            coord_dim,
            in_features,
            out_features,
            lift_ffn=FFN(given, width, width) if domain_change else nn.Linear(given, width),
            blocks=[block(k) for k in range(depth)],
            head=FFN(width, HEAD_HIDDEN, out_features),
        )
        self.node_index = node_index

    def lift(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, c) -> (B, N, d)."""
        if f is None or f.shape[-1] != self.in_features:
            given = 0 if f is None else f.shape[-1]
            raise LrsaError(f"the model takes {self.in_features} features per point, not {given}")
        return self.lift_ffn(torch.cat([f, scaled_index(f, context)], dim=-1) if self.node_index else f)

    def check_pointwise(self, wish: str) -> None:
        if self.node_index:
            raise LrsaError(
                f"cannot {wish}: NORM numbers its nodes from first to last. Train with node_index=False"
            )


class EigenbasisBlock(Block):
    """h' = GELU(mix(h) + W h), or without GELU: no norm, no residual."""

    def __init__(self, width: int, mix: EigenbasisMix | DomainMix, last: bool) -> None:
        super().__init__(width, mix, nn.Linear(width, width), norm=nn.Identity)
        self.last = last

    def join(self, h: Tensor, mixed: Tensor, context: Context) -> Tensor:
        total = mixed + self.ffn(h)
        return total if self.last else gelu(total)


def scaled_index(f: Tensor, context: Context) -> Tensor:
    """(B, N, 1) the index of each node over that of the last real one; of two domains, among the inputs."""
    if context.inputs is not None:
        number = context.inputs.cumsum(1) - 1
        return (number / number[:, -1:].clamp(min=1)).clamp(0, 1)[..., None].to(f.dtype)
    batch, count = f.shape[:2]
    last = (
        f.new_full((batch, 1), count - 1) if context.mask is None else context.mask.sum(1, keepdim=True) - 1
    )
    return (torch.arange(count, device=f.device) / last.clamp(min=1))[..., None].to(f.dtype)
