"""Every benchmark with its own solver, on few points: what a table of all models trains on in no time."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lrsa.data.making import case_rng
from lrsa.data.writing import write_dataset
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Scale

SMALL: dict[str, dict[str, Any]] = {
    "darcy": {"resolution": 17, "stride": 1},
    "elasticity": {"refinement": 1},
    "airfoil": {"tolerance": 3e-2},
    "pipe": {"elements": 8},
    "navier-stokes": {"resolution": 17, "stride": 1, "frames": 11},
    "plasticity": {"young": 12.5e3, "columns": 20, "rows": 6},
}
TINY = {"width": 16, "depth": 2, "heads": 2, "rank": 9}


@pytest.fixture
def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every benchmark with its own solver, on few points: three training cases and a test case."""
    monkeypatch.setattr("lrsa.experiments.cells.ROUNDS", 1)
    for name, parameters in SMALL.items():
        stride = 10 if name == "airfoil" else 1
        scale = Scale(
            "tiny",
            3,
            1,
            "fast",
            {"generated": stride, "official": stride},
            model=TINY,
            train={"epochs": 1, "batch_size": 2},
        )
        small = replace(CATALOGUE[name], fidelities={"fast": parameters}, scales={"demo": scale})
        monkeypatch.setitem(CATALOGUE, name, small)
        solver = small.solver_at("fast")
        cases = [solver.sample(case_rng(name, 1, 0, "train", i)) for i in range(4)]
        # Made here: the workers of `lrsa data make` have a catalogue of their own.
        write_dataset(small.path("fast"), {"train": cases[:3], "test": cases[3:]}, small.schema("fast", 0))
