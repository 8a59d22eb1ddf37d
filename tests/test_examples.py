"""The examples are complete programs: they run, they do what they say, and they leave nothing behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "examples"


def number(name: str, pattern: str, folder: Path) -> float:
    """The number that an example prints."""
    command = [sys.executable, str(FOLDER / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())
    said = re.search(pattern, done.stdout)
    assert said, done.stdout
    return float(said[1])


def test_the_program_in_the_readme_runs(tmp_path: Path):
    readme = (FOLDER.parent / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    check = "\nassert u.shape == (300, 1)\n"
    command = [sys.executable, "-c", program + check]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_example_is_tested():
    assert {path.name for path in FOLDER.glob("*.py")} == {"block.py", "cylinder.py", "own_data.py"}


def test_the_block_streams_what_it_computes_whole(tmp_path: Path):
    assert number("block.py", r"equals whole to (\S+)", tmp_path) < 1e-5


def test_a_surrogate_of_own_data_learns(tmp_path: Path):
    assert number("own_data.py", r"new case: (\S+)", tmp_path) < 0.15


@pytest.mark.slow
def test_the_flow_around_a_cylinder_is_learned(tmp_path: Path):
    """A minute of training; the run stays, for `lrsa studio`."""
    command = [sys.executable, str(FOLDER / "cylinder.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = re.search(r"new case: (\S+)", done.stdout)
    assert said, done.stdout
    assert float(said[1]) < 0.05
    assert (tmp_path / "runs" / "cylinder" / "model.safetensors").exists()
