"""The table of the standard benchmarks: every model trains on every benchmark it accepts, in one loop."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_cells import fill, made, record, work_in
from small import refusal
from small_solvers import SMALL

import lrsa
from lrsa.cli.program import main
from lrsa.data.writing import write_dataset
from lrsa.errors import Failure, LrsaError
from lrsa.experiments.beyond import EQUAL_TIME
from lrsa.experiments.cells import recorded
from lrsa.experiments.details import paces, seconds_of
from lrsa.experiments.page import write_page
from lrsa.experiments.recipe import RECIPE
from lrsa.experiments.running import check, chosen, pending
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table_standard import DEEP, GRIDS, POINTWISE, STANDARD, TABLE_STANDARD, others
from lrsa.files import alone
from lrsa.models.registry import get, networks
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Problem

pytest_plugins = ["small_runs", "small_catalogue"]
NO_FEATURES = {"elasticity", "airfoil", "pipe"}
PROJECTED = {"f-fno", "lsm"}
"""Models of a grid that were published for Elasticity, by a projection to one."""
CELLS = "out/cells"


def inapplicable(benchmark: str) -> set[str]:
    """The models that do not take the data of a benchmark."""
    models = {"norm"} if benchmark in NO_FEATURES else set()
    if benchmark == "elasticity":  # has no grid
        models |= {name for name in networks() if "points" not in get(name).data} - PROJECTED
    return models


def test_every_benchmark_has_a_small_form() -> None:
    assert set(SMALL) == set(STANDARD)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("benchmark", SMALL)
def test_every_model_trains_on_every_benchmark_it_accepts(benchmark: str, home: Path) -> None:
    only = ",".join(f"{model}:{benchmark}" for model in networks())
    words = ["reproduce", "table-standard", "--scale", "demo", "--only", only, "--out", "out"]
    assert main(words) == 0
    study = Study("demo")
    found = {m: recorded(study.job(m, benchmark), home / CELLS) for m in networks()}
    cells = {m: cell for m, cell in found.items() if cell is not None}
    assert list(cells) == networks()
    refused = {model: cell.reason for model, cell in cells.items() if cell.reason}
    assert set(refused) == inapplicable(benchmark)
    assert all((name in reason or "NORM" in reason) and " Use " in reason for name, reason in refused.items())
    measured = {m: c for m, c in cells.items() if c.relative_l2 is not None and c.step is not None}
    assert set(measured) == set(cells) - set(refused)
    assert all(c.relative_l2 and c.step and min(c.step.values()) > 0 for c in measured.values())
    ours = measured["lrsa"].step
    assert ours is not None
    assert ours["model"] == ours["lrsa"]
    page = (home / "out" / "table-standard-demo.md").read_text()
    assert "Other models" in page
    shown = [cell for name, cell in measured.items() if name.startswith("backbone-")]
    assert all(f"{cell.relative_l2:.4f}" in page for cell in shown)


WORDS = ["reproduce", "table-standard", "--scale", "demo", "--out", "out"]


def cells_of(home: Path, stem: str = "table-standard-demo") -> list[dict[str, Any]]:
    return json.loads((home / "out" / f"{stem}.json").read_text())["rows"]


@pytest.mark.usefixtures("tiny")
def test_what_is_recorded_is_not_trained_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*WORDS, "--only", "LRSA:darcy"]) == 0
    (before,) = cells_of(home)
    shutil.rmtree(home / "runs")
    with monkeypatch.context() as patched:
        patched.setattr("lrsa.experiments.cells.train_run", refuse)
        assert main([*WORDS, "--only", "LRSA:darcy"]) == 0
        assert main([*WORDS, "--recorded"]) == 0
    assert cells_of(home) == [before]
    assert main([*WORDS, "--only", "LNO:darcy"]) == 0
    assert [cell["row"] for cell in cells_of(home)] == ["LNO", "LRSA"]
    page = (home / "out" / "table-standard-demo.md").read_text()
    assert "| not run (paper 0.0065) |" in page
    assert "| FNO |  |  |  |  | not run (paper 0.1556) | not run (paper 0.0180) |" in page


@pytest.mark.usefixtures("tiny")
def test_steps_are_timed_again_without_training(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the page shows, those rows too that need not be there; errors stay."""
    job, other, rest = (Study("demo").job(name, "darcy") for name in ("lrsa", "deeponet", "galerkin"))
    work = Work(Study("demo"), home / CELLS, home / "runs", home / "out")
    for each in (job, other, rest):
        record(work, each, made(each, 0.1))
    monkeypatch.setattr("lrsa.experiments.cells.train_run", refuse)
    monkeypatch.setattr("lrsa.experiments.step_times._seconds", lambda trainer, k: 3.0)
    assert main([*WORDS, "--recorded", "--retime", "--only", "LRSA:darcy,deeponet:"]) == 0
    steps = {cell["model"]: (cell["step"]["model"], cell["value"]) for cell in cells_of(home)}
    assert steps == {"lrsa": (3.0, 0.1), "deeponet": (3.0, 0.1), "galerkin": (0.2, 0.1)}
    assert not (home / "runs").exists()


