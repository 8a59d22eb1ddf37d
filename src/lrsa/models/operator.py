"""The neural operator: lift, L pre-norm blocks of mixing and FFN, projection (paper, section 3.1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN, LowRankSpatialAttention
from lrsa.models.block import Block, Local, LocalFFN, point_ffn
from lrsa.models.encoding import PositionalEncoding, TimeEncoding
from lrsa.models.template import GlobalMix, LowRankMix


@dataclass(frozen=True)
class State:
    """A sample, encoded: the processed latents of every block. Decodes at any points."""

    latents: tuple[Tensor, ...]
    """(B, M, d) for each block."""
    context: Context
    """What belongs to the whole sample (time, globals)."""


class NeuralOperator(nn.Module):
    """Lift, blocks and head, composed of parts; an operator that lifts in another way has its own `lift`.

    h⁰ = Lift([f, PE(x)]) (+ time)                                 Eq. (lift)
    h ← block(h, x) for every block
    u = Head(Norm(h))

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        blocks: What mixes the points, in order.
        head: (B, N, d) -> (B, N, o), each point by itself.
        lift_ffn: [f, PE(x)] -> (B, N, d), each point by itself (default: nothing).
        norm: In front of the head (default: none).
        position: The encoding of x (default: the coordinates).
        time: The encoding of `Context.time`, if the operator is conditioned on it.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    """Parts that had another name in earlier versions, by that name: files of theirs load."""

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        *,
        blocks: Sequence[Block],
        head: nn.Module,
        lift_ffn: nn.Module | None = None,
        norm: nn.Module | None = None,
        position: nn.Module | None = None,
        time: TimeEncoding | None = None,
    ) -> None:
        super().__init__()
        if self.renamed:
            self.register_load_state_dict_pre_hook(_rename)
        self.coord_dim, self.in_features, self.out_features = coord_dim, in_features, out_features
        self.position = nn.Identity() if position is None else position
        self.lift_ffn = nn.Identity() if lift_ffn is None else lift_ffn
        self.time = time
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.Identity() if norm is None else norm
        self.head = head

    @property
    def needs(self) -> Needs:
        """Without which the model cannot run."""
        return reduce(or_, (block.needs for block in self.each_block()), Needs(time=self.time is not None))

    def forward(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> Tensor:
        """x (B, N, p), f (B, N, c) or None -> u (B, N, o)."""
        context = _normalised(context, x)
        h = self.lift(x, f, context)
        for block in self.each_block():
            h = block(h, x, context)
        return self.project(h)

    def encode(self, x: Tensor, f: Tensor | None = None, context: Context | None = None) -> State:
        """Run the operator at these points and keep the latents of every block."""
        self.check_pointwise("encode")
        context = _normalised(context, x)
        h, kept = self.lift(x, f, context), []
        for block in self.each_block():
            latents = block.latents(h, x, context)
            h = block.update(h, x, context, latents)
            kept.append(latents)
        return State(tuple(kept), context.of_sample())

    def decode(self, state: State, x: Tensor, f: Tensor | None = None) -> Tensor:
        """u at any points x (B, Q, p), which need features f (B, Q, c) of their own if the model has any."""
        h = self.lift(x, f, state.context)
        for block, latents in zip(self.each_block(), state.latents, strict=True):
            h = block.update(h, x, state.context, latents)
        return self.project(h)

    def lift(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, p), (B, N, c) -> (B, N, d)."""
        check_points(x, f, self.coord_dim, self.in_features)
        h = self.lift_ffn(self.position(x) if f is None else torch.cat([f, self.position(x)], dim=-1))
        if self.time is not None:
            h = h + self.time(context.need("time", "the time encoding"))
        return h if context.mask is None else h.masked_fill(~context.mask[..., None], 0)

    def project(self, h: Tensor) -> Tensor:
        """(B, N, d) -> (B, N, o)."""
        return self.head(self.norm(h))

    def check_pointwise(self, wish: str) -> None:
        """Refuse what needs every step but the compression to act on each point by itself."""
        for block in self.each_block():
            if not isinstance(block.mix, LowRankMix):
                raise LrsaError(
                    f"cannot {wish}: {type(block.mix).__name__} needs all points of its grid at once"
                )
            if isinstance(block.ffn, LocalFFN):
                raise LrsaError(f"cannot {wish}: the 3x3 convolution needs its grid. {block.ffn.instead}")

    def each_block(self) -> list[Block]:
        """The blocks, in order."""
        return [block for block in self.blocks if isinstance(block, Block)]


class Backbone(NeuralOperator):
    """The backbone of the paper, for any global mixing layer.

    h⁰ = Lift([f, PE(x)])                                          Eq. (lift)
    g = h + GlobalMix(Norm(h), x),  h' = g + FFN(Norm(g))           Eq. (backbone-globalmix)
    u = Linear(Norm(h))

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        mixer: Makes the mixing layer of one block.
        width: Channels d.
        depth: Blocks L.
        ffn: Makes the point FFN of one block.
        frequencies: Frequencies of the positional encoding; 0 is the raw coordinate.
        time: Whether the operator is conditioned on `Context.time`.
    """

    def __init__(
        self,
        coord_dim: int,
        in_features: int,
        out_features: int,
        mixer: Callable[[], GlobalMix],
        *,
        width: int,
        depth: int,
        ffn: Callable[[], nn.Module],
        frequencies: int = 0,
        time: bool = False,
    ) -> None:
        position = PositionalEncoding(coord_dim, frequencies)
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            position=position,
            lift_ffn=FFN(position.features + in_features, 2 * width, width),
            time=TimeEncoding(width) if time else None,
            blocks=[Block(width, mixer(), ffn()) for _ in range(depth)],
            norm=nn.LayerNorm(width),
            head=nn.Linear(width, out_features),
        )


class LRSA(Backbone):
    """The neural operator of the paper: `LowRankSpatialAttention` in every block.

    >>> model = LRSA(coord_dim=2, in_features=1, out_features=1)
    >>> u = model(torch.rand(4, 1000, 2), torch.rand(4, 1000, 1))  # (4, 1000, 1)

    `model(x, f, Context(mask=..., weights=...))` takes padded batches and quadrature weights;
    `model.encode` and `model.decode` predict at other points; `lrsa.stream` takes any number of points.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point (0: the geometry is the only input).
        out_features: Output fields o per point.
        width: Channels d of every point and latent.
        depth: Blocks L.
        heads: Attention heads.
        rank: Latents M, the rank of the global interaction.
        ffn_hidden: Hidden width of the point FFN (default: the width).
        latent_ffn_hidden: Hidden width of the latent FFNs (default: that of the point FFN).
        local: The point FFN: pointwise (the paper), or with a 3x3 convolution in front of it, depthwise or
            full (conv); these need a structured grid.
        periodic: The grid closes on itself, for the convolution.
        frequencies: Frequencies of the positional encoding; 0 is the raw coordinate.
        latent_attention: False leaves the latents an FFN only (the paper's ablation).
        symmetric: True ties where points read to where they write (the paper's ablation).
        qk_norm: Normalise queries and keys.
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
        latent_ffn_hidden: int | None = None,
        local: Local = "pointwise",
        periodic: bool = False,
        frequencies: int = 0,
        latent_attention: bool = True,
        symmetric: bool = False,
        qk_norm: bool = False,
        time: bool = False,
    ) -> None:
        hidden = ffn_hidden or width

        def mixer() -> LowRankSpatialAttention:
            return LowRankSpatialAttention(
                width, heads, rank, latent_ffn_hidden or hidden, latent_attention, symmetric, qk_norm
            )

        super().__init__(
            coord_dim,
            in_features,
            out_features,
            mixer,
            width=width,
            depth=depth,
            ffn=lambda: point_ffn(width, hidden, local, periodic),
            frequencies=frequencies,
            time=time,
        )


def _normalised(context: Context | None, x: Tensor) -> Context:
    """What is known of these points, and nothing of others."""
    context = context or Context()
    context.check(x)
    return context.normalised()


def check_points(x: Tensor, f: Tensor | None, coord_dim: int, in_features: int) -> None:
    """Refuse other channels than a model was made for, and features of other points."""
    given = 0 if f is None else f.shape[-1]
    if x.shape[-1] != coord_dim or given != in_features:
        raise LrsaError(
            f"the model takes {coord_dim} coordinates and {in_features} features per point,"
            f" not {x.shape[-1]} and {given}"
        )
    if f is not None and f.shape[:-1] != x.shape[:-1]:
        raise LrsaError(f"x is of shape {tuple(x.shape)} and f of {tuple(f.shape)}: not the same points")


def _rename(operator: nn.Module, weights: dict[str, Any], prefix: str, *_: Any) -> None:
    assert isinstance(operator, NeuralOperator)
    for old, new in operator.renamed.items():
        for name in [name for name in weights if name.startswith(f"{prefix}{old}.")]:
            weights[name.replace(f"{prefix}{old}.", f"{prefix}{new}.", 1)] = weights.pop(name)
