"""A trained surrogate: physical units in and out, exact in pieces, and safe to load."""

import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from small import copy_run, grid_cases, quick, ragged_cases, write

import lrsa
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.surrogate import surrogate as surrogates
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def scaled(case: PointSet, length: float, inputs: float, targets: float) -> PointSet:
    """The same case in other units."""
    assert case.f is not None
    assert case.u is not None
    return replace(case, x=length * case.x, f=inputs * case.f, u=targets * case.u)


@pytest.mark.parametrize(
    ("units", "tolerance"),
    [((2.0**10, 2.0**-7, 2.0**12), 0.0), ((1e3, 1e-3, 47.0), 2e-4), ((1e-9, 1e9, 1e-12), 2e-4)],
)
def test_units_do_not_matter(units: tuple[float, float, float], tolerance: float) -> None:
    """Trained on the same cases in other units, it predicts the same in those units (1 ULP apart for
    powers of two, up to the rounding of a few training steps otherwise)."""
    cases, new = grid_cases(6), grid_cases(1, seed=2)[0]
    ours = quick(write(Path("ours.h5"), cases), "ours").predict(new.x, new.f)
    other = quick(write(Path("other.h5"), [scaled(case, *units) for case in cases]), "other")
    theirs = other.predict(units[0] * new.x, units[1] * new.f) / units[2]  # pyright: ignore[reportOperatorIssue]
    assert np.abs(theirs - ours).max() <= max(tolerance, 1e-6) * np.abs(ours).max()


def test_a_surrogate_predicts_fields_of_physical_size() -> None:
    """A pressure of 10⁵ Pa that varies by some 10³ Pa; to know its mean alone is an error of 1."""
    cases, (new,) = (
        [replace(case, u=1e5 + 2e3 * case.u) for case in grid_cases(count, seed, side=4)]  # pyright: ignore[reportOperatorIssue]
        for count, seed in ((24, 0), (1, 3))
    )
    quick(write(Path("pascal.h5"), cases), "run", epochs=8, max_lr=1e-2)
    u = lrsa.load("run").predict(new.x, new.f)
    assert u.shape == (16, 1)
    assert u.dtype == np.float32
    assert np.linalg.norm(u - new.u) < 0.6 * np.linalg.norm(new.u - 1e5)  # pyright: ignore[reportOptionalOperand]


def test_one_case_and_a_batch_are_predicted_alike(trained: Path) -> None:
    surrogate, cases = lrsa.load(trained), grid_cases(5, seed=2)
    x, f = np.stack([case.x for case in cases]), np.stack([case.f for case in cases])  # pyright: ignore[reportArgumentType, reportCallIssue]
    batch = surrogate.predict(x, f)
    assert batch.shape == (5, 64, 1)
    for i, case in enumerate(cases):
        np.testing.assert_allclose(surrogate.predict(case.x, case.f), batch[i], atol=1e-5)


@pytest.mark.parametrize("chunk", [1, 7, 63, 64])
def test_in_pieces_is_as_in_one(trained: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    surrogate, case = lrsa.load(trained), grid_cases(1, seed=2)[0]
    whole, pieces = [], []
    stream = Mock(side_effect=partial(surrogates.stream, chunk=chunk))
    for weights in (None, np.random.default_rng(0).uniform(0.5, 2, 64)):
        whole.append(surrogate.predict(case.x, case.f, weights=weights))
        with monkeypatch.context() as patch:
            patch.setattr(surrogates, "WHOLE", 63)
            patch.setattr(surrogates, "stream", stream)
            pieces.append(surrogate.predict(case.x, case.f, weights=weights))
    assert stream.call_count == 2
    np.testing.assert_allclose(pieces, whole, atol=1e-5)
    assert np.abs(whole[0] - whole[1]).max() > 0.01, "the weights should matter"


def test_the_order_of_the_points_does_not_matter(trained: Path) -> None:
    surrogate, case = lrsa.load(trained), grid_cases(1, seed=2)[0]
    assert case.f is not None
    order = np.random.default_rng(0).permutation(64)
    turned = surrogate.predict(case.x[order], case.f[order])
    np.testing.assert_allclose(turned, surrogate.predict(case.x, case.f)[order], atol=1e-5)


def test_lists_and_double_precision_are_taken(trained: Path) -> None:
    surrogate, case = lrsa.load(trained), grid_cases(1)[0]
    assert case.f is not None
    once = surrogate.predict(case.x, case.f)
    np.testing.assert_array_equal(surrogate.predict(case.x.tolist(), case.f.astype(np.float64)), once)


def test_a_flat_axis_is_dropped_and_remembered() -> None:
    cases = [
        replace(case, x=np.column_stack([case.x, np.full(len(case), 7, np.float32)]))
        for case in ragged_cases(5)
    ]
    surrogate = quick(write(Path("flat.h5"), cases), "run")
    assert surrogate.model.coord_dim == 2
    here = surrogate.predict(cases[0].x, cases[0].f)
    np.testing.assert_array_equal(surrogate.predict(cases[0].x + [0, 0, 3], cases[0].f), here)  # noqa: RUF005


@pytest.mark.parametrize(
    ("x", "f", "words"),
    [
        (np.zeros((5, 3)), np.zeros((5, 1)), r"2 coordinates \(x, y\), but 3 are given"),
        (np.zeros((5, 2)), None, r"1 input features \(a\), but 0 are given"),
        (np.zeros((5, 2)), np.zeros((5, 3)), r"1 input features \(a\), but 3 are given"),
        (np.zeros((5, 2)), np.zeros((4, 1)), "not the same points"),
        (np.zeros((2, 5, 2)), np.zeros((5, 1)), "not the same points"),
        (np.zeros(2), np.zeros(1), r"x must be \(points, coordinates\)"),
    ],
)
def test_what_does_not_fit_is_refused(trained: Path, x: np.ndarray, f: np.ndarray | None, words: str) -> None:
    with pytest.raises(LrsaError, match=words):
        lrsa.load(trained).predict(x, f)


def test_parameters_that_nobody_trained_with_are_refused(trained: Path) -> None:
    case = grid_cases(1)[0]
    with pytest.raises(LrsaError, match="0 globals, but 2 are given"):
        lrsa.load(trained).predict(case.x, case.f, globals=[1, 2])


def line(run: Path) -> str:
    """The one line with which a run is refused."""
    with pytest.raises(LrsaError) as caught:
        lrsa.load(run)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    assert "nowhere is not a run" in line(tmp_path / "nowhere")
    assert "is not a run" in line(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '"run"', "null", '{"format": 1}', '{"format": 1, "data": 3}']
)
def test_a_damaged_configuration_is_refused(trained: Path, tmp_path: Path, text: str) -> None:
    run = copy_run(trained, tmp_path / "run")
    (run / "config.json").write_text(text)
    assert "damaged" in line(run)


