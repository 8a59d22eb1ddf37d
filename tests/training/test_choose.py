"""The automatic choice: what it takes from the data, and how far it climbs against a fake clock."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import grid_cases, ragged_cases, write

import lrsa
from lrsa.cli.program import main
from lrsa.pointset import Names, PointSet
from lrsa.problems.catalogue import get
from lrsa.training.budget import ENOUGH, Pace
from lrsa.training.choose import SIZES_OF_MODELS, SMALL, THIN, elongation, for_data, for_problem
from lrsa.training.config import RunConfig
from lrsa.training.configure import named
from lrsa.training.fit import prepare
from lrsa.training.loop import Trainer

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def cloud(points: int, cases: int = 4) -> Path:
    rng = np.random.default_rng(0)
    made = [PointSet(rng.random((points, 2)), u=rng.random((points, 1))) for _ in range(cases)]
    return write(Path(f"cloud-{points}.h5"), made)


def costly(unit: float) -> Any:
    """A clock by which a step takes a time of width² · depth · points of the batch."""

    def pace(trainer: Trainer) -> Pace:
        width, depth = _sizes(trainer)
        points = trainer.config.points or len(trainer.cases[0])
        return Pace(unit * width**2 * depth * points * trainer.config.batch_size)

    return pace


def _sizes(trainer: Trainer) -> tuple[int, int]:
    blocks: Any = trainer.surrogate.model
    latents = blocks.blocks[0].mix.latents
    return latents.shape[-1], len(blocks.blocks)


@pytest.mark.parametrize(("minutes", "level"), [(0.1, 0), (5.0, 1), (20.0, 2)])
def test_the_model_is_the_largest_for_which_there_are_enough_steps(
    data: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, level: int
) -> None:
    """By the clock enough steps of the three sizes take 1, 3.4 and 8 minutes; there is no data for larger."""
    cost = [size["width"] ** 2 * size["depth"] for size in SIZES_OF_MODELS[:SMALL]]
    unit = 1 / (cost[0] * 64 * 4) * 60 / ENOUGH  # the smallest has its steps in one minute
    monkeypatch.setattr(Pace, "of", costly(unit))
    config = RunConfig.load(prepare(str(data), "lrsa", options={}, train={"minutes": minutes}))
    assert {k: config.options[k] for k in ("width", "depth")} == {
        k: SIZES_OF_MODELS[level][k] for k in ("width", "depth")
    }
    fits = [60 * minutes / (unit * c * 64 * 4) >= 0.99 * ENOUGH for c in cost]
    assert level == max([0, *(i for i in range(SMALL) if fits[i])])


def test_without_a_budget_nothing_is_measured_against_one(data: Path) -> None:
    run = prepare(str(data), "lrsa", options={}, train={"epochs": 1})
    assert RunConfig.load(run).options["width"] == 64


def test_what_was_typed_stands(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(1e-6))
    run = prepare(str(data), "lrsa", options={"width": 16, "heads": 2}, train={"minutes": 1, "epochs": 2})
    options = RunConfig.load(run).options
    assert (options["width"], options["heads"], options["depth"]) == (16, 2, 4)


def test_large_meshes_are_thinned_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    data = cloud(20_000)
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(100.0))
    short = RunConfig.load(prepare(str(data), "lrsa", out=Path("short"), options={}, train={"minutes": 1}))
    assert (short.train.points, short.train.batch_size) == (THIN[0], 4)
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(1e-6))
    enough = RunConfig.load(prepare(str(data), "lrsa", out=Path("enough"), options={}, train={"minutes": 1}))
    assert (enough.train.points, enough.train.batch_size) == (None, 2)


def test_validation_takes_a_fifth_of_the_time_at_the_most(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(0.1, 3.0))
    run = prepare(str(data), "lrsa", options={}, train={"minutes": 2, "batch_size": 4})
    train = RunConfig.load(run).train
    assert train.every == 40  # epochs of three steps, 0.3 s: 12 s of steps for 3 s of validation
    assert train.epochs * (0.3 + 3 / train.every) <= 120
    assert Pace(0.1, 0.01).every(3) == 1


def test_long_domains_are_said_to_be_long_whichever_case_comes_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stretched(by: float, cases: list[PointSet]) -> list[PointSet]:
        return [replace(case, x=case.x * np.array([by, 1], np.float32)) for case in cases]

    assert elongation(stretched(11, ragged_cases(5))) == pytest.approx(11, rel=0.2)
    assert elongation([PointSet(np.ones((4, 2)))]) == 1
    flat = [replace(case, x=np.pad(case.x, ((0, 0), (0, 1)))) for case in ragged_cases(5)]
    assert elongation(flat) < 1.5, "an axis without extent is none"
    prepare(str(write(Path("flat.h5"), flat)), "lrsa", options={}, train={"epochs": 1})
    assert "in 2 coordinates" in capsys.readouterr().out
    data = write(Path("long.h5"), stretched(11, grid_cases(4)))
    prepare(str(data), "lrsa", options={}, train={"epochs": 1})
    said = capsys.readouterr().out
    assert "11 times as long as wide (each axis has its own scale)" in said
    assert "coordinates axis" in said
    assert "on a grid of 8 x 8 (local mixing)" in said


def test_a_grid_of_the_users_own_gets_fourier_filters_unless_another_model_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid, cloud = "g.h5", str(write(Path("c.h5"), ragged_cases(4)))
    lrsa.write_dataset(grid, grid_cases(5))
    assert named(grid, None, {"width": 16}, None) == "lrsa-fourier"
    assert named(cloud, None, {}, None) == named("darcy", None, {}, None) == "lrsa"
    assert named(grid, "fno", {}, None) == "fno"
    assert named(grid, None, {"local": "pointwise"}, None) == "lrsa", "an option that only LRSA has"
    assert named(grid, None, {}, "darcy") == "lrsa", "whose weights are gone on with"
    small = {"width": 8, "depth": 1, "heads": 2, "rank": 4}
    lrsa.fit(grid, epochs=1, options=small)
    assert "on a grid of 8 x 8 (Fourier filters)" in capsys.readouterr().out
    assert RunConfig.load(Path("runs/g-lrsa-fourier")).model == "lrsa-fourier"
    assert main(["train", grid, "--init", "runs/g-lrsa-fourier", "--out", "on", "--train.epochs", "1"]) == 0
    assert RunConfig.load(Path("on")).model == "lrsa-fourier", "the model of the weights it starts from"
    words = [f"--model.{name}={value}" for name, value in small.items()]
    assert main(["train", grid, *words, "--model.local", "depthwise", "--train.epochs", "1"]) == 0
    assert RunConfig.load(Path("runs/g-lrsa")).options["local"] == "depthwise"


def in_units(displacement: float, pressure: float) -> str:
    """A data set of a vector and a scalar in such units."""
    names = Names(("x", "y"), ("a",), ("d_x", "d_y", "p"))

    def told(case: PointSet) -> PointSet:
        assert case.u is not None
        assert case.f is not None
        u = np.concatenate([displacement * case.u, 1e-9 * displacement * case.f, pressure * case.u], axis=1)
        return replace(case, u=u, names=names)

    return str(write(Path(f"{displacement:g}-{pressure:g}.h5"), [told(case) for case in ragged_cases(6)]))


def test_fields_of_very_different_size_count_alike(capsys: pytest.CaptureFixture[str]) -> None:
    """In one norm of metres and pascals the pascals alone would be learned. A component of a vector that is
    nearly zero stays with the others."""
    apart, near = in_units(1e-4, 1e7), in_units(1.0, 5.0)
    words = "relative-l2:d_x:d_y+relative-l2:p"
    run = prepare(apart, "lrsa", options={}, train={"epochs": 1})
    assert "whose fields differ in size and count alike" in (said := capsys.readouterr().out)
    assert f"loss {words}" in said
    assert RunConfig.load(run).train.loss == words
    for data, train, loss in ((near, {}, "relative-l2"), (apart, {"loss": "mse"}, "mse")):
        run = prepare(data, "transolver", out=Path(f"run-{loss}"), options={}, train={"epochs": 1, **train})
        assert RunConfig.load(run).train.loss == loss


def test_models_that_need_all_points_are_not_thinned() -> None:
    data = lrsa.open_dataset(cloud(20_000, 2))
    assert {train["points"] for _, train in for_data(data, "lrsa").levels} == {*THIN, None}
    assert {train["points"] for _, train in for_data(data, "graphsage").levels} == {None}
    assert for_data(data, "pod-rbf").levels == ()


@pytest.mark.parametrize(("model", "points"), [("lrsa", 1500), ("deeponet", None), ("hpm", None)])
def test_nor_are_those_that_need_them_as_published_for_a_benchmark(model: str, points: int | None) -> None:
    """DeepONet reads any set of points by its own options, and the inputs of Heat Transfer by their order."""
    problem = get("heat-transfer")
    assert for_problem(problem, problem.scale("demo"), model).train.get("points") == points
