"""The golden files: each is explained and compared with, and where one is missing nothing passes."""

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from references import files, golden_folder, load

TESTS = Path(__file__).parent
PARITY = sorted(TESTS.rglob("test_parity_*.py"))


def compared(module: ModuleType) -> set[Path]:
    """The golden files that the tests of a module are parametrised over."""
    marks = [mark for test in vars(module).values() for mark in getattr(test, "pytestmark", [])]
    assert {mark.name for mark in marks} == {"parametrize"}, module
    return {path for mark in marks for path in mark.args[1]}


def test_every_golden_file_is_compared_with(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in {path.parent for path in PARITY}:
        monkeypatch.syspath_prepend(folder)
    found = set().union(*(compared(import_module(path.stem)) for path in PARITY))
    assert found == set(golden_folder().glob("*.safetensors"))


def test_no_parity_test_can_be_skipped() -> None:
    """What does not know pytest cannot skip."""
    assert [path.name for path in PARITY if "pytest" in path.read_text()] == []


def test_every_golden_file_is_explained() -> None:
    """So one that is lost is missed, also where the tests name its stem alone."""
    page = (TESTS / "golden" / "README.md").read_text()
    explained = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert explained == {path.stem for path in (TESTS / "golden").glob("*.safetensors")}


def test_a_golden_file_missing_from_another_folder_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRSA_GOLDEN", str(tmp_path))
    (path,) = files("norm_darcy").args[1]
    assert path == tmp_path / "norm_darcy.safetensors"
    with pytest.raises(AssertionError, match="no golden file"):
        load(path)
