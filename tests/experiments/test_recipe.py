"""The study of our recipe: what its rows are, at any scale."""

from pathlib import Path

import pytest
from made_cells import fill, work_in

from lrsa.experiments.page import MISSING
from lrsa.experiments.recipe import RECIPE


@pytest.mark.parametrize("study", [{}, {"recipe": "paper"}, {"scale": "paper"}], ids=str)
def test_every_row_is_one_change_of_our_recipe(tmp_path: Path, study: dict[str, str]) -> None:
    """Whatever recipe the other tables have; no two rows of a problem are the same training but the base."""
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
        changed = [job.key for job in jobs.values() if job.configuration() != base]
        assert len(set(changed)) == len(changed)
        assert len(changed) > len(jobs) / 2  # what the scale has already is no change
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
