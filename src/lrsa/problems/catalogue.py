"""The catalogue of benchmarks: where the data comes from, how it is learned, at which scales."""

import importlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lrsa.data.store import Schema, data_home
from lrsa.errors import LrsaError, nearest
from lrsa.pointset import Names, PointSet


class Solver(Protocol):
    """A frozen dataclass of the solver's parameters that makes one case from a random generator."""

    names: Names

    def sample(self, rng: np.random.Generator) -> PointSet: ...


@dataclass(frozen=True)
class Scale:
    """A size at which a benchmark is trained: the data it sees and the options it sets."""

    about: str
    samples: int
    test: int
    fidelity: str = "default"
    stride: int = 1
    preset: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    """Options of the LRSA model, over the preset."""
    train: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of the paper."""

    name: str
    about: str
    solver: str
    """`module:Class`, imported when data is made."""
    version: int
    """Of the generator: raised when its samples change."""
    fidelities: Mapping[str, Mapping[str, Any]]
    scales: Mapping[str, Scale]
    samples: int
    test: int
    paper_error: float
    """The relative L2 error that the paper prints for LRSA (on the official files)."""
    protocol: str = "static"

    def solver_at(self, fidelity: str) -> Solver:
        if fidelity not in self.fidelities:
            raise LrsaError(
                f'{self.name} has no fidelity "{fidelity}".{nearest(fidelity, self.fidelities)}'
                f" There are: {', '.join(self.fidelities)}"
            )
        module, _, name = self.solver.partition(":")
        return getattr(importlib.import_module(module), name)(**self.fidelities[fidelity])

    def path(self, fidelity: str = "default", seed: int = 0) -> Path:
        """Where the generated set is cached."""
        return data_home() / f"{self.name}-{fidelity}-seed{seed}.h5"

    def schema(self, fidelity: str, seed: int) -> Schema:
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


_SMALL = {"width": 64, "depth": 4, "heads": 4, "rank": 32, "ffn_hidden": 128}
_LOCAL = {**_SMALL, "local": "depthwise"}

CATALOGUE: dict[str, Benchmark] = {
    "darcy": Benchmark(
        name="darcy",
        about="Darcy flow on the unit square: permeability -> pressure, 85 x 85 points",
        solver="lrsa.problems.darcy.solver:Darcy",
        version=1,
        fidelities={
            "default": {"resolution": 421, "stride": 5},
            "fast": {"resolution": 85, "stride": 4},
        },
        samples=1000,
        test=200,
        paper_error=0.0043,
        scales={
            "demo": Scale(
                about="500 cases of 22 x 22 points, solved on 85 x 85; width 64, depth 4, rank 32, depthwise",
                samples=500,
                test=100,
                fidelity="fast",
                model=_LOCAL,
                train={"epochs": 12, "max_lr": 2e-3, "batch_size": 4, "gradient_weight": 0.1},
            ),
            "cpu": Scale(
                about="1000 cases of 43 x 43 points, solved on 421 x 421; model as in demo",
                samples=1000,
                test=200,
                stride=2,
                model=_LOCAL,
                train={"epochs": 16, "max_lr": 2e-3, "batch_size": 4, "gradient_weight": 0.1},
            ),
            "paper": Scale(
                about="1000 cases of 85 x 85 points, the published configuration",
                samples=1000,
                test=200,
                preset="darcy",
                train={"gradient_weight": 0.1, "clip": 0.1, "validation": 0.0},
            ),
        },
    ),
    "elasticity": Benchmark(
        name="elasticity",
        about="Stretched rubber cell with a random hole: its shape -> von Mises stress, 972 points",
        solver="lrsa.problems.elasticity.solver:Elasticity",
        version=1,
        fidelities={"default": {"refinement": 4}, "fast": {"refinement": 2}},
        samples=1000,
        test=200,
        paper_error=0.0033,
        scales={
            "demo": Scale(
                about="500 cases of 972 points; width 64, depth 4, rank 32",
                samples=500,
                test=100,
                fidelity="fast",
                model=_SMALL,
                train={"epochs": 15, "max_lr": 2e-3, "batch_size": 4, "weights": False},
            ),
            "cpu": Scale(
                about="1000 cases of 972 points; width 64, depth 4, rank 32",
                samples=1000,
                test=200,
                model=_SMALL,
                train={"epochs": 20, "max_lr": 2e-3, "batch_size": 4, "weights": False},
            ),
            "paper": Scale(
                about="1000 cases of 972 points, the published configuration",
                samples=1000,
                test=200,
                preset="elasticity",
                train={"clip": 0.1, "validation": 0.0, "weights": False},
            ),
        },
    ),
    "navier-stokes": Benchmark(
        name="navier-stokes",
        about="Forced flow on a torus, viscosity 1e-5: ten frames of vorticity -> ten more, 64 x 64 points",
        solver="lrsa.problems.navier_stokes.solver:NavierStokes",
        version=1,
        fidelities={
            "default": {"resolution": 256, "stride": 4},
            "fast": {"resolution": 128, "stride": 2},
        },
        samples=1000,
        test=200,
        paper_error=0.0484,
        protocol="autoregressive",
        scales={
            "demo": Scale(
                about="60 cases of 32 x 32 points, solved on 128²; width 64, depth 4, rank 32, depthwise",
                samples=60,
                test=20,
                fidelity="fast",
                stride=2,
                model=_LOCAL,
                train={"epochs": 25, "max_lr": 2e-3, "batch_size": 1, "weights": False},
            ),
            "cpu": Scale(
                about="200 cases of 32 x 32 points, solved on 128²; model as in demo",
                samples=200,
                test=40,
                fidelity="fast",
                stride=2,
                model=_LOCAL,
                train={"epochs": 10, "max_lr": 2e-3, "batch_size": 1, "weights": False},
            ),
            "paper": Scale(
                about="1000 cases of 64 x 64 points, the published configuration",
                samples=1000,
                test=200,
                preset="navier-stokes",
                train={"clip": 1e3, "validation": 0.0, "weights": False},
            ),
        },
    ),
    "airfoil": Benchmark(
        name="airfoil",
        about="Transonic flow around deformed NACA-0012 airfoils: C-grid -> Mach number, 221 x 51 points",
        solver="lrsa.problems.airfoil.solver:Airfoil",
        version=1,
        fidelities={"default": {"tolerance": 3e-6}, "fast": {"tolerance": 1e-4}},
        samples=1000,
        test=200,
        paper_error=0.0042,
        scales={
            "demo": Scale(
                about="120 cases of 111 x 26 points; width 64, depth 4, rank 32, depthwise, 12 frequencies",
                samples=120,
                test=40,
                fidelity="fast",
                stride=2,
                model={**_LOCAL, "frequencies": 12},
                train={"epochs": 12, "max_lr": 1e-3, "batch_size": 1, "weights": False, "coordinates": "raw"},
            ),
            "cpu": Scale(
                about="300 cases of 111 x 26 points; width 64, depth 4, rank 32, depthwise, 12 frequencies",
                samples=300,
                test=100,
                stride=2,
                model={**_LOCAL, "frequencies": 12},
                train={"epochs": 20, "max_lr": 1e-3, "batch_size": 1, "weights": False, "coordinates": "raw"},
            ),
            "paper": Scale(
                about="1000 cases of 221 x 51 points, the published configuration",
                samples=1000,
                test=200,
                preset="airfoil",
                train={"clip": 0.1, "validation": 0.0, "weights": False, "coordinates": "raw"},
            ),
        },
    ),
    "pipe": Benchmark(
        name="pipe",
        about="Steady flow through bent pipes: grid -> velocity along x, 129 x 129 points",
        solver="lrsa.problems.pipe.solver:Pipe",
        version=1,
        fidelities={"default": {"elements": 64}, "fast": {"elements": 32}},
        samples=1000,
        test=200,
        paper_error=0.0023,
        scales={
            "demo": Scale(
                about="200 cases of 17 x 17 points, solved on 65 x 65; width 64, depth 4, rank 32, depthwise",
                samples=200,
                test=40,
                fidelity="fast",
                stride=4,
                model=_LOCAL,
                train={
                    "epochs": 40,
                    "max_lr": 2e-3,
                    "batch_size": 4,
                    "weights": False,
                    "coordinates": "axis",
                },
            ),
            "cpu": Scale(
                about="500 cases of 33 x 33 points, solved on 129 x 129; model as in demo",
                samples=500,
                test=100,
                stride=4,
                model=_LOCAL,
                train={
                    "epochs": 25,
                    "max_lr": 2e-3,
                    "batch_size": 4,
                    "weights": False,
                    "coordinates": "axis",
                },
            ),
            "paper": Scale(
                about="1000 cases of 129 x 129 points, the published configuration",
                samples=1000,
                test=200,
                preset="pipe",
                train={"clip": 0.1, "validation": 0.0, "weights": False, "coordinates": "axis"},
            ),
        },
    ),
    "plasticity": Benchmark(
        name="plasticity",
        about="Forging with a random die: its shape and a time -> places and displacements, 101 x 31 points",
        solver="lrsa.problems.plasticity.solver:Plasticity",
        version=1,
        fidelities={
            "default": {},
            "fast": {"young": 12.5e3},
            "coarse": {"young": 12.5e3, "columns": 50, "rows": 14},
        },
        samples=900,
        test=80,
        paper_error=0.0005,
        protocol="time-conditioned",
        scales={
            "demo": Scale(
                about="80 cases of 26 x 8 points, solved on 51 x 15, E/16; width 64, depth 4, rank 32",
                samples=80,
                test=20,
                fidelity="coarse",
                stride=2,
                model=_LOCAL,
                train={"epochs": 6, "max_lr": 2e-3, "batch_size": 4, "weights": False},
            ),
            "cpu": Scale(
                about="200 cases of 51 x 16 points, solved on 101 x 31 with E/16; model as in demo",
                samples=200,
                test=40,
                fidelity="fast",
                stride=2,
                model=_LOCAL,
                train={"epochs": 5, "max_lr": 2e-3, "batch_size": 4, "weights": False},
            ),
            "paper": Scale(
                about="900 cases of 101 x 31 points, the published configuration",
                samples=900,
                test=80,
                preset="plasticity",
                train={"clip": 0.1, "validation": 0.0, "weights": False},
            ),
        },
    ),
}


def get(name: str) -> Benchmark:
    """The benchmark of that name, or a line that names the nearest one."""
    if name not in CATALOGUE:
        raise LrsaError(
            f'no benchmark "{name}".{nearest(name, CATALOGUE)} `lrsa data list` shows all of them'
        )
    return CATALOGUE[name]
