"""What is exported: the surrogate as a function of named tensors, its inputs those that the run used."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lrsa.context import Context, needs_of
from lrsa.data.batch import evenly_weighted
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.models.pod import FittedModel
from lrsa.surrogate.surrogate import Surrogate
from lrsa.training.config import RunConfig

Shape = tuple[str | int, ...]
"""Of an input; B and N are free."""


class Program(nn.Module):
    """The surrogate, normalisation included: physical units in, physical units out."""

    def __init__(self, surrogate: Surrogate, grid: tuple[int, ...] | None) -> None:
        super().__init__()
        self.surrogate, self.grid = surrogate, grid

    def forward(
        self,
        x: Tensor,
        f: Tensor | None = None,
        weights: Tensor | None = None,
        globals: Tensor | None = None,
        time: Tensor | None = None,
        basis: Tensor | None = None,
    ) -> Tensor:
        """x (B, N, p), and those of the others that the run used, by name -> u (B, N, o)."""
        context = Context(weights=weights, globals=globals, time=time, basis=basis, grid=self.grid)
        return self.surrogate(x, f, context)


@dataclass(frozen=True)
class Signature:
    """The inputs of an exported program."""

    shapes: Mapping[str, Shape]
    grid: tuple[int, ...] | None
    """The grid that the model keeps; the others have none."""

    @staticmethod
    def of(surrogate: Surrogate, config: RunConfig) -> "Signature":
        """Only what the run used is an input. Points of a batch are equal in number: there is no mask."""
        needs, normaliser = needs_of(surrogate.model), surrogate.normaliser
        if needs.edges:
            raise LrsaError(
                f"{config.model} cannot be exported: it orders its graph by the values of the edges, which no"
                " fixed program can. `lrsa predict` runs it"
            )
        if isinstance(surrogate.model, FittedModel):
            raise LrsaError(
                f"{config.model} cannot be exported: it holds for its own points, and a program is checked"
                " at random ones. `lrsa predict` runs it"
            )
        if needs.domains:
            raise LrsaError(
                f"{config.model} cannot be exported: it tells the points that give inputs from the others."
                " `lrsa predict` runs it"
            )
        if needs.time_axis:
            raise LrsaError(
                f"{config.model} cannot be exported with time as an axis: it holds for its own frames, and a"
                " program takes any time. `lrsa predict` runs it"
            )
        grid = _cases(config)[0].grid if needs.grid else None
        points: str | int = math.prod(grid) if grid is not None else needs.sensors or normaliser.points or "N"
        features, parameters = normaliser.f_shift.shape[-1], len(normaliser.g_shift)
        shapes: dict[str, Shape] = {"x": ("B", points, len(normaliser.x_shift))}
        shapes |= {"f": ("B", points, features)} if features else {}
        shapes |= (
            {"weights": ("B", points)} if config.train.weights and not evenly_weighted(_cases(config)) else {}
        )
        shapes |= {"globals": ("B", parameters)} if parameters else {}
        shapes |= {"time": ("B",)} if config.schema.protocol == "time-conditioned" else {}
        shapes |= {"basis": ("B", points, needs.eigenfunctions)} if needs.eigenfunctions else {}
        return Signature(shapes, grid)

    def free(self, kinds: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
        """The free axes of every input, as `kinds` names them."""
        return {
            name: {axis: kinds[size] for axis, size in enumerate(shape) if isinstance(size, str)}
            for name, shape in self.shapes.items()
        }

    def draw(self, surrogate: Surrogate, batch: int, points: int) -> dict[str, Tensor]:
        """Random inputs of the size of the training data, at so many points or more."""
        random, n = torch.Generator().manual_seed(1000 * batch + points), surrogate.normaliser
        # Eigenfunctions on fewer points than they are many would depend on each other.
        points += 2 * int(self.shapes["basis"][-1]) if "basis" in self.shapes else 0
        sizes = {"B": batch, "N": points}
        values = {
            name: torch.rand(*(sizes[s] if isinstance(s, str) else s for s in shape), generator=random)
            for name, shape in self.shapes.items()
        }
        physical: dict[str, Callable[[Tensor], Tensor]] = {
            "x": lambda v: n.x_shift + n.x_scale * (2 * v - 1),
            "f": lambda v: n.f_shift + n.f_scale * (4 * v - 2),
            "globals": lambda v: n.g_shift + n.g_scale * (4 * v - 2),
            "time": lambda v: n.t_shift + n.t_scale * v,
            "weights": lambda v: v + 0.5,
            "basis": lambda v: (2 * v - 1) * math.sqrt(3 / points),
        }
        return {name: physical[name](value) for name, value in values.items()}


@contextmanager
def traceable(model: nn.Module) -> Iterator[None]:
    """While it is traced, a model takes all points at once: a loop over chunks would fix their number."""
    homes: dict[str, Any] = {
        type(part).__module__: sys.modules[type(part).__module__] for part in model.modules()
    }
    before: dict[Any, Any] = {
        home: home.over_chunks for home in homes.values() if hasattr(home, "over_chunks")
    }
    for home in before:
        home.over_chunks = _whole
    try:
        yield
    finally:
        for home, loop in before.items():
            home.over_chunks = loop


def _whole(part: Callable[[slice], Tensor], count: int, chunk: int) -> list[Tensor]:
    return [part(slice(None))]


def _cases(config: RunConfig) -> Selection:
    path = Path(config.data.path)
    if not path.exists():
        raise LrsaError(
            f"{path} is not there, and the inputs of the program are those of its cases. Put the data back"
        )
    data = config.dataset("train")
    return Selection(data, range(min(config.data.samples or len(data), len(data))), config.data.stride)
