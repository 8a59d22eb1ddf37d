"""The commands of the manual: those of files.md run here, the tutorial in its own test, others are known; all
are understood by the program."""

import functools
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import lrsa
from lrsa.cli.program import COMMANDS, main
from lrsa.data.store import Dataset
from lrsa.objectives.quantities import definitions

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
PLACES = {"...": "all", "X": "transolver"}
"""What stands where a page leaves a word open."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def shell_lines(page: Path) -> list[str]:
    """Those of the shell blocks, without comments; a line that ends in a backslash goes on in the next."""
    text = "\n".join(block for kind in ("sh", "", "bash") for block in blocks(page, kind))
    lines = [line.partition("#")[0].strip() for line in text.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line]


def inline(page: Path) -> list[str]:
    """What the running text has between backticks, such as `lrsa train my.h5 --folds 5`."""
    outside = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    return re.findall(r"`([^`]+)`", outside)


def typed(page: Path) -> list[list[str]]:
    """What follows `lrsa` in every command of the page, also behind torchrun; mere names are left out."""
    lines = [*shell_lines(page), *(text.replace("\n", " ") for text in inline(page))]
    found = [re.fullmatch(r"(?:.*torchrun .*-m )?lrsa (.+)", line) for line in lines]
    each = [shlex.split(match[1]) for match in found if match]
    return [words for words in each if words[0] not in ("...", "COMMAND") and " ".join(words) not in COMMANDS]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands that were understood, of which none does anything now."""
    names: list[str] = []

    def silent(name: str, run: Callable[..., None]) -> Callable[..., None]:
        return functools.wraps(run)(lambda *given, **options: names.append(name))

    for name, command in COMMANDS.items():
        monkeypatch.setitem(COMMANDS, name, command._replace(run=silent(name, command.run)))
    monkeypatch.setattr("lrsa.cli.train.train", COMMANDS["train"].run)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_block_runs_in_a_test_or_is_known_to_take_long(page: Path):
    known = {**RUN_ELSEWHERE, **ALIKE}
    unknown = [line for line in shell_lines(page) if page.name not in known and line not in LONG]
    assert not unknown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_in_blocks_and_text_is_understood_to_its_last_option(page: Path, called: list[str]):
    """Also those that take too long to run here: options, their values and those of the model."""
    for words in typed(page):
        words = [PLACES.get(word, word) for word in words]
        name = " ".join(words[:2]) if words[0] == "data" else words[0]
        before = len(called)
        assert main(words) == 0, words
        assert "--help" in words or called[before:] == [name], words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_program_that_a_page_names_is_there_and_knows_the_options(page: Path):
    for line in [*shell_lines(page), *inline(page)]:
        words = line.split()
        if words[:1] != ["python"] or not words[1:2] or not words[1].endswith(".py"):
            continue
        source = (ROOT / words[1]).read_text()
        for option in (word.partition("=")[0] for word in words if word.startswith("--")):
            assert f'"{option}"' in source, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_is_python(page: Path):
    for block in blocks(page, "python"):
        compile(block, page.name, "exec")


def test_every_quantity_of_the_manual_is_understood():
    told = [
        text for page in PAGES for text in inline(page) if re.fullmatch(r"\w+=\w+:[\w:]+[@,\w.:=-]*", text)
    ]
    assert len(told) > 6
    for text in told:
        assert [each.name for each in definitions(text)] == [text.partition("=")[0]]


@pytest.mark.slow
def test_the_page_about_files_runs_as_it_stands(home: Path):
    page = (ROOT / "docs" / "files.md").read_text()
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
