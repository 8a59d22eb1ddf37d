"""LNO: one latent space for the whole network (Wang and Wang 2024, arXiv 2406.03923).

Reference: github.com/L-I-M-I-T/LatentNeuralOperator, with which `tests/test_parity_lno.py` compares.
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from lrsa.context import Context, Needs
from lrsa.models.attention import FFN, Attention, SoftmaxPartial
from lrsa.models.baselines.seeds import unused_head, unused_lift
from lrsa.models.block import Block
from lrsa.models.hidden import Declared, whole
from lrsa.models.operator import NeuralOperator, State
from lrsa.models.template import GlobalMix, LowRankMix, at_least_float32


class LNO(NeuralOperator):
    """Encode once, L Transformer blocks on the latents, decode once, with one score matrix S for both.

    t = Trunk(x),  b = Branch([f, x]),  S = MLP(t)  (N x M)
    Z = softmax over points(S)ᵀ b,  Z ← L pre-norm Transformer blocks(Z),  u = MLP(softmax over latents(S) Z)

    The scores need coordinates only, so `decode` takes query points without features.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of points and latents.
        depth: Transformer blocks on the latents.
        heads: Attention heads of the latents.
        rank: Latents M.
        mlp_layers: Residual hidden layers of trunk, branch, score and output MLPs.
        time: Append the time of the sample to the coordinates of every point (published for plasticity).
    """

    matrices: ClassVar[Declared] = {"*.hidden.*.weight": whole}

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        width: int = 128,
        depth: int = 4,
        heads: int = 8,
        rank: int = 256,
        mlp_layers: int = 2,
        time: bool = False,
    ) -> None:
        mix = TiedLatents(width, depth, heads, rank)
        unused_lift(coord_dim + in_features, width)
        unused_head(width, out_features)
        coords = coord_dim + int(time)
        trunk = ResidualLayers(coords, width, mlp_layers, width)
        branch = ResidualLayers(coords + in_features, width, mlp_layers, width)
        score = ResidualLayers(width, width, mlp_layers, rank)
        head = ResidualLayers(width, width, mlp_layers, out_features)
        super().__init__(coord_dim, in_features, out_features, blocks=[OnlyMix(mix)], head=head)
        self.time_coordinate, self.trunk, self.branch, self.score = time, trunk, branch, score

    @property
    def needs(self) -> Needs:
        """Without which the model cannot run."""
        return Needs(time=self.time_coordinate)

    def lift(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, p), (B, N, c) -> scores and values (B, N, M + d)."""
        inputs = super().lift(x, f, context)  # [f, x], checked
        if self.time_coordinate:
            inputs = torch.cat([inputs, self._time(x, context)], dim=-1)
        h = self.embed(self._coordinates(x, context), inputs)
        return h if context.mask is None else h.masked_fill(~context.mask[..., None], 0)

    def embed(self, coordinates: Tensor, inputs: Tensor) -> Tensor:
        """Trunk coordinates (B, N, ·) and branch inputs (B, N, ·) -> scores and values (B, N, M + d)."""
        return torch.cat([self.score(self.trunk(coordinates)), self.branch(inputs)], dim=-1)

    def decode(self, state: State, x: Tensor, f: Tensor | None = None) -> Tensor:
        """u at any points x (B, Q, p). Features are not needed, nor read if they are given."""
        (block,), (latents,) = self.each_block(), state.latents
        scores = self.score(self.trunk(self._coordinates(x, state.context)))
        return self.project(block.update(scores, x, state.context, latents))

    def _coordinates(self, x: Tensor, context: Context) -> Tensor:
        return torch.cat([x, self._time(x, context)], dim=-1) if self.time_coordinate else x

    def _time(self, x: Tensor, context: Context) -> Tensor:
        return context.need("time", "LNO with time").to(x.dtype)[:, None, None].expand(*x.shape[:2], 1)


