"""Surrogates that come with the package: found by name, whole, with a card, without a machine's places."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from small import copy_run, files, quick, refusal, say

import lrsa
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate, truth
from lrsa.objectives.metrics import relative_l2
from lrsa.problems.catalogue import get
from lrsa.report.printing import number
from lrsa.surrogate import shipped
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
ROOT = Path(__file__).parents[2]


def study(name: str) -> ModuleType:
    """A script of `studies/`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "studies" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def store(trained: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with one surrogate, `smooth`, made of a small run."""
    place = home / "package"
    study("ship").ship(trained, "smooth", place)
    monkeypatch.setattr(shipped, "HOME", place)
    return place


def test_a_shipped_surrogate_is_loaded_by_name_and_predicts_the_same(
    store: Path, trained: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = lrsa.open_dataset(data, "test")[0]
    assert np.array_equal(lrsa.load("smooth").predict(case), lrsa.load(trained).predict(case))
    assert "12 cases predicted" in say(capsys, "predict", "smooth", data, "--out", "out.h5")


def test_nothing_of_this_machine_is_shipped(store: Path, trained: Path, data: Path) -> None:
    assert {Path(name).name for name in files(store)} == {
        "card.md",
        "config.json",
        "model.safetensors",
        "ranges.json",
    }
    for name, content in files(store).items():
        for place in (data.parent, trained.parent, Path.home()):
            assert str(place).encode() not in content, name
    assert RunConfig.load(store / "smooth").data.path == data.name


def test_the_card_tells_the_error_beside_every_null_baseline(store: Path, trained: Path) -> None:
    card, found = (store / "smooth" / "card.md").read_text(), evaluate(trained)
    for value in (found.relative_l2, *found.nulls.values()):
        assert f"| {number(value)} |" in card
    assert "--train.epochs 3" in card or "lrsa.fit" in card


def test_training_starts_from_it_at_its_sizes(store: Path, data: Path) -> None:
    lrsa.fit(data, out="run", init="smooth", epochs=1, max_lr=1e-9, muon_lr=1e-9, validation=0)
    config = RunConfig.load(Path("run"))
    assert config.options["depth"] == 1
    case = lrsa.open_dataset(data, "test")[0]
    np.testing.assert_allclose(lrsa.load("run").predict(case), lrsa.load("smooth").predict(case), atol=1e-4)


def test_a_folder_of_that_name_goes_first_and_a_slip_is_named(
    store: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Did you mean smooth?" in refusal(capsys, "predict", "smoth", data, "--out", "out.h5")
    assert "is not a run" in refusal(capsys, "predict", "nowhere", data, "--out", "out.h5")
    quick(data, "smooth", epochs=1)
    assert shipped.located("smooth") == Path("smooth")
    assert shipped.located("./smooth") == Path("smooth")


def test_what_is_unfinished_ill_named_or_there_is_not_shipped(
    store: Path, trained: Path, tmp_path: Path
) -> None:
    ship = study("ship").ship
    before = files(store)
    with pytest.raises(LrsaError, match="--replace"):
        ship(trained, "smooth", store)
    with pytest.raises(LrsaError, match="no name of a surrogate"):
        ship(trained, "../smooth", store)
    unfinished = copy_run(trained, tmp_path / "unfinished")
    (unfinished / "model.safetensors").unlink()
    with pytest.raises(LrsaError, match="no finished weights"):
        ship(unfinished, "other", store)
    assert files(store) == before
    ship(trained, "smooth", store, replace=True)
    assert json.loads((store / "smooth" / "config.json").read_text())["model"] == "lrsa"


@pytest.mark.parametrize("name", ["airfoil", "darcy", "elasticity", "plasticity"])
def test_what_comes_with_the_package_answers_new_cases_as_its_card_says(name: str) -> None:
    folder = shipped.HOME / name
    config, problem, surrogate = RunConfig.load(folder), get(name), lrsa.load(name)
    assert problem.solver is not None
    solver = problem.solver(**problem.fidelities[config.schema.provenance["fidelity"]])
    cases = [solver.sample(np.random.default_rng([99, i])).strided(config.data.stride) for i in range(3)]
    errors = [relative_l2(surrogate.predict(case), truth(surrogate.protocol, case)) for case in cases]
    said = re.search(r"this surrogate \| ([\d.]+)", (folder / "card.md").read_text())
    assert said is not None
    assert float(np.mean(errors)) < 2 * float(said[1])
    assert (folder / "model.safetensors").stat().st_size < 10**7


def test_what_comes_with_the_package_has_a_card_of_its_own() -> None:
    assert sorted(shipped.shipped()) == ["airfoil", "darcy", "elasticity", "plasticity"]


def test_a_file_without_the_grid_that_a_surrogate_needs_is_refused_before_anything_is_predicted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    x = np.random.default_rng(0).random((484, 2))
    np.savez("flat.npz", x=x, f=np.full((484, 1), 3.0))
    line = refusal(capsys, "predict", "darcy", "flat.npz", "--out", "out.npz")
    assert "darcy needs a structured grid, and flat.npz has none" in line
    np.savez("flat.npz", x=x, f=np.full((484, 1), 3.0), grid=[22, 22])
    assert "1 case predicted" in say(capsys, "predict", "darcy", "flat.npz", "--out", "out.npz")