def test_unknown_settings_in_a_configuration_are_refused(trained: Path, tmp_path: Path) -> None:
    run = copy_run(trained, tmp_path / "run")
    values = json.loads((run / "config.json").read_text())
    for change in ({"train": {**values["train"], "epcohs": 3}}, {"extra": 1}, {"schema": {"name": "x"}}):
        (run / "config.json").write_text(json.dumps({**values, **change}))
        with pytest.raises(LrsaError, match="damaged"):
            RunConfig.load(run)
    assert "damaged" in line(run), "the schema is needed to predict too"
    for change in ({"model": "lrsb"}, {"options": {**values["options"], "wdth": 3}}):
        (run / "config.json").write_text(json.dumps({**values, **change}))
        assert "Did you mean" in line(run)


def test_a_run_of_another_version_is_named(trained: Path, tmp_path: Path) -> None:
    run = copy_run(trained, tmp_path / "run")
    values = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**values, "format": 99}))
    assert "run format 99" in line(run)


def test_a_run_without_weights_says_how_to_go_on(trained: Path, tmp_path: Path) -> None:
    run = copy_run(trained, tmp_path / "run")
    (run / "model.safetensors").unlink()
    assert "lrsa resume" in line(run)


@given(share=st.floats(0, 0.999))
def test_truncated_weights_are_refused(trained: Path, tmp_path_factory: pytest.TempPathFactory, share: float):
    run = copy_run(trained, tmp_path_factory.mktemp("cut") / "run")
    path = run / "model.safetensors"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert "model.safetensors is damaged: train again" in line(run)


def test_foreign_weights_are_refused(trained: Path, tmp_path: Path) -> None:
    run = copy_run(trained, tmp_path / "run")
    path = run / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(bytes(500))
    assert "damaged" in line(run)
    save_file({"a": torch.zeros(3)}, path)
    assert "does not belong to" in line(run)
    values = json.loads((run / "config.json").read_text())
    path.write_bytes(whole)
    (run / "config.json").write_text(json.dumps({**values, "options": {**values["options"], "width": 32}}))
    assert "does not belong to" in line(run)


class Bomb:
    """Unpickling it leaves a trace."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("exploded"),)


def test_nothing_is_ever_unpickled(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copy_run(trained, tmp_path / "run")
    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("unpickled")

        for name in ("load", "loads", "Unpickler"):
            patch.setattr(pickle, name, refuse)
        patch.setattr(torch, "load", refuse)
        lrsa.load(run)
    for name in ("model.safetensors", "config.json"):
        whole = (run / name).read_bytes()
        with (run / name).open("wb") as file:
            pickle.dump(Bomb(), file)
        line(run)
        torch.save({"a": Bomb()}, run / name)
        line(run)
        (run / name).write_bytes(whole)
    assert not Path("exploded").exists()


def test_an_axis_on_which_nothing_extends_may_be_left_out_in_python(tmp_path: Path):
    flat = [
        replace(case, x=np.column_stack([case.x, np.full(len(case), 0.25, np.float32)]), names=Names())
        for case in ragged_cases(5)
    ]
    surrogate = quick(write(tmp_path / "flat.h5", flat), tmp_path / "run", epochs=1, validation=0.0)
    case = flat[0]
    np.testing.assert_array_equal(surrogate.predict(case.x[:, :2], case.f), surrogate.predict(case.x, case.f))
    with pytest.raises(LrsaError, match="3 coordinates"):
        surrogate.predict(case.x[:, :1], case.f)
