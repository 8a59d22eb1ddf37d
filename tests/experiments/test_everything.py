"""Every experiment: found by name, run to its end on small problems, shown on a page that opens offline."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from made_cells import fill, work_in
from test_official_shapenet_car import SMALL as CAR_POINTS
from test_official_training import WRITERS

from lrsa import open_dataset
from lrsa.cli.program import main
from lrsa.cli.reproduce import What
from lrsa.data.writing import write_dataset
from lrsa.experiments.beyond import EQUAL_TIME
from lrsa.experiments.efficiency import Efficiency, measured, ratio
from lrsa.experiments.everything import ALL, EXPERIMENTS, write_all
from lrsa.experiments.experiment import Task, page_of
from lrsa.experiments.page import Page, write_page
from lrsa.experiments.running import pending
from lrsa.experiments.study import Study, Work
from lrsa.files import alone
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Scale, Source

pytest_plugins = ["small_runs", "small_catalogue"]
TINY = {"width": 16, "depth": 2, "heads": 2, "rank": 9}
TRAINED = [name for name, one in EXPERIMENTS.items() if one.tasks(work_in(Path("nowhere")))]


def test_the_command_knows_every_experiment() -> None:
    assert set(get_args(What)) == {*EXPERIMENTS, "all"}


def error(task: Task) -> float:
    """Some error, different from training to training, whichever row asks for it."""
    return (
        0.01 + 0.001 * (int(task.job.key[-4:], 16) % 7) + (0.02 if task.problem == "navier-stokes" else 0.0)
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Work:
    """Every training of every experiment, recorded."""
    work = work_in(tmp_path_factory.mktemp("filled"))
    for name in EXPERIMENTS:
        for _ in range(2):  # some trainings are known only when others are done
            fill(EXPERIMENTS[name], work, error)
    return work


@pytest.fixture(scope="module")
def page_named(filled: Work) -> Callable[[str], Page]:
    """Each page of those records, drawn once."""
    return cache(lambda name: page_of(EXPERIMENTS[name], filled))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_page_is_there_in_four_forms_and_loads_nothing(
    name: str, filled: Work, page_named: Callable[[str], Page]
) -> None:
    page = page_named(name)
    path = write_page(filled.out, page)
    text = path.read_text()
    assert not re.findall(r"(?:src|href)='(?!data:|#)", text)
    assert page.command in text
    assert page.command in path.with_suffix(".md").read_text()
    assert json.loads(path.with_suffix(".json").read_text())["command"] == page.command
    if name not in ("efficiency", "figure-qualitative"):  # they need more than records
        assert any(section.plots for section in page.sections)
        assert "data:image/png" in text
    assert not pending([EXPERIMENTS[name]], filled)


def test_all_is_one_page_with_the_claims_first(filled: Work, page_named: Callable[[str], Page]) -> None:
    text = write_all(filled, list(map(page_named, ALL))).read_text()
    places = [text.index(f"<section id='{name}'") for name in ALL]
    assert min(places) == text.index("<section id='claims'")
    assert all(f"href='#{name}'" in text for name in ALL)
    assert not re.findall(r"(?:src|href)='(?!data:|#)", text)


def test_printed_values_stand_beside_ours_and_empty_places_stay_empty(
    filled: Work, page_named: Callable[[str], Page]
) -> None:
    page = write_page(filled.out, page_named("table-standard")).with_suffix(".md").read_text()
    lines = [line for line in reversed(page.splitlines()) if line.startswith("| ")]
    rows = {line.split(" | ")[0].strip("| "): line for line in lines}  # of the first table
    assert rows["HPM"].split(" | ")[1] == ""
    assert "(paper 0.0047)" in rows["HPM"]
    assert "mean field" in rows
    for name in ("table-irregular", "table-industrial"):
        page = EXPERIMENTS[name].page(filled)
        assert any("Not in the catalogue" in n for s in page.sections for n in s.notes) == bool(
            {"pipe-turbulence", "composite"} - set(CATALOGUE)
            if name == "table-irregular"
            else {"shapenet-car"} - set(CATALOGUE)
        )


def test_without_records_every_page_says_so(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    for name, experiment in EXPERIMENTS.items():
        text = write_page(work.out, experiment.page(work)).read_text()
        if name in TRAINED:
            assert "not run" in text or "Not trained yet" in text or "Nothing is recorded" in text


@pytest.mark.usefixtures("tiny")
def test_the_time_is_announced_and_nothing_is_trained_twice(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "ablation", "--scale", "demo", "--only", "LRSA:darcy,LRSA, rank 8:darcy"]
    assert main(words) == 0
    assert "2 of 2 trainings are not recorded yet: about" in capsys.readouterr().out
    assert main([*words[:-1], "LRSA:darcy,LRSA, rank 16:darcy"]) == 0
    said = capsys.readouterr().out
    assert "1 of 2 trainings are not recorded yet: about" in said
    assert "1/1: LRSA, rank 16 on darcy" in said
    assert main(["reproduce", "limited-data", "--scale", "demo", "--only", "LRSA:darcy"]) == 0
    assert "2 of 3 trainings are not recorded yet" in capsys.readouterr().out


@pytest.mark.usefixtures("tiny")
def test_data_that_is_not_there_leaves_the_other_problems(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    darcy, words = (
        CATALOGUE["darcy"],
        ["reproduce", "limited-data", "--scale", "demo", "--source", "official"],
    )
    made = open_dataset(str(darcy.path("fast")), "train")
    schema = replace(darcy.schema("fast", 0), source="official", provenance={})
    write_dataset(darcy.official_path, {"train": [made[0], made[1], made[2]], "test": [made[2]]}, schema)
    assert main([*words, "--only", "LRSA:"]) == 0
    assert "navier-stokes is left out: the official files" in capsys.readouterr().out
    rows = json.loads((home / "results/paper/limited-data-demo-official.json").read_text())["rows"]
    assert {row["problem"] for row in rows} == {"darcy"}
    assert main([*words, "--only", "LRSA:navier-stokes"]) == 2


@pytest.mark.usefixtures("tiny")
def test_one_row_of_the_further_tables_runs_to_its_end(home: Path) -> None:
    tables = {"resolution": "LRSA:airfoil", "precision": "LRSA, bf16:darcy", "beyond": "HPM:darcy"}
    for name, only in tables.items():
        assert main(["reproduce", name, "--scale", "demo", "--only", only]) == 0
    rows = json.loads((home / "results/paper/resolution-demo.json").read_text())["rows"]
    assert len({row["value"] for row in rows}) == 4
    rows = json.loads((home / "results/paper/beyond-demo.json").read_text())["equal-time"]
    shown = [(row["row"], row["column"]) for row in rows]
    assert shown == [("LRSA", "Airfoil"), ("HPM", "Darcy")]  # the former is the training of the resolutions


@pytest.mark.usefixtures("tiny")
def test_data_that_another_process_makes_is_waited_for_and_is_no_reason_for_a_cell(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = CATALOGUE["darcy"].path(CATALOGUE["darcy"].scale("demo").fidelity)
    path.unlink()
    with ExitStack() as other:  # a second lock is refused, whoever holds the first
        other.enter_context(alone(path))
        waited = SimpleNamespace(sleep=lambda seconds: other.close())
        monkeypatch.setattr("lrsa.experiments.running.time", waited)
        assert main(["reproduce", "table-standard", "--scale", "demo", "--only", "LRSA:darcy"]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "which makes the data of darcy" in said
    assert len(re.findall("Making [0-9]+ cases of darcy", said)) == 1  # not by the one that waits
    (record,) = (home / "results" / "cells").glob("*.json")
    assert json.loads(record.read_text())["reason"] == ""


def test_a_rival_of_twice_the_step_gets_half_the_epochs(tmp_path: Path) -> None:
    work = work_in(tmp_path)
    for equal in ("epochs", "time"):
        for task in EQUAL_TIME.tasks(work):
            short = "epochs" in task.job.train
            assert short <= (equal == "time")
            if short:
                full = CATALOGUE[task.problem].scale("demo").train["epochs"]
                assert task.job.train["epochs"] == round(full / 2)  # as the records of `fill` have it
        fill(EQUAL_TIME, work, lambda task: 0.03 if "epochs" in task.job.train else 0.02)
    said = "Darcy 0.67 (1.00 as the study prefers, 1.00 with dilated filters) beside LinearNO"
    assert said in str(EXPERIMENTS["beyond"].page(work))


@pytest.mark.usefixtures("tiny")
def test_the_same_case_is_drawn_for_both_models(home: Path) -> None:
    words = ["reproduce", "figure-qualitative", "--scale", "demo"]
    assert main([*words, "--only", ":elasticity"]) == 0
    page = json.loads((home / "results/paper/figure-qualitative-demo.json").read_text())
    assert list(page["errors"]) == ["elasticity"]
    picture = home / "results/paper/figure-qualitative-demo.png"
    drawn = picture.read_bytes()
    assert len(drawn) > 20_000
    shutil.rmtree(home / "runs")
    picture.unlink()
    assert main([*words, "--recorded"]) == 0  # of what is kept: runs and data may be gone
    assert picture.read_bytes() == drawn
    kept = min((home / "results/qualitative").iterdir())
    kept.write_bytes(kept.read_bytes()[:900])
    assert main([*words, "--recorded"]) == 2


@pytest.mark.slow
def test_efficiency_is_measured_once_as_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lrsa.bench.settings import Setting

    small = {"airfoil": Setting("airfoil", 60, 128, 2, 0, 1, grid=(10, 6))}
    monkeypatch.setattr("lrsa.experiments.efficiency.SETTINGS", small)
    work = work_in(tmp_path)
    Efficiency().measure(work)
    known = measured(work)
    assert len(known) == 6
    assert ratio(known, "airfoil", "transolver", "fp32", "step") == 1.0
    assert all(row["forward"] > 0 and row["backward"] > 0 for row in known.values())
    monkeypatch.setattr("lrsa.experiments.efficiency.probe", None)
    Efficiency().measure(work)
    assert "data:image/png" in write_page(work.out, Efficiency().page(work)).read_text()


@pytest.fixture
def official(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale of the paper with few cases, a small model and one epoch; the files as published."""
    monkeypatch.setattr("lrsa.experiments.step_times.ROUNDS", 1)
    monkeypatch.setattr("lrsa.problems.shapenet_car.official.POINTS", CAR_POINTS)
    for name, write in WRITERS.items():
        folder = home / "published" / name
        folder.mkdir(parents=True)
        write(folder)
        assert main(["data", "import", str(folder), "--problem", name]) == 0
        train = {**CATALOGUE[name].scales["paper"].train, "epochs": 1, "batch_size": 2}
        points = {"points": 16} if "points" in train else {}
        scale = Scale("tiny", 3, 2, model=TINY, train={**train, **points})
        monkeypatch.setitem(CATALOGUE, name, replace(CATALOGUE[name], scales={"paper": scale}))


