"""Models that are fitted at once: they train, predict, evaluate, report and resume like any other."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import (
    NAMES,
    assert_bit_equal,
    frames,
    grid_cases,
    grid_points,
    quick,
    ragged_cases,
    refusal,
    say,
    weights,
    write,
)

import lrsa
from lrsa.evaluation.evaluate import evaluate
from lrsa.pointset import Names, PointSet

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]


def channel(seed: int, count: int) -> list[PointSet]:
    """Two parameters decide two fields of very different units on one mesh."""
    rng, x = np.random.default_rng(seed), grid_points(6)
    made = []
    for _ in range(count):
        a, b = rng.uniform(0.5, 2, 2)
        u = np.stack([a * np.exp(-b * x[:, 0]), 1e5 * np.sin(a * b * x[:, 1])], 1)
        globals_ = np.array([a, b], np.float32)
        names = Names(("x", "y"), (), ("u", "p"), ("a", "b"))
        made.append(PointSet(x, u=u.astype(np.float32), globals=globals_, names=names))
    return made


def test_two_parameters_are_interpolated_and_a_network_is_told_so(capsys: Capture) -> None:
    data = write(Path("channel.h5"), channel(0, 40), channel(1, 8))
    lrsa.fit(data, model="pod-rbf", out="fitted")
    assert "times smaller than the best null baseline (" in say(capsys, "evaluate", "fitted")
    fitted = evaluate(Path("fitted"))
    assert fitted.relative_l2 < 0.01
    assert fitted.relative_l2 == pytest.approx(fitted.nulls["radial basis functions"], rel=0.5)
    quick(data, "network", epochs=1)
    said = say(capsys, "evaluate", "network")
    assert "little was learned" in said
    assert "channel.h5 --model pod-rbf`" in said
    say(capsys, "report", "network")
    page = Path("network/report.html").read_text()
    assert "little was learned" in page
    assert "channel.h5 --model pod-rbf" in page


def test_inputs_at_the_points_are_enough(data: Path) -> None:
    """u is f smoothed: linear, and six waves."""
    fitted = lrsa.fit(data, model="pod-rbf", out="run")
    case = lrsa.open_dataset(data, "test")[0]
    assert np.linalg.norm(fitted.predict(case) - case.arrays()["u"]) < 0.01 * np.linalg.norm(
        case.arrays()["u"]
    )
    assert np.array_equal(lrsa.load("run").predict(case), fitted.predict(case))


def test_resume_ends_as_it_was(data: Path, capsys: Capture) -> None:
    lrsa.fit(data, model="pod-rbf", out="run", validation=0.2)
    before, row = weights(Path("run")), json.loads(Path("run/metrics.jsonl").read_text())
    assert row["validation"] > 0
    Path("run/model.safetensors").unlink()
    said = say(capsys, "resume", "run")
    assert "modes of the inputs" in said
    assert Path("run/report.html").exists()
    assert_bit_equal(before, weights(Path("run")))
    assert [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()] == [row]


def test_frames_are_met_at_their_times_and_linear_between() -> None:
    cases = [frames(case, 3) for case in grid_cases(12)]
    data = write(Path("time.h5"), cases, [frames(c, 3) for c in grid_cases(2, seed=1)], "time-conditioned")
    fitted = lrsa.fit(data, model="pod-rbf", out="run")
    case = lrsa.open_dataset(data, "test")[0]
    u, shown = case.arrays()["u"], fitted.predict(case)
    assert np.linalg.norm(shown - u) < 0.02 * np.linalg.norm(u)
    between = fitted.predict(replace(case, u=None, times=np.array([0.25], np.float32)))[0]
    np.testing.assert_allclose(between, (shown[0] + shown[1]) / 2, atol=1e-5)


def test_a_target_that_never_changes_is_predicted_as_it() -> None:
    cases = [
        replace(c, u=np.concatenate([c.arrays()["u"], np.full((64, 1), 7, np.float32)], 1))
        for c in grid_cases(8)
    ]
    cases = [replace(c, names=replace(NAMES, targets=("p", "seven"))) for c in cases]
    fitted = lrsa.fit(write(Path("constant.h5"), cases[:6], cases[6:]), model="pod-rbf", out="run")
    np.testing.assert_allclose(fitted.predict(cases[6])[:, 1], 7, rtol=1e-6)


def test_what_does_not_correspond_is_refused(data: Path, capsys: Capture) -> None:
    ragged = write(Path("ragged.h5"), ragged_cases(6), ragged_cases(2, seed=1))
    assert "needs cases of one mesh" in refusal(capsys, "train", ragged, "--model", "pod-rbf")
    rng = np.random.default_rng(0)
    cloud = [replace(c, grid=None, x=rng.random((64, 2)).astype(np.float32)) for c in grid_cases(6)]
    assert "needs cases of one mesh" in refusal(
        capsys, "train", write(Path("cloud.h5"), cloud), "--model", "pod-rbf"
    )
    steps = write(Path("steps.h5"), [frames(c, 12) for c in grid_cases(6)], protocol="autoregressive")
    assert "follow from frames before" in refusal(capsys, "train", steps, "--model", "pod-rbf")
    late = [replace(frames(c, 3), times=np.linspace(0, 1 + i, 3)) for i, c in enumerate(grid_cases(6))]
    apart = write(Path("apart.h5"), late, protocol="time-conditioned")
    assert "the same times in all cases" in refusal(capsys, "train", apart, "--model", "pod-rbf")
    fitted = lrsa.fit(data, model="pod-rbf", out="run")
    case = lrsa.open_dataset(data, "test")[0]
    with pytest.raises(lrsa.LrsaError, match="its mesh of 64 points alone, but 32 are given"):
        fitted.predict(case.subset(np.arange(32)))
    with pytest.raises(lrsa.LrsaError, match="or in another order"):
        fitted.predict(case.subset(np.arange(64)[::-1].copy()))
    assert "starts from nothing" in refusal(
        capsys, "train", data, "--model", "pod-rbf", "--init", "run", "--out", "b"
    )
    assert "cannot be exported" in refusal(capsys, "export", "run", "--format", "torch")


def test_a_data_set_is_predicted_into_another(data: Path, capsys: Capture) -> None:
    lrsa.fit(data, model="pod-rbf", out="run")
    assert "12 cases predicted" in say(capsys, "predict", "run", data, "--out", "out.h5")
