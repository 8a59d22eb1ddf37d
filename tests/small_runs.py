"""Fixtures: a home of its own for each test, and one small trained run for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small import WORDS, grid_cases, write

from lrsa.cli.program import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder with a cache of its own, and one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("LRSA_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    yield folder
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve cases of 8 × 8 points, two of them for testing."""
    return write(tmp_path_factory.mktemp("data") / "small.h5", grid_cases(10), grid_cases(2, seed=1))


@pytest.fixture(scope="session")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `lrsa train`: three epochs, evaluated, with its report."""
    run = tmp_path_factory.mktemp("runs") / "trained"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LRSA_HOME", str(tmp_path_factory.mktemp("home")))
        words = [str(data), "--out", str(run), "--threads", "1", "--train.epochs", "3", *WORDS]
        assert main(["train", *words]) == 0
    return run
