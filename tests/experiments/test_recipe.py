"""The study of our recipe: what its rows are, at any scale."""

from pathlib import Path

import pytest
from made_cells import fill, work_in

from lrsa.experiments.page import MISSING
from lrsa.experiments.recipe import EQUAL_TIME, IN_FULL, RECIPE, TIMED, TWO_SEEDS


@pytest.mark.parametrize("study", [{}, {"recipe": "paper"}, {"scale": "paper"}], ids=str)
def test_every_row_is_one_change_of_our_recipe(tmp_path: Path, study: dict[str, str]) -> None:
    """Whatever recipe the other tables have; no two rows of a problem are the same training."""
    work = work_in(tmp_path, **study)
    for problem in {task.problem for task in RECIPE.tasks(work)}:
        jobs = {
            row.label: jobs[0]
            for column in RECIPE.columns(work.study)
            if column.problem == problem
            for row in RECIPE.rows(work)
            if (jobs := RECIPE.jobs(work, row, column))
        }
        base = jobs.pop("ours").configuration()
        assert base["train"]["optimiser"] == "muon"
        assert base["train"]["validation"] == 0.1
        assert all(job.configuration() != base for job in jobs.values()), "what the scale has is no change"
        assert len({job.key for job in jobs.values()}) == len(jobs) > 15
    noises = [row.label for row in RECIPE.rows(work) if "noise" in row.train]
    assert bool(noises) == (work.study.scale != "paper"), "noise needs steps of single frames"


def test_its_trainings_are_short(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    for task in RECIPE.tasks(work):
        assert task.job.configuration()["train"]["epochs"] == work.study.epochs(task.problem) // 2


def test_its_page_has_the_time_of_a_step_beside_the_errors(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    fill(RECIPE, work, lambda task: None if task.row == "rank 64" else 0.02)
    (times,) = (section for section in RECIPE.page(work).sections if section.title == "Time of a step")
    places = dict(times.grids[0].rows)
    assert {value.text for value in places["rank 16"]} == {"2.00"}
    assert {value.text for value in places["rank 64"]} <= {"", MISSING}


def test_what_one_seed_does_not_tell_from_the_best_gets_another(tmp_path: Path) -> None:
    """Only once all changes of a problem are tried, since any of them may be the best."""
    errors = {"rank 64": 0.0200, "2 heads": 0.0219, "8 heads": 0.0221}
    late = {"warm-up 0.3"}
    work = work_in(tmp_path)
    fill(RECIPE, work, lambda task: None if task.row in late else errors.get(task.row, 0.03))
    assert TWO_SEEDS.tasks(work) == []
    fill(RECIPE, work, lambda task: errors.get(task.row, 0.03))
    seeds = {(task.row, task.job.train.get("seed", 0)) for task in TWO_SEEDS.tasks(work)}
    assert seeds == {("rank 64", 0), ("rank 64", 1), ("2 heads", 0), ("2 heads", 1)}
    again = [task for task in RECIPE.tasks(work) if {"seed", "epochs"} <= set(task.job.train)]
    assert {task.row for task in again} == {"rank 64", "2 heads"}
    (shown,) = (section for section in RECIPE.page(work).sections if section.title.startswith("Two seeds"))
    assert {label for label, _ in shown.grids[0].rows} == {"rank 64", "2 heads"}
    assert {value.text for value in dict(shown.grids[0].rows)["2 heads"]} == {"0.0219 (1 of 2)"}
    whole = {task.row: task.job.configuration()["train"]["epochs"] for task in IN_FULL.tasks(work)}
    assert set(whole) == {"ours", "rank 64", "2 heads"}, "and both in full, beside the recipe"
    assert set(whole.values()) <= {work.study.epochs(task.problem) for task in RECIPE.tasks(work)}
    fill(RECIPE, work, lambda task: 0.0199 if task.row == "ours" else None)
    assert TWO_SEEDS.tasks(work) == [], "the recipe stays"
    assert IN_FULL.tasks(work) == []


def test_sizes_and_batches_are_compared_at_equal_time_too(tmp_path: Path) -> None:
    """By the measured step: of twice the time half as many, here of 100; known once that is measured."""
    work = work_in(tmp_path)
    assert {task.row for task in EQUAL_TIME.tasks(work)} == {"ours"}
    fill(RECIPE, work, lambda task: 0.03)
    again = [task for task in EQUAL_TIME.tasks(work) if "steps" in task.job.train]
    assert {task.row for task in again} == TIMED
    for task in again:
        train = task.job.configuration()["train"]
        assert train["epochs"] <= work.study.epochs(task.problem, 2)
        assert train["epochs"] * train["steps"] == pytest.approx(50, abs=train["epochs"] / 2)
    fill(EQUAL_TIME, work, lambda task: 0.02 if "steps" in task.job.train else None)
    (shown,) = (section for section in RECIPE.page(work).sections if section.title == "At equal time")
    places = dict(shown.grids[0].rows)
    assert {value.text for value in places["ours"]} == {"0.0300"}
    assert {value.text for value in places["batches of 2"]} == {"0.0200"}
