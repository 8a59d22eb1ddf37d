"""The commands of the manual: those of files.md run here, the tutorial in its own test, others are known."""

import inspect
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import lrsa
from lrsa.cli.program import COMMANDS, main
from lrsa.data.store import Dataset

pytest_plugins = ["small_runs"]
ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
RUN_ELSEWHERE = {
    "tutorial.md": "tests/test_tutorial.py",
    "files.md": "this file",
    "export.md": "test_export.py",
}
"""Pages whose shell blocks run as they stand, and where."""
ALIKE = {
    "scale.md": "several machines, Slurm, Dask; tests/parallel does the same with processes of this one",
    "service.md": "a service that stays; tests/studio/test_service.py starts and calls one",
}
"""Pages whose commands need more than a test has, and where the like of them runs."""
LONG = {
    "make demo": "installs and trains for minutes",
    "make test": "installs and runs this very suite",
    "pip install lrsa[studio]": "installs",
    "lrsa studio": "a page that stays; tests/studio/test_browser.py opens one",
    "lrsa studio runs": "the same",
    "python examples/cylinder.py": "trains for a minute; a slow test of tests/test_examples.py",
}
"""Lines of other shell blocks, and why they are not run."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def shell_lines(page: Path) -> list[str]:
    lines = [
        line for kind in ("sh", "", "bash") for block in blocks(page, kind) for line in block.splitlines()
    ]
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


def inline(page: Path) -> list[str]:
    """Commands in the running text, such as `lrsa train my.h5 --folds 5`."""
    outside = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    return [found for found in re.findall(r"`([^`]+)`", outside) if found.startswith("lrsa ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_block_runs_in_a_test_or_is_known_to_take_long(page: Path):
    known = {**RUN_ELSEWHERE, **ALIKE}
    unknown = [line for line in shell_lines(page) if page.name not in known and line not in LONG]
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_the_text_has_a_name_and_options_that_exist(page: Path):
    for command in inline(page):
        words = command.split()[1:]
        name = " ".join(words[:2]) if words[0] == "data" and len(words) > 1 else words[0]
        if name in ("COMMAND", "--help"):
            continue
        assert name in COMMANDS, command
        known = {f"--{key.replace('_', '-')}" for key in inspect.signature(COMMANDS[name].run).parameters}
        known |= {"--model", "--no-weights", "--help", "--debug"}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        others = {word for word in given - known if not word.startswith(("--train.", "--model."))}
        assert not others, command


def test_the_page_about_files_runs_as_it_stands(home: Path):
    page = (ROOT / "docs" / "files.md").read_text()
    for folder in ("clouds/train", "clouds/test", "rooms", "bodies"):
        Path(folder).mkdir(parents=True)
    names: dict[str, object] = {}
    for language, text in re.findall(r"```(python|sh)\n(.*?)```", page, re.S):
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            assert main([*shlex.split(line)[1:], *(["--threads", "1"] if " train " in line else [])]) == 0, (
                line
            )
    assert Dataset(Path("clouds.h5"), "test").schema.provenance["cases"]["test"] == [
        f"cloud_{i:02d}" for i in (9, 10, 11)
    ]
    with np.load("room_0.npz") as made:
        assert made["T_predicted"].shape == (60,)
    assert lrsa.load("runs/bodies").schema.names.inputs == ("normal_x", "normal_y", "normal_z")
    assert Path("runs/clouds/folds.md").exists()
