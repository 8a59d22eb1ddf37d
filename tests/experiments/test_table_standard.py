"""The table of the standard benchmarks: every model trains on every benchmark it accepts, in one loop."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lrsa.cli.program import main
from lrsa.data.making import case_rng
from lrsa.data.writing import write_dataset
from lrsa.errors import Failure, LrsaError
from lrsa.experiments.table_page import write_table
from lrsa.experiments.table_standard import STANDARD, chosen
from lrsa.files import alone
from lrsa.models.listing import list_models
from lrsa.models.registry import get
from lrsa.problems.catalogue import CATALOGUE
from lrsa.problems.problem import Scale

pytest_plugins = ["small_runs"]
SMALL: dict[str, dict[str, Any]] = {
    "darcy": {"resolution": 17, "stride": 1},
    "elasticity": {"refinement": 1},
    "airfoil": {"tolerance": 3e-2},
    "pipe": {"elements": 8},
    "navier-stokes": {"resolution": 17, "stride": 1, "frames": 11},
    "plasticity": {"young": 12.5e3, "columns": 20, "rows": 6},
}
TINY = {"width": 16, "depth": 2, "heads": 2, "rank": 9}
NO_FEATURES = {"elasticity", "airfoil", "pipe"}
FAST = ("darcy", "elasticity")


@pytest.fixture
def tiny(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every benchmark with its own solver, on few points: three training cases and a test case."""
    monkeypatch.setattr("lrsa.experiments.table_standard.ROUNDS", 1)
    for name, parameters in SMALL.items():
        stride = 10 if name == "airfoil" else 1
        scale = Scale(
            "tiny",
            3,
            1,
            "fast",
            {"generated": stride, "official": stride},
            model=TINY,
            train={"epochs": 1, "batch_size": 2},
        )
        small = replace(CATALOGUE[name], fidelities={"fast": parameters}, scales={"demo": scale})
        monkeypatch.setitem(CATALOGUE, name, small)
        solver = small.solver_at("fast")
        cases = [solver.sample(case_rng(name, 1, 0, "train", i)) for i in range(4)]
        # Made here: the workers of `lrsa data make` have a catalogue of their own.
        write_dataset(small.path("fast"), {"train": cases[:3], "test": cases[3:]}, small.schema("fast", 0))


def inapplicable(benchmark: str) -> set[str]:
    """The models that do not take the data of a benchmark."""
    models = {"norm"} if benchmark in NO_FEATURES else set()
    if benchmark == "elasticity":  # has no grid
        models |= {name for name in list_models() if "points" not in get(name).data}
    return models


def test_every_benchmark_has_a_small_form() -> None:
    assert set(SMALL) == set(STANDARD)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "benchmark", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SMALL]
)
def test_every_model_trains_on_every_benchmark_it_accepts(benchmark: str, home: Path) -> None:
    words = ["reproduce", "table-standard", "--scale", "demo", "--only", f":{benchmark}", "--out", "out"]
    assert main(words) == 0
    cells = json.loads((home / "out" / "table-standard-demo.json").read_text())["cells"]
    assert [cell["model"] for cell in cells] == list_models()
    refused = {cell["model"]: cell["reason"] for cell in cells if cell["reason"]}
    assert set(refused) == inapplicable(benchmark)
    assert all((name in reason or "NORM" in reason) and " Use " in reason for name, reason in refused.items())
    measured = [cell for cell in cells if not cell["reason"]]
    assert all(cell["relative_l2"] > 0 and cell["step"] > 0 for cell in measured)
    assert {cell["model"]: cell["step"] for cell in measured}["lrsa"] == 1
    page = (home / "out" / "table-standard-demo.md").read_text()
    assert "generated" in page
    assert all(f"{cell['relative_l2']:.4f}" in page for cell in measured)


@pytest.mark.usefixtures("tiny")
def test_what_is_trained_is_not_trained_again(home: Path) -> None:
    words = ["reproduce", "table-standard", "--scale", "demo", "--out", "out", "--only"]
    assert main([*words, "lrsa:darcy"]) == 0
    weights = home / "runs" / "reproduce" / "demo" / "darcy-lrsa" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    assert main([*words, "lrsa:darcy,deeponet:darcy"]) == 0
    assert weights.stat().st_mtime_ns == before
    cells = json.loads((home / "out" / "table-standard-demo.json").read_text())["cells"]
    assert [cell["model"] for cell in cells] == ["deeponet", "lrsa"]
    page = (home / "out" / "table-standard-demo.md").read_text()
    assert "Not trained yet: backbone-f-fno" in page
    assert "transolver-plus." in page


@pytest.mark.parametrize(("threads", "words"), [(1, "on one thread"), (2, "on 2 threads")])
def test_the_page_says_on_how_many_threads_it_was_made(tmp_path: Path, threads: int, words: str) -> None:
    page = write_table(tmp_path, "demo", threads, [], {}).read_text()
    assert f"--threads {threads}`" in page
    assert words in page


@pytest.mark.usefixtures("tiny")
def test_data_that_another_process_makes_ends_the_study_and_is_no_reason_for_a_cell(home: Path) -> None:
    words = ["reproduce", "table-standard", "--scale", "demo", "--out", "out", "--only", "lrsa:darcy"]
    path = CATALOGUE["darcy"].path("fast")
    path.unlink()
    with alone(path):
        assert main(words) == 2
    assert not list(home.rglob("reason.txt"))


@pytest.mark.usefixtures("tiny")
def test_a_run_that_diverges_is_a_reason(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def diverge(run: Path) -> None:
        raise Failure("the loss became nan")

    monkeypatch.setattr("lrsa.experiments.table_standard.train_run", diverge)
    words = ["reproduce", "table-standard", "--scale", "demo", "--out", "out", "--only", "lrsa:darcy"]
    assert main(words) == 0
    (cell,) = json.loads((home / "out" / "table-standard-demo.json").read_text())["cells"]
    assert cell["reason"] == "the loss became nan"


@pytest.mark.parametrize(
    ("only", "words"), [("darcy", "MODEL:BENCHMARK"), ("lrza:darcy", "lrza"), ("lrsa:dacry", "dacry")]
)
def test_a_pair_that_is_not_there_is_named(only: str, words: str) -> None:
    with pytest.raises(LrsaError, match=words):
        chosen(only)


def test_pairs_are_chosen_by_model_by_benchmark_or_both() -> None:
    assert chosen("lrsa:darcy") == [("lrsa", "darcy")]
    assert chosen("lrsa:darcy,lrsa:darcy") == [("lrsa", "darcy")]
    assert chosen(":darcy") == [(model, "darcy") for model in list_models()]
    assert {benchmark for _, benchmark in chosen("fno:")} == set(STANDARD)
