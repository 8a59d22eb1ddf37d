"""The paper's three efficiency settings, and which models run there at which size."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import nn

from lrsa.data.batch import Batch
from lrsa.data.prepare import Collator
from lrsa.errors import LrsaError, nearest
from lrsa.models.create import create_model
from lrsa.models.registry import get, model_options, networks
from lrsa.pointset import PointSet
from lrsa.training.repeated_layers import compile_blocks, recompute_blocks

RANK = 64
"""M of LRSA and Transolver in all three settings, whatever their presets say."""
TWINS = ("lrsa", "transolver")
"""Also run at one size: the width of the setting, depth 8, heads 8, rank 64, FFN hidden = width, no grid."""

BY_KERNELS = " by kernels"
"""Behind the label of a model whose blocks these compute; all others are plain torch."""
FEW = 16
"""A case with so much fewer points says which model takes how long beside the others."""


@dataclass(frozen=True)
class Setting:
    """One column of the paper's table: a synthetic case of the benchmark's shape."""

    name: str
    """The benchmark, and so the preset."""
    points: int
    width: int
    coord_dim: int
    in_features: int
    out_features: int
    grid: tuple[int, int] | None = None
    batch: int = 1

    def smaller(self) -> "Setting":
        """The same with few points."""
        side = round(FEW**0.5)
        grid = None if self.grid is None else (self.grid[0] // side, self.grid[1] // side)
        return replace(self, points=math.prod(grid) if grid else self.points // FEW, grid=grid)

    def case(self) -> PointSet:
        """A bent grid, or points on an ellipsoid; features and targets are noise."""
        rng = np.random.default_rng(0)
        if self.grid is not None:
            s, t = (a.ravel() for a in np.meshgrid(*(np.linspace(0, 1, n) for n in self.grid), indexing="ij"))
            x = np.stack([s, t + 0.2 * np.sin(math.pi * s)], axis=1)
        else:
            normal = rng.standard_normal((self.points, self.coord_dim))
            x = normal / np.linalg.norm(normal, axis=1, keepdims=True) * np.linspace(1, 0.5, self.coord_dim)
        f = rng.standard_normal((len(x), self.in_features)) if self.in_features else None
        u = rng.standard_normal((len(x), self.out_features))
        return PointSet(_single(x), None if f is None else _single(f), _single(u), grid=self.grid)


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("navier-stokes", 4096, 256, 2, 10, 1, grid=(64, 64)),
        Setting("airfoil", 11271, 128, 2, 0, 1, grid=(221, 51)),
        Setting("shapenet-car", 32186, 256, 3, 4, 4),
    )
}


@dataclass(frozen=True)
class Entrant:
    """A model at a size."""

    label: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    variant: str = ""
    """recompute, compiled, or by kernels; else as it is."""

    @property
    def size(self) -> str:
        """Which options it has."""
        if self.preset is None:
            return "same size" if "width" in self.options else "default options"
        published = get(self.model).preset(self.preset)
        changed = [f"{name} {value}" for name, value in self.options.items() if published.get(name) != value]
        return ", ".join(["own preset", *changed])

    def width(self, setting: Setting) -> int:
        """Channels of its layers; of a model without such an option, those of the setting."""
        published = get(self.model).preset(self.preset) if self.preset else {}
        options = {name: option.default for name, option in model_options(self.model).items()}
        return {"width": setting.width, **options, **published, **self.options}["width"]

    def build(self, setting: Setting) -> nn.Module:
        data = {
            "coord_dim": setting.coord_dim,
            "in_features": setting.in_features,
            "out_features": setting.out_features,
        }
        model = create_model(self.model, preset=self.preset, **{**data, **self.options})
        change: dict[str, Callable[[nn.Module], nn.Module]] = {
            "recompute": recompute_blocks,
            "compiled": compile_blocks,
        }
        return change[self.variant](model) if self.variant in change else model

    def batch(self, setting: Setting, model: nn.Module) -> Batch:
        """The setting's case, with the basis or edges that the model needs."""
        return Collator.of(model, weights=False)([setting.case()] * setting.batch)


def entrants(setting: Setting, only: Sequence[str] = (), compiled: bool = False) -> list[Entrant]:
    """Those that the bars are about first, then the published models, then mixers in our backbone.

    A published model takes its own preset of the benchmark, or else its default options; LRSA and
    Transolver with the rank of the paper's settings; a mixer in our backbone the size of the setting.
    """
    for name in only:
        if name not in networks():
            raise LrsaError(f'no model "{name}".{nearest(name, networks())} `lrsa models` lists them')
    names = sorted(networks(), key=lambda name: (name not in TWINS, get(name).family == "backbone", name))
    return [e for name in names if not only or name in only for e in _sizes(setting, name, compiled)]


def _sizes(setting: Setting, name: str, compiled: bool) -> Iterator[Entrant]:
    same = {"width": setting.width, "depth": 8, "heads": 8, "rank": RANK}
    if get(name).family == "backbone":
        yield Entrant(name, name, same)
        return
    preset = setting.name if setting.name in get(name).all_presets() else None
    own = Entrant(name, name, {"rank": RANK} if preset and name in TWINS else {}, preset)
    sizes = [own, Entrant(f"{name} (same size)", name, same)] if name in TWINS else [own]
    yield from sizes
    if name == "lrsa":
        for one in sizes:
            yield replace(one, label=one.label + BY_KERNELS, variant="kernels")
        variants = ("recompute", "compiled") if compiled else ("recompute",)
        for variant in variants:
            yield Entrant(f"{name} ({variant})", name, own.options, preset, variant)


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)
