"""The skeleton that Transolver, Transolver++, LinearNO and HPM share around their mixers.

h⁰ = Lift([position, f]) (+ a learned placeholder) (+ the embedded time), pre-norm blocks of mixer and MLP,
u = Linear(Norm(h)); truncated normal weights of deviation 0.02 and zero biases in every linear layer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from lrsa.context import Context, Needs
from lrsa.errors import LrsaError
from lrsa.models.attention import FFN
from lrsa.models.baselines.seeds import unused_lift
from lrsa.models.block import Block
from lrsa.models.encoding import TimeEncoding
from lrsa.models.operator import NeuralOperator, check_points
from lrsa.models.template import GlobalMix


class TransolverSkeleton(NeuralOperator):
    """Lift, blocks and head of the Transolver family, for any of its mixers.

    Args:
        coord_dim: Coordinates p per point.
        in_features: Input features c per point.
        out_features: Output fields o per point.
        mixer: Makes the mixing layer of one block.
        width: Channels d.
        depth: Blocks L.
        mlp_ratio: Hidden width of the point MLP over the width.
        placeholder: Whether a learned vector is added to every lifted point.
        position: What the lift is told of where a point is.
        time: Whether the model is conditioned on `Context.time`.
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
        mlp_ratio: int,
        placeholder: bool,
        position: "Position",
        time: bool,
    ) -> None:
        unused_lift(coord_dim + in_features, width)
        super().__init__(
            coord_dim,
            in_features,
            out_features,
            time=TimeEncoding(width) if time else None,
            blocks=[Block(width, mixer(), FFN(width, mlp_ratio * width)) for _ in range(depth)],
            norm=nn.LayerNorm(width),
            head=nn.Linear(width, out_features),
            lift_ffn=FFN(position.features + in_features, 2 * width, width),
        )
        self.places = position
        self.placeholder = nn.Parameter(torch.rand(width) / width) if placeholder else None
        self.apply(initialise)

    @property
    def needs(self) -> Needs:
        """Without which the model cannot run."""
        return super().needs | self.places.needs

    def lift(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        """(B, N, p), (B, N, c) -> (B, N, d)."""
        check_points(x, f, self.coord_dim, self.in_features)
        place = self.places(x, context)
        h = self.lift_ffn(place if f is None else torch.cat([place, f], dim=-1))
        if self.placeholder is not None:
            h = h + self.placeholder
        if self.time is not None:
            h = h + self.time(context.need("time", "the time encoding"))
        return h if context.mask is None else h.masked_fill(~context.mask[..., None], 0)

    def check_pointwise(self, wish: str) -> None:
        """Refuse what needs every step but the compression to act on each point by itself."""
        super().check_pointwise(wish)
        if self.places.needs.grid:
            raise LrsaError(f"cannot {wish}: the reference positions need the grid. Train with reference=0")


class Position(nn.Module, ABC):
    """What the lift is told of where a point is: `features` numbers per point."""

    needs: Needs = Needs()

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features

    @abstractmethod
    def forward(self, x: Tensor, context: Context) -> Tensor:
        """(B, N, p) -> (B, N, features)."""


class Coordinates(Position):
    """The coordinates themselves."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x


class IndexDistances(Position):
    """Distances on the index grid, scaled to the unit box, to a regular lattice of anchors.

    They replace the coordinates: the model sees where a point stands in the grid, not where in space.
    """

    needs = Needs(grid=True)

    def __init__(self, coord_dim: int, reference: int) -> None:
        super().__init__(reference**coord_dim)
        self.coord_dim, self.reference = coord_dim, reference

    def forward(self, x: Tensor, context: Context) -> Tensor:
        grid = context.need("grid", "the reference positions")
        if len(grid) != self.coord_dim:
            raise LrsaError(
                f"the reference positions take a grid of {self.coord_dim} axes, not {len(grid)}."
                " Train with reference=0"
            )
        unit = [(0.0, 1.0)] * len(grid)
        points, anchors = lattice(unit, grid, x), lattice(unit, [self.reference] * len(grid), x)
        return distances(points, anchors).expand(x.shape[0], -1, -1)


class BoxDistances(Position):
    """The coordinates, and their distances to a regular lattice of anchors in a box."""

    def __init__(self, coord_dim: int, reference: int, box: Sequence[float]) -> None:
        if len(box) != 2 * coord_dim:
            raise LrsaError(
                f"reference_box has {len(box)} numbers, not a low and a high for each of {coord_dim} axes"
            )
        super().__init__(coord_dim + reference**coord_dim)
        self.sides = list(zip(box[::2], box[1::2], strict=True))
        self.reference = reference

    def forward(self, x: Tensor, context: Context) -> Tensor:
        anchors = lattice(self.sides, [self.reference] * len(self.sides), x)
        return torch.cat([x, distances(x, anchors)], dim=-1)


def reference_position(coord_dim: int, reference: int, box: Sequence[float]) -> Position:
    """The published kinds of position: coordinates, distances on the index grid, distances in a box."""
    if not reference:
        return Coordinates(coord_dim)
    return BoxDistances(coord_dim, reference, box) if box else IndexDistances(coord_dim, reference)


def lattice(sides: Sequence[tuple[float, float]], shape: Sequence[int], like: Tensor) -> Tensor:
    """Points of a regular grid with its corners on those of a box, row-major: (Π shape, p)."""
    axes = [
        torch.linspace(low, high, n, dtype=like.dtype, device=like.device)
        for (low, high), n in zip(sides, shape, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


def distances(points: Tensor, anchors: Tensor) -> Tensor:
    """(..., N, p), (R, p) -> (..., N, R), Euclidean."""
    return torch.linalg.vector_norm(points[..., None, :] - anchors, dim=-1)


def preset(
    coord_dim: int,
    in_features: int,
    out_features: int,
    width: int,
    depth: int,
    rank: int,
    mlp_ratio: int,
    options: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A row of a published configuration table; all of the family's have 8 heads."""
    row: dict[str, object] = {
        "coord_dim": coord_dim,
        "in_features": in_features,
        "out_features": out_features,
    }
    row |= {"width": width, "depth": depth, "heads": 8, "rank": rank, "mlp_ratio": mlp_ratio}
    return {**row, **(options or {})}


def initialise(module: nn.Module) -> None:
    """The family's initialisation of linear layers; everything else keeps its own."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
