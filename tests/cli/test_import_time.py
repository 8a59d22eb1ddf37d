"""Nobody waits for what he does not use."""

import importlib
import json
import subprocess
import sys

import pytest

import lrsa

HEAVY = {"torch", "tyro", "matplotlib", "h5py", "scipy", "rich", "pyvista"}


def loaded(program: str) -> set[str]:
    """The heavy modules that a program has imported when it ends."""
    check = "import sys, json; print(); print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{check}"], capture_output=True, text=True, check=True
    )
    return HEAVY & set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_alone_imports_nothing_heavy() -> None:
    assert loaded("import lrsa") == set()
    assert loaded("import lrsa; lrsa.LrsaError; dir(lrsa)") == set()


@pytest.mark.parametrize("word", ["--help", "--version", "data"])
def test_help_imports_nothing_heavy(word: str) -> None:
    assert loaded(f"import lrsa.cli.program; assert lrsa.cli.program.main(['{word}']) == 0") == set()


def test_data_is_read_without_torch() -> None:
    assert "torch" not in loaded("import lrsa; lrsa.open_dataset, lrsa.PointSet, lrsa.write_dataset")
    assert "torch" not in loaded("from lrsa.cli.program import main; assert main(['data', 'list']) == 0")


def test_models_are_built_without_pictures_or_the_command_line() -> None:
    assert loaded("import lrsa; lrsa.LRSA(2, 1, 1, width=8, heads=2, depth=1, rank=2)") <= {"torch"}


def test_every_name_that_is_promised_is_there() -> None:
    for name in lrsa.__all__:
        assert getattr(lrsa, name) is not None
    assert set(dir(lrsa)) == set(lrsa.__all__)
    for name, home in lrsa._HOMES.items():
        assert getattr(lrsa, name) is getattr(importlib.import_module(f"lrsa.{home}"), name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lrsa.nothing  # noqa: B018
