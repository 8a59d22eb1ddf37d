"""A run: its configuration, and the folder that holds it."""

import json
import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from lrsa.data.normalise import Coordinates
from lrsa.data.store import Schema
from lrsa.errors import LrsaError
from lrsa.files import atomic

FORMAT = 1
Precision = Literal["fp32", "bf16", "fp16"]
Optimiser = Literal["adamw", "muon"]


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained: which optimiser, under a OneCycle schedule, and on what."""

    epochs: int = 100
    """Passes over the training cases."""
    batch_size: int = 4
    """Cases per step."""
    optimiser: Optimiser = "adamw"
    """adamw (the paper), or muon for the hidden matrices of the model and AdamW for the rest."""
    max_lr: float = 1e-3
    """Learning rate of AdamW at the peak of the OneCycle schedule."""
    muon_lr: float = 0.01
    """Learning rate of Muon at the same peak."""
    warmup: float = 0.3
    """Share of the steps before the peak."""
    weight_decay: float = 1e-5
    """Decoupled weight decay."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    gradient_weight: float = 0.0
    """Weight of the spatial-gradient term of the loss (structured grids; Darcy takes 0.1)."""
    validation: float = 0.1
    """Share of the training cases kept for choosing the best epoch; 0 keeps the last epoch."""
    precision: Precision = "fp32"
    """Precision of the forward and backward pass."""
    weights: bool = True
    """Use the quadrature weights of the points, where the data has them."""
    chunk: int | None = None
    """Points at a time, for point sets that do not fit in memory: slower, the same gradient."""
    checkpoint: bool = False
    """Keep only the input of each layer for the backward pass: less memory, more time."""
    compile: bool = False
    """Compile the repeated layers, which takes minutes at the first step; meant for GPUs."""
    coordinates: Coordinates = "box"
    """Normalisation of coordinates: one map for all axes (box), each by its deviation (axis), none (raw)."""
    seed: int = 0
    """Of the initial weights, the order of the cases and the choice of the validation cases."""

    def __post_init__(self) -> None:
        for names, kind, fits, what in _RANGES:
            for name in names:
                value = getattr(self, name)
                if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
                    option = name.replace("_", "-")
                    raise LrsaError(f"--train.{option} must be {what}, not {value}")
        choices = (("optimiser", Optimiser), ("precision", Precision), ("coordinates", Coordinates))
        for name, kind in choices:
            if getattr(self, name) not in get_args(kind):
                raise LrsaError(f"--train.{name} is one of {', '.join(get_args(kind))}")


_RANGES: tuple[tuple[tuple[str, ...], type | tuple[type, ...], Callable[[Any], bool], str], ...] = (
    (("epochs", "batch_size"), int, lambda v: v >= 1, "a whole number, at least 1"),
    (("chunk",), (int, type(None)), lambda v: v is None or v >= 1, "a whole number, at least 1"),
    (("seed",), int, lambda v: v >= 0, "a whole number, at least 0"),
    (("max_lr", "muon_lr", "clip"), (int, float), lambda v: 0 < v < math.inf, "a positive number"),
    (("weight_decay", "gradient_weight"), (int, float), lambda v: 0 <= v < math.inf, "a number, at least 0"),
    (("validation", "warmup"), (int, float), lambda v: 0 <= v < 1, "a number from 0 to below 1"),
)


@dataclass(frozen=True)
class DataConfig:
    """Which cases a run sees."""

    path: str
    samples: int | None = None
    """The first so many training cases; None: all."""
    test: int | None = None
    stride: int = 1
    """Every so-many-th point along each axis."""


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the outcome of a run."""

    data: DataConfig
    schema: Schema
    model: str
    options: Mapping[str, Any]
    """Of the model, with what the data decided."""
    train: TrainConfig
    scale: str | None = None
    init: str | None = None
    """The run whose weights it starts from."""
    device: str = "cpu"
    threads: int | None = None
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def save(self, run: Path) -> None:
        with atomic(run / "config.json") as temporary:
            temporary.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1))

    @staticmethod
    def load(run: Path) -> "RunConfig":
        path = run / "config.json"
        if not path.is_file():
            raise LrsaError(f"{run} is not a run: it has no config.json. `lrsa train` makes one")
        try:
            values = json.loads(path.read_text())
            found = values.pop("format", None)
        except (ValueError, TypeError, AttributeError) as error:
            raise LrsaError(f"{path} is damaged: train again") from error
        if found != FORMAT:
            raise LrsaError(f"{run} was written in run format {found}; this lrsa reads {FORMAT}. Train again")
        try:
            return RunConfig(
                data=DataConfig(**values.pop("data")),
                schema=Schema.from_json(json.dumps(values.pop("schema"))),
                train=TrainConfig(**values.pop("train")),
                **values,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise LrsaError(f"{path} is damaged: train again") from error


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    import numpy
    import torch

    import lrsa

    return {
        "lrsa": lrsa.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def option_names(config: type) -> list[str]:
    return [f.name for f in fields(config)]