class TiedLatents(LowRankMix[SoftmaxPartial]):
    """The encoder, the latent blocks and the decoder of LNO; its points carry scores (M) and values (d)."""

    def __init__(self, width: int, depth: int, heads: int, rank: int) -> None:
        super().__init__()
        self.rank = rank
        self.transformer = nn.Sequential(*(LatentBlock(width, heads, 2 * width) for _ in range(depth)))

    def compress(self, h: Tensor, x: Tensor, context: Context) -> Tensor:
        """(B, N, M + d) scores and values -> (B, M, d) latents."""
        bias = context.log_measure(h.dtype)
        scores = h[..., : self.rank].transpose(1, 2)
        scores = scores if bias is None else scores + bias[:, 0]
        return scores.softmax(-1) @ h[..., self.rank :]

    def partial(self, h: Tensor, x: Tensor, context: Context) -> SoftmaxPartial:
        """The same softmax over some of the points."""
        scores, values = h[..., : self.rank].transpose(1, 2)[:, None], h[:, None, :, self.rank :]
        scores = at_least_float32(scores)
        bias = context.log_measure(scores.dtype)
        return SoftmaxPartial.of(scores, values, bias, lambda z: z[:, 0].to(h.dtype))

    def process(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d)."""
        return self.transformer(latents)

    def reconstruct(self, h: Tensor, x: Tensor, context: Context, latents: Tensor) -> Tensor:
        """(B, M, d) latents -> (B, N, d), by the scores in h alone."""
        return h[..., : self.rank].softmax(-1) @ latents


class OnlyMix(Block):
    """A block that is its mixing layer and nothing else: what comes out has passed through the latents."""

    def __init__(self, mix: GlobalMix) -> None:
        super().__init__(0, mix, nn.Identity(), norm=nn.Identity)

    def join(self, h: Tensor, mixed: Tensor, context: Context) -> Tensor:
        """No residual, no FFN."""
        return mixed


class LatentBlock(nn.Module):
    """Z ← Z + SelfAttn(Norm Z), Z ← Z + FFN(Norm Z)."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm_mix, self.mix = nn.LayerNorm(width), Attention(width, heads)
        self.norm_ffn, self.ffn = nn.LayerNorm(width), FFN(width, hidden)

    def forward(self, latents: Tensor) -> Tensor:
        """(B, M, d) -> (B, M, d)."""
        normed = self.norm_mix(latents)
        latents = latents + self.mix(normed, normed)
        return latents + self.ffn(self.norm_ffn(latents))


class ResidualLayers(nn.Module):
    """r = GELU(W u), r ← r + GELU(W_i r) for each hidden layer, then W r."""

    def __init__(self, width: int, hidden: int, layers: int, out: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.hidden = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.last = nn.Linear(hidden, out)

    def forward(self, u: Tensor) -> Tensor:
        """(..., width) -> (..., out)."""
        r = gelu(self.first(u))
        for layer in self.hidden:
            r = r + gelu(layer(r))
        return self.last(r)


def _preset(
    in_features: int, out_features: int, width: int, depth: int, mlp_layers: int = 2
) -> dict[str, Any]:
    data = {"coord_dim": 2, "in_features": in_features, "out_features": out_features}
    return {**data, "width": width, "depth": depth, "heads": 8, "rank": 256, "mlp_layers": mlp_layers}


PRESETS: dict[str, dict[str, object]] = {
    "elasticity": _preset(0, 1, 192, 4, mlp_layers=3),
    "darcy": _preset(1, 1, 128, 4),
    "navier-stokes": _preset(10, 1, 256, 8),
    "plasticity": {**_preset(1, 4, 128, 4), "time": True},
    "airfoil": _preset(0, 1, 128, 8),
    "pipe": _preset(0, 1, 128, 8),
    "shapenet-car": {**_preset(4, 4, 256, 8), "coord_dim": 3},
    "airfrans": _preset(5, 4, 256, 8),
}
"""The published configurations; of the industrial cases none is, and the sizes of Navier-Stokes are taken. In
its airfoil and pipe runs the reference feeds the coordinates to the branch twice (in_features=2), which adds
256 parameters and no information."""
