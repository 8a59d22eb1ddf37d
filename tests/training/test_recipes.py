"""The two recipes, and what of a run is refused in one line."""

from pathlib import Path

import pytest
from small import OPTIONS, grid_cases, quick, refusal, write

import lrsa
from lrsa.cli.program import main
from lrsa.errors import LrsaError
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare
from lrsa.training.survey import FILE

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def test_own_data_is_trained_by_our_recipe_unless_the_paper_s_is_asked_for() -> None:
    data = write(Path("d.h5"), grid_cases(6), grid_cases(2, seed=1))
    quick(data, "ours", epochs=1)
    quick(data, "paper", epochs=1, recipe="paper")
    ours, paper = (RunConfig.load(Path(run)) for run in ("ours", "paper"))
    assert (ours.recipe, ours.train.optimiser) == ("ours", "muon")
    assert (paper.recipe, paper.train.optimiser) == ("paper", "adamw")


def test_what_is_typed_stands_over_the_recipe(data: Path) -> None:
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"epochs": 1, "optimiser": "adamw"})
    assert RunConfig.load(run).train.optimiser == "adamw"


def test_an_unknown_recipe_and_a_source_of_a_file_are_refused(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LrsaError, match=r'no recipe "papr"\. Did you mean paper'):
        lrsa.fit(data, recipe="papr")  # pyright: ignore[reportArgumentType]
    assert "--source belongs to the benchmarks" in refusal(capsys, "train", data, "--source", "official")


def test_a_damaged_normalisation_is_named_and_can_be_removed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = prepare(str(data), "lrsa", out=Path("run"), options=OPTIONS, train={"epochs": 1})
    (run / FILE).write_bytes((run / FILE).read_bytes()[:50])
    assert f"{FILE} is damaged: remove it" in refusal(capsys, "resume", run)
    (run / FILE).unlink()
    assert main(["resume", str(run)]) == 0
