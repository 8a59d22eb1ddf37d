"""A run: its configuration, and the folder that holds it."""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from lrsa.data.store import Schema, atomic
from lrsa.errors import LrsaError

FORMAT = 1


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained: AdamW under a OneCycle schedule."""

    epochs: int = 100
    """Passes over the training cases."""
    batch_size: int = 4
    """Cases per step."""
    max_lr: float = 1e-3
    """Peak of the OneCycle schedule."""
    weight_decay: float = 1e-5
    """Decoupled weight decay."""
    clip: float = 1.0
    """Largest norm of the gradient."""
    gradient_weight: float = 0.0
    """Weight of the spatial-gradient term of the loss (structured grids; Darcy takes 0.1)."""
    validation: float = 0.1
    """Share of the training cases kept for choosing the best epoch; 0 keeps the last epoch."""
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    """Precision of the forward and backward pass."""
    weights: bool = True
    """Use the quadrature weights of the points, where the data has them."""
    seed: int = 0
    """Of the initial weights, the order of the cases and the choice of the validation cases."""


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
            raise LrsaError(f"{run} is not a run: it has no config.json")
        try:
            values = json.loads(path.read_text())
            found = values.pop("format", None)
        except (ValueError, AttributeError) as error:
            raise LrsaError(f"{path} is damaged: train again") from error
        if found != FORMAT:
            raise LrsaError(f"{run} was written in run format {found}; this lrsa reads {FORMAT}. Train again")
        schema = values.pop("schema")
        return RunConfig(
            data=DataConfig(**values.pop("data")),
            schema=Schema.from_json(json.dumps(schema)),
            train=TrainConfig(**values.pop("train")),
            **values,
        )


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
