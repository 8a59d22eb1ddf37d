"""Every benchmark with its own solver, on few points: what a table of all models trains on in no time."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from small_solvers import SMALL

from lrsa.data.making import case_rng
from lrsa.data.writing import write_dataset
from lrsa.pointset import PointSet
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Scale

TINY = {"width": 16, "depth": 2, "heads": 2, "rank": 9}


@cache
def _solved(name: str) -> list[PointSet]:
    """Once for all tests of a process: they take seconds."""
    solver = replace(CATALOGUE[name], fidelities={"fast": SMALL[name]}).solver_at("fast")
    return [solver.sample(case_rng(name, 1, 0, "train", i)) for i in range(4)]


@pytest.fixture
def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every benchmark with its own solver, on few points: three training cases and a test case."""
    monkeypatch.setattr("lrsa.experiments.step_times.ROUNDS", 1)
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
        cases = _solved(name)
        # Made here: the workers of `lrsa data make` have a catalogue of their own.
        write_dataset(small.path("fast"), {"train": cases[:3], "test": cases[3:]}, small.schema("fast", 0))