@pytest.mark.slow
@pytest.mark.usefixtures("official")
def test_everything_runs_on_official_files_at_the_scale_of_the_paper(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every experiment to its end, one epoch each; of the models LRSA, and Transolver where it is drawn."""
    monkeypatch.setattr("lrsa.experiments.seeds.SEEDS", 2)
    monkeypatch.setattr("lrsa.experiments.seeds.FEWER", 1)
    rows = "LRSA:,Transolver:elasticity,LRSA, bf16:elasticity,LRSA with weights:elasticity"
    words = ["reproduce", "all", "--scale", "paper", "--source", "official", "--only", rows]
    assert main(words) == 0
    out = home / "results" / "paper"
    of_no_data = {"figure-lowrank": "figure-lowrank", "efficiency": "efficiency-paper"}
    for name in ALL:
        stem = of_no_data.get(name, f"{name}-paper-official")
        assert all((out / f"{stem}.{kind}").exists() for kind in ("md", "html", "json"))
    rows = json.loads((out / "table-industrial-paper-official.json").read_text())["rows"]
    assert {row["column"] for row in rows} >= {"volume", "surface", "C_L", "ρ_L"}
    assert all("--source official" in row["command"] for row in rows)
    assert (out / "all-paper-official.html").exists()
    assert not pending([EXPERIMENTS["resolution"]], Work(*_paths(home, "paper", "official")), "LRSA:")
    assert list(json.loads((out / "figure-qualitative-paper-official.json").read_text())["errors"]) == [
        "elasticity"
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
def test_everything_runs_from_an_empty_machine_on_two_problems(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrsa.experiments.seeds.SEEDS", 2)
    monkeypatch.setattr("lrsa.experiments.ablation.RANKS", (8, 32, 128))
    assert main(["reproduce", "all", "--scale", "demo", "--only", ":elasticity,:darcy"]) == 0
    assert (home / "results/paper/all-demo.html").exists()
    assert not pending([EXPERIMENTS["ablation"]], Work(*_paths(home)), ":darcy")


def _paths(home: Path, scale: str = "demo", source: Source = "generated") -> tuple[Study, Path, Path, Path]:
    return Study(scale, source), home / "results/cells", home / "runs/reproduce", home / "results/paper"
