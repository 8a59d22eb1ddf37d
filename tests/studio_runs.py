"""A folder with a small trained run of the flow around a cylinder, which has two parameters."""

import shutil
from pathlib import Path

import pytest
import torch
from cylinder import write
from small import OPTIONS, quick

from lrsa.evaluation.evaluate import evaluate
from lrsa.studio.exploring import Exploration

RINGS, SPOKES = 6, 16


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained for two epochs on ten cases, and evaluated."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    data = write(folder / "cylinder.h5", train=10, test=3, rings=RINGS, spokes=SPOKES)
    quick(data, folder / "flow", options=OPTIONS)
    evaluate(folder / "flow").save(folder / "flow" / "evaluation.json")
    return folder


@pytest.fixture
def own(runs: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(runs, tmp_path / "runs"))


@pytest.fixture
def exploration(runs: Path) -> Exploration:
    made = Exploration(runs / "flow")
    made.choose(0)
    return made
