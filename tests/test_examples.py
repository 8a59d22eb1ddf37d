"""The examples are complete programs: they run, they do what they say, and they leave nothing behind."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "examples"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def number(pattern: str, said: str) -> float:
    """That an example prints."""
    found = re.search(pattern, said)
    assert found, said
    return float(found[1])


def test_the_program_in_the_readme_runs():
    readme = (FOLDER.parent / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.S)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(program, names)
    assert names["u"].shape == (300, 1)


def test_every_example_is_tested():
    assert {path.name for path in FOLDER.glob("*.py")} == {"block.py", "cylinder.py", "own_data.py"}


@pytest.mark.parametrize(
    ("name", "pattern", "most"),
    [("block.py", r"equals whole to (\S+)", 1e-5), ("own_data.py", r"new case: (\S+)", 0.15)],
)
def test_an_example_does_what_it_says_and_leaves_nothing(
    name: str, pattern: str, most: float, folder: Path, capsys: pytest.CaptureFixture[str]
):
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert number(pattern, capsys.readouterr().out) < most
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_the_flow_around_a_cylinder_is_learned(folder: Path):
    """A minute of training, as a process; the run stays, for `lrsa studio`."""
    command = [sys.executable, str(FOLDER / "cylinder.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert number(r"new case: (\S+)", done.stdout) < 0.05
    assert (folder / "runs" / "cylinder" / "model.safetensors").exists()