@pytest.mark.usefixtures("tiny")
def test_steps_are_timed_of_the_problems_whose_data_can_be_made(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others keep what is recorded, and are named."""
    work = Work(Study("demo"), home / CELLS, home / "runs", home / "out")
    for problem in ("darcy", "pipe"):
        job = work.study.job("deeponet", problem)
        record(work, job, made(job, 0.1))

    def only_darcy(problem: Problem, study: Study) -> None:
        if problem.name != "darcy":
            raise LrsaError("no solver here")

    monkeypatch.setattr("lrsa.experiments.running._make_or_wait", only_darcy)
    monkeypatch.setattr("lrsa.experiments.step_times._seconds", lambda trainer, k: 3.0)
    assert main([*WORDS, "--recorded", "--retime", "--only", "deeponet:"]) == 0
    assert {cell["problem"]: cell["step"]["model"] for cell in cells_of(home)} == {"darcy": 3.0, "pipe": 0.2}
    assert "pipe is left out: no solver here" in capsys.readouterr().out


def refuse(run: Path) -> None:
    raise AssertionError(f"{run} is trained again")


@pytest.mark.usefixtures("tiny")
def test_no_cell_is_filled_by_another_training(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another recipe, source, seed, size or version of the data is another cell."""
    assert main([*WORDS, "--only", "deeponet:darcy"]) == 0
    folder = home / CELLS
    job = Study("demo").job("deeponet", "darcy")
    assert recorded(job, folder) is not None
    others = [
        replace(job, recipe="paper"),
        replace(job, source="official"),
        replace(job, matched=True),
        replace(job, train={"seed": 1}),
        replace(job, options={"width": 8}),
    ]
    assert len({job.key, *(other.key for other in others)}) == 1 + len(others)
    assert all(recorded(other, folder) is None for other in others)
    monkeypatch.setitem(CATALOGUE, "darcy", replace(CATALOGUE["darcy"], version=2))
    assert recorded(job, folder) is None


@pytest.mark.usefixtures("tiny")
def test_a_default_that_changed_is_another_training(home: Path) -> None:
    """The name of a record holds what differs from the defaults; the record holds everything."""
    assert main([*WORDS, "--only", "deeponet:darcy"]) == 0
    job = Study("demo").job("deeponet", "darcy")
    path = home / CELLS / f"{job.key}.json"
    record = json.loads(path.read_text())
    record["configuration"]["train"]["clip"] = 7.0  # as if that had been the default then
    path.write_text(json.dumps(record))
    assert recorded(job, path.parent) is None
    del record["configuration"]["train"]["clip"]  # as if there had been no such option
    path.write_text(json.dumps(record))
    assert recorded(job, path.parent) is not None


@pytest.mark.usefixtures("tiny")
def test_a_cell_that_another_process_trains_is_left_to_it(home: Path) -> None:
    job = Study("demo").job("deeponet", "darcy")
    with alone(home / "runs" / "reproduce" / f"{job.key}.cell"):
        assert main([*WORDS, "--only", "deeponet:darcy"]) == 0
    assert cells_of(home) == []


@pytest.mark.usefixtures("tiny")
def test_recipes_and_parameters_have_tables_of_their_own(home: Path) -> None:
    words = [*WORDS, "--only", "LRSA:darcy,deeponet:darcy"]
    assert main([*words, "--recipe", "paper"]) == 0
    assert main([*words, "--matched"]) == 0
    paper = cells_of(home, "table-standard-demo-paper-recipe")
    assert ["--recipe paper" in cell["command"] for cell in paper] == [True, True]
    matched = {c["model"]: c["parameters"] for c in cells_of(home, "table-standard-demo-matched")}
    plain = {c["model"]: c["parameters"] for c in paper}
    assert abs(matched["deeponet"] / matched["lrsa"] - 1) < abs(plain["deeponet"] / plain["lrsa"] - 1)
    assert "recipe: paper" in (home / "out" / "table-standard-demo-paper-recipe.html").read_text()
    assert not (home / "out" / "table-standard-demo.json").exists()


@pytest.mark.usefixtures("tiny")
def test_lrsa_is_there_pointwise_and_with_local_mixing(home: Path) -> None:
    assert main([*WORDS, "--only", "LRSA:darcy,LRSA, local mixing:darcy"]) == 0
    assert [cell["row"] for cell in cells_of(home)] == ["LRSA", "LRSA, local mixing"]
    for row in ("LRSA", "LRSA, local mixing"):
        task = next(t for t in TABLE_STANDARD.tasks(work_in(home)) if (t.row, t.problem) == (row, "darcy"))
        assert task.job.options == {"local": "depthwise" if "local" in row else "pointwise"}
    rows = {task.row for task in TABLE_STANDARD.tasks(work_in(home)) if task.problem == "elasticity"}
    assert "LRSA, local mixing" not in rows
    assert "LRSA, the paper's recipe" in rows


def test_what_a_row_adds_at_the_small_scales_leaves_the_published_configuration(tmp_path: Path) -> None:
    given = {}
    for scale in ("demo", "paper"):
        work = work_in(tmp_path, scale)
        for column in TABLE_STANDARD.columns(work.study):
            (job,) = TABLE_STANDARD.jobs(work, POINTWISE, column)
            given[scale, column.problem] = job.options.get("frequencies")
    assert given.pop(("demo", "navier-stokes")) == 4
    assert not any(given.values())


@pytest.mark.usefixtures("tiny")
def test_official_files_have_a_table_of_their_own(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--only", "LRSA:darcy"]
    assert main([*words, "--source", "official"]) == 2
    assert "lrsa data import FOLDER --problem darcy" in capsys.readouterr().err
    darcy = CATALOGUE["darcy"]
    made = lrsa.open_dataset(str(darcy.path("fast")), "train")
    schema = replace(darcy.schema("fast", 0), source="official", provenance={})
    write_dataset(darcy.official_path, {"train": [made[0], made[1]], "test": [made[2]]}, schema)
    assert main(words) == 0
    assert main([*words, "--source", "official"]) == 0
    (official,) = cells_of(home, "table-standard-demo-official")
    assert "--source official" in official["command"]
    assert official["relative_l2"] != cells_of(home)[0]["relative_l2"]
    page = (home / "out" / "table-standard-demo-official.html").read_text()
    assert "official data" in page
    assert "generated" not in page


def test_the_page_says_on_how_many_threads_it_was_made(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    job = replace(work.study.job("lrsa", "darcy"), options={"local": "pointwise"})
    record(work, job, made(job, 0.1, threads=2))
    assert "training ran on 2 threads" in write_page(work.out, TABLE_STANDARD.page(work)).read_text()


@pytest.mark.usefixtures("tiny")
def test_a_run_that_diverges_is_a_reason(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(run: Path) -> None:
        raise Failure("the loss became nan")

    monkeypatch.setattr("lrsa.experiments.cells.train_run", diverge)
    words = ["reproduce", "table-standard", "--scale", "demo", "--out", "out", "--only", "LRSA:darcy"]
    assert main(words) == 0
    (cell,) = cells_of(home)
    assert cell["reason"] == "the loss became nan"
    assert "diverged" in (home / "out" / "table-standard-demo.md").read_text()


@pytest.mark.parametrize(
    ("only", "words"), [("darcy", "ROW:BENCHMARK"), ("lrza:darcy", "lrza"), ("LRSA:dacry", "dacry")]
)
def test_a_pair_that_is_not_there_is_named(only: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match=words):
        check([TABLE_STANDARD], work_in(tmp_path), only)


@pytest.mark.parametrize(
    ("experiment", "only", "words"),
    [
        ("table-standard", "lrza:darcy", 'table-standard has no "lrza"'),
        ("table-standard", f"{DEEP.label}:elasticity", "and so does table-standard"),
        ("table-standard", "pod-rbf:darcy", 'table-standard has no "pod-rbf"'),
        ("all", "Lrsaa:darcy", 'all has no "Lrsaa"'),
        ("claims", "LRSA:darcy", "claims trains nothing: leave out --only"),
    ],
)
def test_pages_of_what_is_recorded_refuse_it_too(
    experiment: str, only: str, words: str, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    line = refusal(capsys, "reproduce", experiment, "--scale", "demo", "--recorded", "--only", only)
    assert words in line
    assert not (home / "results").exists()


def test_pairs_are_chosen_by_row_by_benchmark_or_both(tmp_path: Path) -> None:
    work = work_in(tmp_path)

    def pairs(only: str) -> list[tuple[str, str]]:
        return [(task.row, task.problem) for task in chosen(TABLE_STANDARD, work, only)]

    assert pairs("LRSA:darcy") == [("LRSA", "darcy")]
    assert pairs("flare:darcy") == [("flare", "darcy")]
    assert {problem for _, problem in pairs(":darcy")} == {"darcy"}
    assert {problem for _, problem in pairs("FNO:")} == {"navier-stokes", "darcy"}
    assert {problem for _, problem in pairs("LSM:")} == set(STANDARD)
    assert {problem for _, problem in pairs(f"{DEEP.label}:")} == GRIDS - {"navier-stokes"}
    shared = {task.job.key for task in EQUAL_TIME.tasks(work)}
    assert chosen(TABLE_STANDARD, work, f"{DEEP.label}:pipe")[0].job.key in shared
    assert len(pending([TABLE_STANDARD], work, "LRSA:darcy,LRSA:darcy")) == 1


def test_models_of_index_grids_alone_have_no_place_where_there_is_none(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    column = next(c for c in TABLE_STANDARD.columns(work.study) if c.problem == "elasticity")
    asked = {row.model: bool(TABLE_STANDARD.jobs(work, row, column)) for row in others(work)}
    assert not asked["lrsa-fourier"]
    assert asked["geo-fno"]


def test_half_precision_takes_the_time_that_was_measured(tmp_path: Path) -> None:
    """In fp32 the time is in units of LRSA's step on the page, whose measured ratio is 2 here."""
    work = work_in(tmp_path)
    job = work.study.job("transolver", "darcy")
    half = replace(job, train={"precision": "bf16"})
    plain, slow = made(job, 0.1), made(half, 0.1, step={"model": 3.0, "lrsa": 1.5})
    group = [("LRSA", made(work.study.job("lrsa", "darcy"), 0.1)), ("plain", plain), ("slow", slow)]
    pace = paces({"darcy": group})["darcy"]
    assert seconds_of(plain, pace) == pytest.approx(100 * 2 * 0.1)
    assert seconds_of(slow, pace) == pytest.approx(100 * 3.0)


def test_a_shared_training_is_announced_by_its_first_row(tmp_path: Path) -> None:
    """Darcy has raw coordinates already: the row of that change is the recipe itself."""
    rows = [task.row for task in pending([RECIPE], work_in(tmp_path), ":darcy")]
    assert "ours" in rows
    assert "raw coordinates" not in rows


def test_a_problem_without_official_files_says_so(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    line = refusal(capsys, "train", "obstacle-flow", "--source", "official", "--scale", "demo")
    assert "obstacle-flow has no official files. Leave out --source official" in line
    assert not (home / "runs").exists()


def test_a_training_has_one_time_on_a_page(tmp_path: Path) -> None:
    """In its table and in either picture, though a model beside the table was timed on a faster machine."""
    work = work_in(tmp_path)
    fill(TABLE_STANDARD, work, lambda task: 0.1 if task.problem == "darcy" else None)
    deep = chosen(TABLE_STANDARD, work, f"{DEEP.label}:darcy")[0].job
    record(work, deep, made(deep, 0.1, step={"model": 0.06, "lrsa": 0.05}))
    page = TABLE_STANDARD.page(work)
    (costs,) = [section for section in page.sections if section.title == "What the trainings cost"]
    written = {float(row[-2].text) for _, row in costs.grids[0].rows}
    pictures = [plot.figure for section in page.sections for plot in section.plots]
    drawn = [
        {x for line in figure.axes[0].lines[:-1] for x in np.asarray(line.get_xdata())} for figure in pictures
    ]
    assert len(pictures) == 2
    assert written == {10.0}
    assert sorted(drawn[0]) == pytest.approx([10.0])
    assert sorted(drawn[1]) == pytest.approx([6.0, 10.0])
