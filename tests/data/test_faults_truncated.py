"""A data file that is cut off while it is in use: said in one line, never a signal."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cases import make_case
from small import WORDS, assert_bit_equal, grid_cases, quick, ragged_cases, weights, write

from lrsa.cli.program import main
from lrsa.console import Advance
from lrsa.data.store import Dataset
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.training import fit as fitting
from lrsa.training.checkpoint import STATE, load_standing

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("cases", [grid_cases, ragged_cases])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_case_of_a_file_that_was_cut_off_is_refused(
    home: Path, cases: Callable[[int], list[PointSet]], share: float
) -> None:
    path = write(home / "d.h5", cases(40))
    data = Dataset(path, "train")
    assert data[39].u is not None
    os.truncate(path, int(share * path.stat().st_size))
    with pytest.raises(LrsaError, match=r"d\.h5 was cut off while it was read"):
        data[39]


def test_a_file_that_was_replaced_by_a_shorter_one_is_read_on(home: Path) -> None:
    """What is mapped is the file that was opened, whatever has its name now."""
    path = home / "d.h5"
    write_dataset(path, {"train": [make_case(i, 500) for i in range(4)]})
    data = Dataset(path, "train")
    write_dataset(path, {"train": [make_case(0, 3)]})
    assert len(data[3]) == 500
    path.unlink()
    assert len(data[3]) == 500


def test_a_training_says_so_and_goes_on_with_the_file_as_it_was(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home / "d.h5", grid_cases(30), grid_cases(2, seed=1))
    whole = path.read_bytes()

    @contextmanager
    def cutting(_: str) -> Iterator[Advance]:
        def advance(done: int, total: int, words: str) -> None:
            if done == 20:
                time.sleep(0.3)  # the thread that reads ahead has as many batches as it may, and rests
                os.truncate(path, 4096)

        yield advance

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "bar", cutting)
        assert main(["train", str(path), "--out", "run", "--train.epochs", "5", *WORDS]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "d.h5 was cut off while it was read" in line
    path.write_bytes(whole)
    assert 0 < load_standing(Path("run") / STATE).epoch < 5
    assert main(["resume", "run"]) == 0
    quick(path, "whole", epochs=5)
    assert_bit_equal(weights(Path("run")), weights(Path("whole")))
