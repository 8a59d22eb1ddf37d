"""The commands of the tutorial, as they stand there, on fewer cases: VTU folder to predicted VTU."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import pyvista

from lrsa.cli.program import main
from lrsa.data.store import Dataset

ROOT = Path(__file__).parent.parent
SMALLER = {
    1: {"--cases 300": "--cases 12", "train plates.h5": "train plates.h5 --train.epochs 2"},
    2: {"--cases 400": "--cases 12", "--train.epochs 40": "--train.epochs 1"},
    3: {"--minutes 30": "--minutes 0.05", "--cases 60": "--cases 16"},
}
PART = "\n# Part"
"""Where the second part begins, and the third."""


def commands(part: int = 1) -> list[list[str]]:
    """Every line of the shell blocks of a part of the page, made smaller."""
    page = (ROOT / "docs" / "tutorial.md").read_text().split(PART)[part - 1]
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
    text = "\n".join(lines)
    for full, small in SMALLER[part].items():
        assert full in text
        text = text.replace(full, small)
    return [shlex.split(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader is, with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LRSA_HOME", str(tmp_path / "home"))
    return tmp_path


def run(words: list[str]) -> None:
    program, *rest = words
    rest = [str(ROOT / word) if word.startswith("docs/") else word for word in rest]
    if program == "lrsa":
        assert main(rest) == 0
    else:
        assert program == "python"
        subprocess.run([sys.executable, *rest], check=True)


def test_from_a_folder_of_meshes_to_meshes_with_predictions(folder: Path):
    first, third = commands(), commands(3)
    assert [words[1] for words in first if words[0] == "lrsa"] == ["data", "train", "predict"]
    assert [words[1] for words in third if words[0] == "lrsa"] == ["tune", "data", "train"]
    for words in first:
        run(words)
    assert (folder / "runs" / "plates" / "report.html").exists()
    for i in range(4):
        before = pyvista.read(folder / "new" / f"plate_{i:03d}.vtu")
        after = pyvista.read(folder / "predicted" / f"plate_{i:03d}.vtu")
        assert np.array_equal(before.points, after.points)
        assert np.array_equal(before.cells, after.cells)
        for name in before.point_data:
            assert np.array_equal(before.point_data[name], after.point_data[name])
            error = after.point_data[f"{name}_predicted"] - before.point_data[name]
            np.testing.assert_allclose(after.point_data[f"{name}_error"], error, atol=1e-5)
        assert not after.point_data["displacement_predicted"][:, 2].any()


@pytest.mark.slow
def test_from_airfoils_to_their_lift_with_an_interval(folder: Path):
    for words in commands(2):
        run(words)
    table = (folder / "with-lift" / "quantities.csv").read_text().splitlines()
    assert table[0] == 'case,lift,"lift, interval",suction,"suction, interval"'
    assert len(table) == 5
    after = pyvista.read(folder / "with-lift" / "airfoil_000.vtu")
    assert {"cp_predicted", "cp_error", "cp_spread", "cp_interval"} <= set(after.point_data)
    report = (folder / "runs" / "airfoils" / "report.html").read_text()
    assert "Quantities and intervals" in report
    assert "cp over x" in report


def test_one_mesh_and_two_numbers_are_interpolated(folder: Path) -> None:
    for words in commands(3)[1:]:
        run(words)
    found = json.loads((folder / "runs" / "fins" / "evaluation.json").read_text())
    assert found["relative_l2"] < 0.05 * found["nulls"]["mean field"]
    assert Dataset(folder / "fins.h5", "train").grid == (11, 41)


@pytest.mark.slow
def test_several_models_on_a_budget(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine candidates: a minute, however few their steps are."""
    monkeypatch.setattr("lrsa.training.tune.SHORTEST", 1e-3)
    for words in [*commands()[:1], *commands()[2:3], *commands(3)[:1]]:
        run(words)
    kept = json.loads((folder / "runs" / "tuned" / "tune.json").read_text())
    assert len(kept["trials"]) > len(kept["candidates"]) >= 9
    assert (folder / "runs" / "tuned" / "report.html").exists()
