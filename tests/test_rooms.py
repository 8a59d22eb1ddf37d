"""The contract of the house: imports point one way, and the check of it can fail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
STRINGS = {"__init__.py", "models/registry.py", "problems/catalogue.py"}
"""Where modules are imported by their name in a string: what users import, the registry, the discovery."""


def lint(package: Path) -> subprocess.CompletedProcess[str]:
    """`lint-imports` of `make lint`, on the package in this folder."""
    program = Path(sys.executable).with_name("lint-imports")
    command = [program, "--config", ROOT / ".importlinter", "--no-cache", "--no-logo"]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    return subprocess.run(command, capture_output=True, text=True, cwd=package, env=environment)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package to plant something in."""
    shutil.copytree(ROOT / "src" / "lrsa", tmp_path / "lrsa", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize(
    ("where", "line", "said"),
    [
        (
            "data/batch.py",
            "from lrsa.training.fit import fit",
            "lrsa.data is not allowed to import lrsa.training",
        ),
        (
            "models/attention.py",
            "def late():\n    import lrsa.streaming.stream",
            "lrsa.models is not allowed",
        ),
        ("problems/darcy/solver.py", "from lrsa.models.create import create_model", "do not know the models"),
        (
            "mesh/reading.py",
            "def late():\n    from lrsa.mesh import survey",
            "No two parts import each other",
        ),
    ],
)
def test_a_wrong_import_is_refused(house: Path, where: str, line: str, said: str) -> None:
    path = house / "lrsa" / where
    path.write_text(f"{path.read_text()}\n{line}\n")
    done = lint(house)
    assert done.returncode != 0
    assert said in done.stdout


def test_a_room_that_the_contract_does_not_know_is_refused(house: Path) -> None:
    (house / "lrsa" / "attic.py").touch()
    assert lint(house).returncode != 0


def test_no_exception_is_left() -> None:
    assert "ignore_imports" not in (ROOT / ".importlinter").read_text()
    assert lint(ROOT / "src").returncode == 0


def test_no_problem_imports_another_problem() -> None:
    graph = grimp.build_graph("lrsa", cache_dir=None)
    folders = [m for m in graph.find_children("lrsa.problems") if graph.find_children(m)]
    assert len(folders) >= 6
    for one in folders:
        for other in folders:
            if one != other:
                assert not graph.find_shortest_chains(one, other), (one, other)


def test_modules_are_imported_by_a_string_in_three_places_only() -> None:
    package = ROOT / "src" / "lrsa"
    by_string = re.compile(r"importlib|__import__|pkgutil")
    found = {str(p.relative_to(package)) for p in package.rglob("*.py") if by_string.search(p.read_text())}
    assert found == STRINGS
