"""Learning rates: three are tried on held-out cases, the best one trains in full."""

from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import fill, work_in

from lrsa.experiments.experiment import Task
from lrsa.experiments.learning_rates import IN_FULL, LEARNING_RATES
from lrsa.experiments.study import Study
from lrsa.experiments.table_standard import TABLE_STANDARD
from lrsa.training.recipes import settings_of

ERRORS = {"Transolver x 0.3": 0.01, "LinearNO x 2": 0.01}


def error(task: Task) -> float:
    """Transolver prefers small rates, LinearNO large ones, the others those of the recipe."""
    return ERRORS.get(task.row, 0.02 if task.row.endswith(" x 1") else 0.03)


def test_the_best_of_three_trials_is_trained_in_full(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    assert IN_FULL.tasks(work) == []
    fill(LEARNING_RATES, work, error)
    jobs = {task.row: task.job for task in IN_FULL.tasks(work) if task.problem == "pipe"}
    recipe = settings_of("ours")
    rates = {row: job.configuration()["train"]["muon_lr"] / recipe["muon_lr"] for row, job in jobs.items()}
    assert rates.pop("Transolver") == 0.3
    assert rates.pop("LinearNO") == 2
    assert set(rates.values()) == {1}
    assert all(job.configuration()["train"]["validation"] == 0 for job in jobs.values())


def test_at_the_rates_of_the_recipe_it_is_the_training_of_the_table(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    fill(LEARNING_RATES, work, error)
    (ours,) = (t.job.key for t in IN_FULL.tasks(work) if (t.row, t.problem) == ("HPM", "pipe"))
    (theirs,) = (t.job.key for t in TABLE_STANDARD.tasks(work) if (t.row, t.problem) == ("HPM", "pipe"))
    assert ours == theirs


@pytest.mark.parametrize(("scale", "rates"), [("demo", {"max_lr", "muon_lr"}), ("paper", {"max_lr"})])
def test_trials_are_half_as_long_at_three_rates_at_any_scale(
    tmp_path: Path, scale: str, rates: set[str]
) -> None:
    work = replace(work_in(tmp_path), study=Study(scale))
    jobs = {task.row: task.job for task in LEARNING_RATES.tasks(work) if task.problem == "darcy"}
    slow, usual = (jobs[f"Transolver x {factor}"].configuration()["train"] for factor in ("0.3", "1"))
    whole = work.study.job("transolver", "darcy").configuration()["train"]
    assert usual == {**whole, "epochs": whole["epochs"] // 2, "validation": 0.1}
    assert slow == usual | {name: pytest.approx(0.3 * usual[name]) for name in rates}
