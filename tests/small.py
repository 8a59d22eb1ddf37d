"""A data set that is learned in seconds (u is f smoothed, on 8 × 8 points), and how commands are tried."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import lrsa
from lrsa.cli.program import main
from lrsa.data.store import Schema
from lrsa.data.writing import write_dataset
from lrsa.pointset import Names, PointSet

ROOT = Path(__file__).parent.parent
SIDE = 8
NAMES = Names(("x", "y"), ("a",), ("p",), units={"x": "m", "y": "m", "a": "1", "p": "Pa"})
OPTIONS = {"width": 16, "depth": 1, "heads": 2, "rank": 8, "local": "pointwise"}
"""Of a model that trains in no time."""
WORDS = [word for name, value in OPTIONS.items() for word in (f"--model.{name}", str(value))]
"""The same, as typed."""

Change = Callable[[PointSet, np.random.Generator], PointSet]


def grid_points(side: int = SIDE) -> np.ndarray:
    """(side², 2) cell centres of the unit square."""
    centres = (np.arange(side) + 0.5) / side
    return np.stack(np.meshgrid(centres, centres, indexing="ij"), -1).reshape(-1, 2).astype(np.float32)


def smooth_case(rng: np.random.Generator, x: np.ndarray) -> PointSet:
    """f = Σ aₖ cos(k·πx), u = Σ aₖ / (1 + |k|²) cos(k·πx) for six random aₖ."""
    waves = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)]
    shapes = np.stack([np.cos(np.pi * i * x[:, 0]) * np.cos(np.pi * j * x[:, 1]) for i, j in waves])
    a = rng.standard_normal(len(waves))
    damping = np.array([1 / (1 + i * i + j * j) for i, j in waves])
    f, u = (a @ shapes)[:, None], ((a * damping) @ shapes)[:, None]
    return PointSet(x, f.astype(np.float32), u.astype(np.float32), names=NAMES)


def grid_cases(count: int, seed: int = 0, side: int = SIDE) -> list[PointSet]:
    """Cases on one grid."""
    rng = np.random.default_rng(seed)
    return [replace(smooth_case(rng, grid_points(side)), grid=(side, side)) for _ in range(count)]


def ragged_cases(count: int, seed: int = 0) -> list[PointSet]:
    """Cases of 20 to 40 random points each."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(20, 40, count)
    return [smooth_case(rng, rng.random((n, 2)).astype(np.float32)) for n in sizes]


def frames(case: PointSet, count: int) -> PointSet:
    """The case decaying in time: u(t) = exp(-t) u."""
    assert case.u is not None
    times = np.linspace(0, 1, count, dtype=np.float32)
    return replace(case, u=np.exp(-times)[:, None, None] * case.u, times=times)


def write(
    path: Path,
    train: Sequence[PointSet],
    test: Sequence[PointSet] = (),
    protocol: str = "static",
) -> Path:
    """A data set of these cases."""
    splits = {"train": train, "test": test}
    write_dataset(path, splits, Schema(path.stem, protocol=protocol, names=train[0].names))
    return path


def quick(data: Path, out: Path | str, **settings: Any) -> lrsa.Surrogate:
    """A short training of a small model."""
    options = {**OPTIONS, **settings.pop("options", {})}
    return lrsa.fit(data, out=out, **{"epochs": 2, "options": options, **settings})


def weights(run: Path, kind: str = "model") -> dict[str, Tensor]:
    return load_file(run / f"{kind}.safetensors")


def assert_bit_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


def differ(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return any(not torch.equal(ours[name], theirs[name]) for name in ours)


def copy_run(run: Path, to: Path) -> Path:
    """A run to be damaged."""
    shutil.copytree(run, to, ignore=shutil.ignore_patterns("figures", "report.html"))
    return to


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def say(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """What a command that must succeed prints."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.err == ""
    return said.out


def refusal(capsys: pytest.CaptureFixture[str], *words: object, code: int = 2) -> str:
    """The one line on stderr of a command that must refuse; it leaves the working folder as it was."""
    assert Path.cwd() != ROOT, "ask for the fixture `home`: all files of the working folder are read"
    before = files(Path.cwd())
    capsys.readouterr()
    found = main([str(word) for word in words])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert found == code, lines[0]
    assert lines[0].startswith("lrsa: ")
    assert "This is a bug" not in lines[0]
    if code == 2:
        assert files(Path.cwd()) == before
    return lines[0]
