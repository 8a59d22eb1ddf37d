"""Sweeps: every change is a training of its own, and cells are shared with the tables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lrsa.errors import LrsaError
from lrsa.experiments.cells import recorded
from lrsa.experiments.study import CELLS, Study
from lrsa.experiments.sweep import Sweep, Variant
from lrsa.experiments.sweeps import SWEEPS
from lrsa.experiments.table_standard import table_standard
from lrsa.models.registry import model_options
from lrsa.training.config import TrainConfig

pytest_plugins = ["small_runs", "small_catalogue"]
SWEEP = Sweep(
    "sweep",
    "A sweep",
    "About it.",
    ("darcy", "elasticity"),
    {"LRSA": Variant(), "rank 4": Variant(options={"rank": 4}), "seeds": Variant("deeponet", seeds=3)},
)


@pytest.mark.parametrize("sweep", SWEEPS.values(), ids=SWEEPS)
def test_every_row_changes_something_that_there_is(sweep: Sweep) -> None:
    for variant in sweep.variants.values():
        assert set(variant.options) <= set(model_options(variant.model))
        replace(TrainConfig(), **variant.train)
    study = Study("demo")
    keys = {
        (problem, label): sweep.job(study, label, problem, 0).key
        for problem in sweep.problems
        for label in sweep.variants
    }
    # What the scale has already may be a row of its own, for the eye: no more than a few.
    assert len(set(keys.values())) >= len(keys) - 4 * len(sweep.problems)


@pytest.mark.usefixtures("tiny")
def test_a_sweep_is_trained_once_and_shares_its_cells(home: Path) -> None:
    study, out = Study("demo"), home / "out"
    table_standard(out, study, "lrsa:darcy", home / "runs", 1)
    path = out / CELLS / f"{study.job('lrsa', 'darcy').key}.json"
    before = path.stat().st_mtime_ns
    page = SWEEP.run(out, study, ":darcy", home / "runs", 1).read_text()
    assert path.stat().st_mtime_ns == before
    assert "± " in page
    assert "of 3" in page
    assert "elasticity" not in page
    rows = json.loads((out / "sweep-demo.json").read_text())["rows"]
    assert [len(rows[label]["darcy"]) for label in SWEEP.variants] == [1, 1, 3]
    errors = [cell["relative_l2"] for cell in rows["seeds"]["darcy"]]
    assert len(set(errors)) == 3


@pytest.mark.usefixtures("tiny")
def test_held_out_cases_decide_where_a_sweep_says_so(home: Path) -> None:
    study, out = Study("demo"), home / "out"
    sweep = replace(SWEEP, held_out=0.4)
    page = sweep.run(out, study, "LRSA:darcy", home / "runs", 1).read_text()
    cell = recorded(sweep.job(study, "LRSA", "darcy", 0), out / CELLS)
    assert cell is not None
    assert cell.validation is not None
    assert f"{cell.validation:.4f}" in page
    assert "held-out training cases" in page


def test_a_row_or_column_that_is_not_there_is_named() -> None:
    for only, words in (("rank 5:darcy", "rank 5"), ("LRSA:darzy", "darzy")):
        with pytest.raises(LrsaError, match=words):
            SWEEP.chosen(only)
