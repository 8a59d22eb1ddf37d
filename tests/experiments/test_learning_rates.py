"""Learning rates: three are tried on held-out cases, the best one trains in full."""

from pathlib import Path

from made_cells import fill, work_in

from lrsa.experiments.experiment import Task
from lrsa.experiments.learning_rates import IN_FULL, LEARNING_RATES
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
