"""A run: its configuration, and the folder that holds it."""

import json
import math
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from lrsa.context import Coordinates
from lrsa.data.normalise import StatisticsOf
from lrsa.data.store import Dataset, Schema
from lrsa.data.symmetry import parse
from lrsa.errors import LrsaError
from lrsa.files import alone, atomic
from lrsa.machine import check_threads
from lrsa.objectives.losses import check_loss
from lrsa.objectives.named import check_metrics
from lrsa.objectives.quantities import definitions
from lrsa.surrogate.precision import Precision
from lrsa.surrogate.record import FILE, FORMAT, naming_damage, read_config
from lrsa.typed import conforms

Optimiser = Literal["adamw", "muon"]
LARGEST = 2**32
"""What no setting reaches: numbers beyond overflow somewhere."""


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained: which optimiser, under a OneCycle schedule, and on what."""

    epochs: int = 100
    """Passes over the training cases."""
    minutes: float | None = None
    """The time that the training may take: as many epochs as fit into it, by the measured first steps, fixed
    before the training begins; with epochs given too, no more than those."""
    steps: int | None = None
    """Steps of an epoch, where it is not to see all cases."""
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
    loss: str = "relative-l2"
    """What is made small: relative-l2, or mse of normalised targets; of some fields and points where it says
    so, such as mse@volume+mse@surface or mse:u:v+0.5*mse:p@surface."""
    metrics: str = ""
    """What is measured on the test cases besides, such as gradient, mse:p@surface or spearman:max:p,
    separated by commas."""
    quantities: str = ""
    """Numbers of a whole case that are measured too, such as lift=force:p@wing,along=y;peak=max:p, separated
    by semicolons; `lrsa train --help` tells how they are spelled."""
    gradient_weight: float = 0.0
    """Weight of the spatial-gradient term of the loss (structured grids; Darcy takes 0.1)."""
    validation: float = 0.1
    """Share of the training cases kept for choosing the best epoch; 0 keeps the last epoch."""
    every: int = 1
    """Epochs from one validation to the next."""
    precision: Precision = "fp32"
    """Precision of the forward and backward pass."""
    weights: bool = True
    """Use the quadrature weights of the points, where the data has them; those of weight 0 then only read."""
    points: int | None = None
    """Of every case so many points, others in every epoch, for meshes that are large; None: all of them.
    Points that only give an input always stay."""
    chunk: int | None = None
    """Points at a time, for point sets that do not fit in memory: slower, the same gradient."""
    recompute: bool = False
    """Keep only the input of each layer for the backward pass: less memory, more time."""
    compile: bool = False
    """Compile the repeated layers, which takes minutes at the first step; meant for GPUs."""
    kernels: bool | None = None
    """Compute the blocks of LRSA by kernels of our own, on CPUs with a C++ compiler: faster, the same up to
    rounding (default: where there are any). In the configuration of a run: whether they do; of an older run
    None, for torch."""
    coordinates: Coordinates = "box"
    """Normalisation of coordinates: one map for all axes (box), each by its deviation (axis), none (raw), or
    the logarithm of the distance from where the points are dense (log), for small bodies in large domains."""
    deviations: bool = False
    """Show the model how far each node lies from its mean place, in units of its own deviation: for meshes of
    one topology whose nodes move little from case to case. The operator then holds for that mesh alone."""
    statistics: StatisticsOf = "channel"
    """What features and targets are normalised by: statistics of each channel, or of each point. With the
    latter the operator holds for that mesh alone, which all cases must have."""
    windows: bool = False
    """A step takes single frames of batch_size cases instead of all their frames (autoregressive data)."""
    change: bool = False
    """Learn the change from frame to frame instead of the next frame (autoregressive data)."""
    noise: float = 0.0
    """Random waves on the frames that are inputs, as a share of their deviation: rolled out, a model then
    damps its own errors (autoregressive data, with windows)."""
    symmetry: str = ""
    """Exact symmetries, such as square or mirror-y: each epoch moves each case by one of them, at random."""
    seed: int = 0
    """Of the initial weights, the order of the cases and the choice of the validation cases."""

    def __post_init__(self) -> None:
        for names, kind, fits, what in _RANGES:
            for name in names:
                value = getattr(self, name)
                if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
                    option = name.replace("_", "-")
                    raise LrsaError(f"--train.{option} must be {what}, not {value}")
                if kind in (int, (int, type(None))) and value is not None and value >= LARGEST:
                    raise LrsaError(f"--train.{name.replace('_', '-')} must be below {LARGEST}, not {value}")
        choices = (
            ("optimiser", Optimiser),
            ("precision", Precision),
            ("coordinates", Coordinates),
            ("statistics", StatisticsOf),
        )
        for name, kind in choices:
            if getattr(self, name) not in get_args(kind):
                raise LrsaError(f"--train.{name} is one of {', '.join(get_args(kind))}")
        check_loss(self.loss)
        check_metrics(self.metrics)
        definitions(self.quantities)
        if parse(self.symmetry) and (self.statistics == "point" or self.deviations):
            tied = "--train.deviations" if self.deviations else "--train.statistics point"
            raise LrsaError(f"--train.symmetry moves what {tied} ties to its place. Leave one out")


_RANGES: tuple[tuple[tuple[str, ...], type | tuple[type, ...], Callable[[Any], bool], str], ...] = (
    (("epochs", "batch_size", "every"), int, lambda v: v >= 1, "a whole number, at least 1"),
    (
        ("points", "chunk", "steps"),
        (int, type(None)),
        lambda v: v is None or v >= 1,
        "a whole number, at least 1",
    ),
    (("minutes",), (int, float, type(None)), lambda v: v is None or 0 < v < math.inf, "a positive number"),
    (("seed",), int, lambda v: v >= 0, "a whole number, at least 0"),
    (("max_lr", "muon_lr", "clip"), (int, float), lambda v: 0 < v < math.inf, "a positive number"),
    (
        ("weight_decay", "gradient_weight", "noise"),
        (int, float),
        lambda v: 0 <= v < math.inf,
        "a number, at least 0",
    ),
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

    def __post_init__(self) -> None:
        for name in ("samples", "test", "stride"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise LrsaError(f"{name} must be at least 1, not {value}")


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides the outcome of a run."""

    data: DataConfig
    schema: Schema
    model: str
    options: Mapping[str, Any]
    """Of the model, with what the data decided."""
    train: TrainConfig
    weighted: bool | None = None
    """Whether the cases had quadrature weights that differ, and these were used; None: an older run."""
    recipe: str | None = None
    """ours or paper; None: an older run, trained as the paper says."""
    scale: str | None = None
    ensemble: int = 1
    """Members of other seeds that share the folder."""
    member: int = 0
    """Which of them this is; the validation cases are those of the first."""
    init: str | None = None
    """The run whose weights it starts from."""
    device: str = "cpu"
    threads: int | None = None
    path: str | None = None
    """What computed its blocks: kernels, or torch and why; None: an older run, torch."""
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def begin(self, run: Path) -> None:
        """Save it in a folder that is no run yet, and that no other process makes one of."""
        with alone(run.resolve()):
            check_new(run)
            self.save(run)

    def save(self, run: Path) -> None:
        with atomic(run / FILE) as temporary:
            temporary.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1))

    def dataset(self, split: str) -> Dataset:
        """The cases of a split, unless the file has come to hold others."""
        found = Dataset(Path(self.data.path), split)
        # Which are the tests is drawn anew by an import: those that were learned from could be among them.
        known = self.schema.provenance.get("cases")
        if known is not None and found.schema.provenance.get("cases") != known:
            raise LrsaError(
                f"{self.data.path} no longer has the cases that this run was trained on. Import those"
                " again, or train on the new ones"
            )
        return found

    @staticmethod
    def load(run: Path) -> "RunConfig":
        values = read_config(run)
        with naming_damage(run):
            if "checkpoint" in values["train"]:  # what it was called before 0.2
                values["train"]["recompute"] = values["train"].pop("checkpoint")
            made = RunConfig(
                data=DataConfig(**values.pop("data")),
                schema=Schema.from_json(json.dumps(values.pop("schema"))),
                train=TrainConfig(**values.pop("train")),
                **values,
            )
            check_threads(made.threads)
            if not conforms(made, RunConfig) or not 0 <= made.member <= made.train.seed:
                raise TypeError("an entry is of another type")
        return made


def check_new(run: Path) -> None:
    """Refuse a folder that is a run already."""
    if (run / "config.json").exists():
        raise LrsaError(f"{run} is a run already. Go on with `lrsa resume {run}`, or name another --out")


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    import numpy
    import torch

    from lrsa.version import __version__

    return {
        "lrsa": __version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def option_names(config: type) -> list[str]:
    return [f.name for f in fields(config)]
