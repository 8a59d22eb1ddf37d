"""A prediction is a number, or it is refused: whatever is wrong with the weights or the inputs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from small import copy_run, frames, grid_cases, quick, refusal, weights, write

import lrsa
from lrsa.errors import Failure, LrsaError

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]


def spoiled(trained: Path, value: float, name: str | None = None) -> Path:
    """The run with this value in the middle of one tensor (default: of a weight of the model)."""
    run = copy_run(trained, Path("run"))
    tensors = weights(run)
    name = name or next(
        key for key, tensor in tensors.items() if key.startswith("model.") and tensor.ndim == 2
    )
    tensors[name].view(-1)[tensors[name].numel() // 2] = value
    save_file(tensors, run / "model.safetensors")
    return run


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [None, "normaliser.u_scale", "normaliser.f_shift"])
def test_weights_that_are_not_finite_are_refused(
    capsys: Capture, trained: Path, data: Path, value: float, name: str | None
) -> None:
    run = spoiled(trained, value, name)
    said = "run/model.safetensors is damaged, or its training failed: "
    for words in (
        ["predict", run, data, "--out", "out.h5"],
        ["evaluate", run],
        ["export", run, "--format", "torch"],
    ):
        line = refusal(capsys, *words)
        assert said in line
        assert "is not finite. Train again" in line
    assert said in refusal(capsys, "train", data, "--out", "next", "--init", run)


def test_weights_so_large_that_the_prediction_is_none_are_told_of(
    capsys: Capture, trained: Path, data: Path
) -> None:
    """As a flipped bit of an exponent makes them."""
    run = spoiled(trained, 3e38)
    case = grid_cases(1)[0]
    np.savez("case.npz", x=case.x, a=np.asarray(case.f))
    said = "the prediction is NaN or infinite: the weights are damaged"
    assert f"case.npz: {said}" in refusal(capsys, "predict", run, "case.npz", "--out", "out.npz", code=1)
    assert said in refusal(capsys, "predict", run, data, "--out", "out.h5", code=1)
    rows = "\n".join(f"{x},{y}" for x, y in case.x)
    Path("at.csv").write_text(f"x,y\n{rows}\n")
    line = refusal(capsys, "predict", run, "case.npz", "--at", "at.csv", "--out", "out.csv", code=1)
    assert said in line
    assert not list(Path.cwd().glob("out.*"))
    with pytest.raises(Failure, match=said):
        lrsa.load(run).predict(case.x, case.f)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize(("name", "said"), [("x", "coordinate y"), ("f", "input a"), ("weights", "weights")])
def test_inputs_that_are_not_finite_are_named(trained: Path, name: str, said: str, value: float) -> None:
    surrogate, cases = lrsa.load(trained), grid_cases(2)
    arrays = {"x": np.stack([c.x for c in cases]), "f": np.stack([np.asarray(c.f) for c in cases])}
    given = {name: values.astype(np.float64) for name, values in arrays.items()} | {
        "weights": np.ones((2, 64))
    }
    given[name].reshape(2, -1)[1, 5] = value
    with pytest.raises(LrsaError, match=f"case 1 has .* in {said}"):
        surrogate.predict(**given)  # pyright: ignore[reportArgumentType]
    given[name].reshape(2, -1)[1, 5] = 0.5
    assert np.isfinite(surrogate.predict(**given)).all()  # pyright: ignore[reportArgumentType]


def test_times_that_are_not_finite_are_named(home: Path) -> None:
    cases = [frames(case, 3) for case in grid_cases(4)]
    surrogate = quick(write(home / "t.h5", cases, protocol="time-conditioned"), "run", epochs=1)
    assert surrogate.predict(cases[0].x, cases[0].f, time=0.5).shape == (64, 1)
    with pytest.raises(LrsaError, match="case 0 has NaN in time"):
        surrogate.predict(cases[0].x, cases[0].f, time=np.nan)


def test_what_is_of_another_number_of_cases_is_named(trained: Path) -> None:
    case = grid_cases(1)[0]
    x, f = np.stack([case.x, case.x]), np.stack([np.asarray(case.f)] * 2)
    with pytest.raises(LrsaError, match=r"x has 2 cases, but weights is of shape \(64,\)"):
        lrsa.load(trained).predict(x, f, weights=np.ones(64))


def test_the_check_changes_no_bit(trained: Path) -> None:
    surrogate, case = lrsa.load(trained), grid_cases(1)[0]
    with torch.inference_mode():
        x, f = torch.from_numpy(case.x)[None], torch.from_numpy(np.asarray(case.f))[None]
        assert np.array_equal(surrogate(x, f)[0].numpy(), surrogate.predict(case.x, case.f))


def test_what_is_to_be_predicted_need_not_be_known(trained: Path) -> None:
    case = grid_cases(1)[0]
    unknown = replace(case, u=np.full((64, 1), np.nan))
    assert np.array_equal(lrsa.load(trained).predict(unknown), lrsa.load(trained).predict(case))
