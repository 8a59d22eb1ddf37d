"""What a problem is: a PDE benchmark with its fields, its protocol, its scales and its two sources of data.

A problem is one folder: `problem.py` says what it is, `solver.py` makes its data from the equation (the
source *generated*), `official.py` reads the published files (the source *official*). Either may be missing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from lrsa.data.store import Schema
from lrsa.errors import LrsaError, nearest
from lrsa.files import data_home
from lrsa.objectives.named import Quantity
from lrsa.pointset import Names, PointSet

Source = Literal["generated", "official"]
Splits = Mapping[str, Sequence[PointSet]]
SMALL: Mapping[str, Any] = {"width": 64, "depth": 4, "heads": 4, "rank": 32, "ffn_hidden": 128}
"""The model of the small scales."""
LOCAL: Mapping[str, Any] = {**SMALL, "local": "depthwise"}
"""The same on grids."""
SHORT: Mapping[str, Any] = {"batch_size": 4, "max_lr": 2e-3, "validation": 0.0}
"""The training of the small scales: all training cases and the last epoch, as at the scale of the paper."""


class Solver(Protocol):
    """A frozen dataclass of the solver's parameters that makes one case from a random generator."""

    names: ClassVar[Names]

    def sample(self, rng: np.random.Generator) -> PointSet: ...


@dataclass(frozen=True)
class Official:
    """The published files of a problem, relative to one folder, and their reader."""

    files: tuple[str, ...]
    """Any of them tells the problem; * stands for any name."""
    read: Callable[[Path, int], Splits]
    """(folder, stride) -> splits of the published protocol."""
    stride: int = 1
    """The published one: every so-many-th point along each axis of the files."""


@dataclass(frozen=True)
class Scale:
    """A size at which a problem is trained: the data it sees and the options it sets."""

    about: str
    samples: int
    test: int
    fidelity: str = "default"
    """Of the generated set."""
    stride: Mapping[Source, int] = field(default_factory=lambda: {"generated": 1, "official": 1})
    """Every so-many-th point along each axis of what the source has."""
    preset: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    """Options of the LRSA model, over the preset."""
    train: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """One benchmark of the paper, or a new one."""

    name: str
    about: str
    scales: Mapping[str, Scale]
    samples: int
    test: int
    protocol: str = "static"
    solver: Callable[..., Solver] | None = None
    """Makes the solver from the parameters of a fidelity; imports it, so that looking at a list does not."""
    version: int = 1
    """Of the generator: raised when its samples change."""
    fidelities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    official: Official | None = None
    loss: str = "relative-l2"
    """The published one, as `objectives.words` spells it."""
    metrics: str = ""
    """What is measured besides relative L2, spelled likewise."""
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    """What its metrics know by name, such as the drag of a case."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of a case by fidelity, where making a set takes long."""
    symmetry: str = ""
    """Its exact ones, as `data.symmetry` names them: of the equation, and of the solver as far as it goes."""
    paper_error: float | None = None
    """The relative L2 error that the paper prints for LRSA (on the official files)."""

    def solver_at(self, fidelity: str) -> Solver:
        if self.solver is None:
            raise LrsaError(f"{self.name} has no solver. Import its official files with `lrsa data import`")
        if fidelity not in self.fidelities:
            raise LrsaError(
                f'{self.name} has no fidelity "{fidelity}".{nearest(fidelity, self.fidelities)}'
                f" There are: {', '.join(self.fidelities)}"
            )
        return self.solver(**self.fidelities[fidelity])

    def cost(self, fidelity: str, cases: int) -> str:
        """What is said of the time that making so many cases takes, where it is long."""
        minutes = self.seconds.get(fidelity, 0.0) * cases / 60
        return f" (about {minutes:.0f} CPU minutes)" if minutes >= 1 else ""

    def path(self, fidelity: str = "default", seed: int = 0) -> Path:
        """Where the generated set is cached."""
        return data_home() / f"{self.name}-{fidelity}-seed{seed}.h5"

    @property
    def official_path(self) -> Path:
        """Where the official set is registered."""
        return data_home() / f"{self.name}-official.h5"

    def schema(self, fidelity: str, seed: int) -> Schema:
        """Of the generated set."""
        solver = self.solver_at(fidelity)
        provenance = {
            "version": self.version,
            "fidelity": fidelity,
            "seed": seed,
            "parameters": asdict(solver),  # pyright: ignore[reportArgumentType]
        }
        return Schema(self.name, "generated", self.protocol, solver.names, provenance)

    def scale(self, name: str) -> Scale:
        if name not in self.scales:
            there = ", ".join(self.scales)
            raise LrsaError(
                f'{self.name} has no scale "{name}".{nearest(name, self.scales)} There are: {there}'
            )
        return self.scales[name]
