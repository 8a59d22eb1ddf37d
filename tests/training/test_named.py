"""A loss and metrics that a user or a problem names: trained with, kept, measured and printed."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small import WORDS, differ, grid_cases, quick, ragged_cases, weights, write

import lrsa
from lrsa.cli.program import main
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.pointset import PointSet
from lrsa.problems import catalogue
from lrsa.problems.catalogue import get
from lrsa.training.choose import for_problem
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def bodies(cases: list[PointSet]) -> list[PointSet]:
    """With a surface: the points of the left half."""
    return [replace(case, surface=case.x[:, 0] < np.median(case.x[:, 0])) for case in cases]


def body_data(path: str = "bodies.h5") -> Path:
    return write(Path(path), bodies(ragged_cases(8)), bodies(ragged_cases(3, seed=1)))


def test_a_run_keeps_its_loss_and_metrics_and_is_measured_by_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = body_data()
    target = Dataset(data, "test").schema.names.targets[0]
    metrics = f"mse:{target}@surface,relative-l2@volume,spearman:max:{target},relative-error:mean:{target}"
    words = ["--train.loss", "mse@volume+0.5*mse@surface", "--train.metrics", metrics, "--train.epochs", "1"]
    assert main(["train", str(data), "--out", "run", "--threads", "1", *words, *WORDS]) == 0
    train = RunConfig.load(Path("run")).train
    assert (train.loss, train.metrics) == ("mse@volume+0.5*mse@surface", metrics)
    kept = json.loads(Path("run/evaluation.json").read_text())["metrics"]
    assert list(kept) == metrics.split(",")
    said, page = capsys.readouterr().out, Path("run/report.html").read_text()
    assert all(name in said and name in page for name in kept)
    surrogate, tests = lrsa.load("run"), Dataset(data, "test")
    scale = surrogate.normaliser.u_scale.numpy()
    errors = []
    for case in tests:
        assert case.u is not None
        assert case.surface is not None
        error = (surrogate.predict(case) - case.u)[case.surface, 0] / scale[0]
        errors.append(np.square(error.astype(float)).mean())
    assert kept[f"mse:{target}@surface"] == pytest.approx(np.mean(errors), rel=1e-4)
    rows = list(csv.DictReader(Path("run/evaluation.csv").read_text().splitlines()))
    assert [float(row[f"mse:{target}@surface"]) for row in rows] == pytest.approx(errors, rel=1e-4)
    assert [float(row[f"max:{target}, true"]) for row in rows] == pytest.approx(
        [float(case.u[:, 0].max()) for case in tests if case.u is not None]
    )


def test_the_loss_is_made_small_and_is_another_than_relative_l2() -> None:
    data = body_data()
    for run, loss in (("ours", "mse@volume+mse@surface"), ("theirs", "relative-l2")):
        quick(data, run, epochs=6, max_lr=5e-3, loss=loss)
    losses = [json.loads(row)["loss"] for row in Path("ours/metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < 0.9 * losses[0]
    assert differ(weights(Path("ours")), weights(Path("theirs")))


def test_targets_that_are_not_in_the_loss_are_not_learned() -> None:
    """In the volume they are told in the opposite order, which keeps their mean and deviation."""
    cases, others = bodies(ragged_cases(6)), []
    for case in cases:
        assert case.u is not None
        assert case.surface is not None
        u = case.u.copy()
        u[~case.surface] = u[~case.surface][::-1]
        others.append(replace(case, u=u))
    settings = {"validation": 0.0, "threads": 1}
    for run, part in (("one", cases), ("other", others)):
        quick(write(Path(f"{run}.h5"), part), run, loss="mse@surface", **settings)
        quick(Path(f"{run}.h5"), f"{run}-all", loss="mse", **settings)
    for name, value in weights(Path("one")).items():
        torch.testing.assert_close(weights(Path("other"))[name], value, rtol=1e-4, atol=1e-5)
    runs = (Path("one-all"), Path("other-all"))
    parts = [torch.cat([t.flatten() for t in weights(run).values()]) for run in runs]
    assert float((parts[0] - parts[1]).norm()) > 1e-2


def test_training_by_chunks_of_points_is_the_same_training() -> None:
    data = body_data()
    for run, chunk in (("whole", None), ("chunks", 7)):
        quick(data, run, epochs=2, loss="mse@volume+mse@surface", chunk=chunk)
    ours, theirs = weights(Path("chunks")), weights(Path("whole"))
    for name, value in theirs.items():
        assert (ours[name].double() - value).norm() <= 1e-3 * value.double().norm() + 1e-5, name


def test_what_the_data_lacks_is_refused_before_there_is_a_run() -> None:
    data = write(Path("plain.h5"), ragged_cases(5))
    for settings in ({"loss": "mse@surface"}, {"metrics": "mse@surface"}):
        with pytest.raises(LrsaError, match="needs to know which points are on the surface"):
            quick(data, "run", **settings)
    with pytest.raises(LrsaError, match='no target "nothing"'):
        quick(data, "run", loss="mse:nothing")
    with pytest.raises(LrsaError, match=r'no metric "gradeint"\. Did you mean gradient\?'):
        quick(data, "run", metrics="gradeint")
    assert not Path("run").exists()


def test_metrics_may_be_asked_for_later(data: Path) -> None:
    quick(data, "run")
    assert evaluate(Path("run")).metrics == {}
    assert main(["evaluate", "run", "--metrics", "gradient,mse"]) == 0
    kept = json.loads(Path("run/evaluation.json").read_text())["metrics"]
    assert kept["mse"] > 0
    assert 0 < kept["gradient"] < math.inf


def test_a_problem_names_its_loss_and_metrics_and_a_scale_may_say_otherwise() -> None:
    plain = get("darcy")
    assert "loss" not in for_problem(plain, plain.scale("demo"), "lrsa").train
    problem = replace(
        plain, loss="mse", metrics="spearman:flux", quantities={"flux": lambda case, u: u.sum()}
    )
    settings = for_problem(problem, problem.scale("demo"), "lrsa").train
    assert (settings["loss"], settings["metrics"]) == ("mse", "spearman:flux")
    own = replace(problem.scale("demo"), train={"loss": "relative-l2"})
    assert for_problem(problem, own, "lrsa").train["loss"] == "relative-l2"


def test_quantities_of_a_problem_are_those_of_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = replace(get("darcy"), quantities={"level": lambda case, u: float(u.mean())})
    monkeypatch.setitem(catalogue.CATALOGUE, "darcy", problem)
    quick(
        write(Path("darcy.h5"), grid_cases(5), grid_cases(3, seed=1)),
        "run",
        metrics="spearman:level,relative-error:level",
    )
    found = evaluate(Path("run"))
    assert -1 <= found.metrics["spearman:level"] <= 1
    pairs = [(row.metrics["level"], row.metrics["level, true"]) for row in found.table]
    error = np.mean([abs(a - b) / abs(b) for a, b in pairs])
    assert found.metrics["relative-error:level"] == pytest.approx(error)
