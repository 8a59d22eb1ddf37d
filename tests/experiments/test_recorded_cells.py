"""Records of trainings: what was recorded stays valid, and holds what later tables ask."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_cells import made, record, work_in

from lrsa.errors import LrsaError
from lrsa.experiments.cells import at_stride, complete, finish, null_errors, recorded
from lrsa.experiments.study import Study
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Scale
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs", "small_catalogue"]
KEPT = Path(__file__).parent / "cells"
AS_RECORDED = Scale(
    "as it was",
    500,
    100,
    "fast",
    {"generated": 1, "official": 4},
    model={"width": 64, "depth": 4, "heads": 4, "rank": 32, "ffn_hidden": 128, "local": "depthwise"},
    train={
        "batch_size": 4,
        "max_lr": 2e-3,
        "validation": 0.0,
        "epochs": 16,
        "gradient_weight": 0.1,
        "symmetry": "square",
    },
)


def test_what_was_recorded_before_cells_had_metrics_is_still_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of models and trainings that came later have their defaults, and change no key."""
    monkeypatch.setitem(CATALOGUE, "darcy", replace(CATALOGUE["darcy"], scales={"demo": AS_RECORDED}))
    job = Study("demo").job("lrsa", "darcy")
    assert job.key == "darcy-lrsa-aa01b64e05b2"
    cell = recorded(job, KEPT)
    assert cell is not None
    assert cell.relative_l2 == 0.020074629391976642
    assert cell.metrics is None
    local = replace(job, options={"local": "depthwise"})
    assert local.key == job.key
    assert recorded(local, KEPT) == cell
    assert recorded(replace(job, samples=500), KEPT) == cell
    assert recorded(replace(job, samples=499), KEPT) is None


def test_a_record_is_complete_when_it_has_what_is_asked(tmp_path: Path) -> None:
    job = Study("demo").job("lrsa", "airfoil")
    old = made(job, 0.1, metrics=None)
    assert complete(old)
    assert not complete(None)
    assert not complete(old, metrics=True)
    assert complete(made(job, 0.1), metrics=True)
    assert not complete(made(job, 0.1), strides=[(2, 1)])
    assert complete(made(job, 0.1, metrics={at_stride((2, 1)): 0.2}), strides=[(2, 1)])
    assert complete(made(job, 0.1, metrics=None, reason="it diverged"), strides=[2], metrics=True)


def test_null_baselines_are_of_the_cases_whatever_was_trained_on_them(tmp_path: Path) -> None:
    """An older record lacks those that came later; fewer training cases, or some held out, have others."""
    work = work_in(tmp_path)
    old, new = (work.study.job(model, "darcy") for model in ("lrsa", "fno"))
    fewer, held_out = replace(new, samples=50), replace(new, train={"validation": 0.2})
    cell = made(old, 0.1, nulls={"mean field": 0.9})
    record(work, old, cell)
    assert null_errors([cell], work.cells) == {"mean field": 0.9}
    record(work, new, made(new, 0.2, nulls={"mean field": 0.9, "POD regression": 0.3}))
    record(work, fewer, made(fewer, 0.2, nulls={"POD regression": 0.6, "nearest case": 0.7}))
    record(work, held_out, made(held_out, 0.2, nulls={"POD regression": 0.4}))
    assert null_errors([cell], work.cells) == {"mean field": 0.9, "POD regression": 0.3}


@pytest.mark.parametrize("damage", ["{", "[]", '{"model": "lrsa"}', "no configuration"])
def test_a_damaged_record_is_named_also_where_it_is_another_models(damage: str, tmp_path: Path) -> None:
    work = work_in(tmp_path)
    job, other = (work.study.job(model, "darcy") for model in ("lrsa", "fno"))
    cell = made(job, 0.1)
    record(work, job, cell)
    record(work, other, made(other, 0.1, configuration={}))
    path = work.cells / f"{other.key}.json"
    if damage != "no configuration":
        path.write_text(damage)
    for ask in (lambda: null_errors([cell], work.cells), lambda: recorded(other, work.cells)):
        with pytest.raises(LrsaError, match=f"{other.key}.json is damaged: remove it"):
            ask()


@pytest.mark.usefixtures("tiny")
def test_fewer_training_cases_are_another_cell_and_another_training(home: Path) -> None:
    work = work_in(home)
    job = replace(Study("demo").job("deeponet", "darcy"), samples=2)
    assert finish(job, work.cells, work.runs, 1) is not None
    assert RunConfig.load(work.runs / job.key).data.samples == 2
    assert "--samples 2" in job.typed()
    assert recorded(replace(job, samples=None), work.cells) is None


@pytest.mark.usefixtures("tiny")
def test_a_step_is_timed_beside_that_of_the_scale(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the batches are others: else nothing would say how much longer they take."""
    work, batch = work_in(home), Study("demo").job("lrsa", "darcy").configuration()["train"]["batch_size"]
    monkeypatch.setattr("lrsa.experiments.step_times._seconds", lambda trainer, k: trainer.config.batch_size)
    cell = finish(
        replace(Study("demo").job("lrsa", "darcy"), train={"batch_size": 1}), work.cells, work.runs, 1
    )
    assert cell is not None
    assert cell.step == {"model": 1, "lrsa": batch}
    assert batch > 1


@pytest.mark.usefixtures("tiny")
def test_an_older_record_is_evaluated_again_where_more_is_asked(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, job = work_in(home), Study("demo").job("lrsa", "darcy")
    first = finish(job, work.cells, work.runs, 1)
    assert first is not None
    record(work, job, replace(first, metrics=None))
    assert finish(job, work.cells, work.runs, 1) == replace(first, metrics=None)
    again = finish(job, work.cells, work.runs, 1, strides=[(2, 1), 2])
    assert again is not None
    assert again.metrics is not None
    errors = [again.metrics[at_stride(stride)] for stride in (1, (2, 1), 2)]
    assert errors[0] == first.relative_l2
    assert len(set(errors)) == 3
    kept = json.loads((work.cells / f"{job.key}.json").read_text())
    assert kept["metrics"] == again.metrics
    monkeypatch.setattr("lrsa.experiments.cells.evaluate", None)
    assert finish(job, work.cells, work.runs, 1, strides=[2]) == again


@pytest.mark.usefixtures("tiny")
def test_a_record_whose_run_is_gone_is_made_anew_where_more_is_asked(home: Path) -> None:
    """Its errors at all strides are of one training, not of one here and one elsewhere."""
    work, job = work_in(home), Study("demo").job("lrsa", "darcy")
    record(work, job, made(job, 0.5, metrics=None))
    again = finish(job, work.cells, work.runs, 1, strides=[2])
    assert again is not None
    assert again.metrics is not None
    assert again.relative_l2 == again.metrics[at_stride(1)] != 0.5
