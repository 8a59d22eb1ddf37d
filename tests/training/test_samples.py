"""`--samples`: the first so many training cases, of a file or of a benchmark."""

from pathlib import Path

import pytest
from small import WORDS, quick

from lrsa.cli.program import main
from lrsa.errors import LrsaError
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def test_only_the_first_cases_are_seen(data: Path) -> None:
    words = ["train", str(data), "--samples", "4", "--out", "run", "--train.epochs", "1", *WORDS]
    assert main(words) == 0
    assert RunConfig.load(Path("run")).data.samples == 4
    quick(data, "fit", samples=4, epochs=1)
    assert RunConfig.load(Path("fit")).data == RunConfig.load(Path("run")).data


def test_more_than_there_are_and_none_are_refused(data: Path) -> None:
    for samples, words in ((11, "has 10 training cases, not 11"), (0, "--samples must be at least 1, not 0")):
        with pytest.raises(LrsaError, match=words):
            quick(data, "run", samples=samples)
