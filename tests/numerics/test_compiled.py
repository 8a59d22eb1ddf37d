"""Machine code on disk: taken again, and never when any of its sources has changed."""

import os
import subprocess
import sys
from pathlib import Path

CALLER = """
from called import FACTOR, twice
from lrsa.numerics.compiled import compiled

@compiled
def value(x):
    return FACTOR * twice(x)

print(value(1.0), sum(value.stats.cache_hits.values()))
"""
CALLED = """
from lrsa.numerics.compiled import compiled

FACTOR = {factor}

@compiled
def twice(x):
    return {twice}
"""


def value(folder: Path, factor: int, twice: str) -> tuple[float, int]:
    """What a new process computes, and how often it found the code on disk."""
    folder.joinpath("called.py").write_text(CALLED.format(factor=factor, twice=twice))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, str(folder / "caller.py")]
    said = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.split()
    return float(said[0]), int(said[1])


def test_code_is_compiled_again_when_a_source_beside_it_changes(tmp_path: Path) -> None:
    """The file of the function itself stays as it was: numba would take the old code."""
    tmp_path.joinpath("caller.py").write_text(CALLER)
    assert value(tmp_path, 1, "2 * x") == (2.0, 0)
    assert value(tmp_path, 1, "2 * x") == (2.0, 1)
    assert value(tmp_path, 1, "x + x + x") == (3.0, 0)
    assert value(tmp_path, 5, "2 * x") == (10.0, 0)
    assert value(tmp_path, 1, "2 * x") == (2.0, 1), "the code of the first sources is still there"
