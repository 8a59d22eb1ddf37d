"""Exported programs: the surrogate without lrsa, at any number of cases and points."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from small import NAMES, files, frames, grid_cases, quick, ragged_cases, refusal, say, write
from torch import Tensor

import lrsa
from lrsa.exporting.export import export_run
from lrsa.exporting.formats import FORMATS, Torch
from lrsa.exporting.program import traceable
from lrsa.models.baselines import geo_fno
from lrsa.models.registry import model_options

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
Capture = pytest.CaptureFixture[str]


def made(path: Path, kind: str) -> Path:
    """A run of one kind."""
    rng = np.random.default_rng(0)
    names = replace(NAMES, globals=("gain", "idle"))
    conditioned = [
        replace(
            frames(case, 3),
            weights=rng.uniform(1, 3, len(case)),
            globals=rng.standard_normal(2).astype(np.float32),
            names=names,
        )
        for case in ragged_cases(5)
    ]
    if kind == "conditioned":
        quick(write(path / "c.h5", conditioned, protocol="time-conditioned"), path / kind, epochs=1)
    elif kind == "grid":
        quick(write(path / "g.h5", grid_cases(4)), path / kind, epochs=1, options={"local": "depthwise"})
    elif kind == "transolver":
        options = {"width": 16, "depth": 1, "heads": 2, "rank": 4}
        lrsa.fit(
            write(path / "t.h5", ragged_cases(4)),
            model="transolver",
            out=path / kind,
            epochs=1,
            options=options,
        )
    else:
        quick(write(path / "r.h5", ragged_cases(4)), path / kind, epochs=1)
    return path / kind


def program(path: Path) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
    """As one who has the file only runs it."""
    if path.suffix == ".pt2":
        module = torch.export.load(path).module()
        return lambda inputs: module(**{k: torch.from_numpy(v) for k, v in inputs.items()}).detach().numpy()
    session = onnxruntime.InferenceSession(path)
    return lambda inputs: session.run(["u"], inputs)[0]  # pyright: ignore[reportReturnType]


def assert_equal_to_surrogate(run: Path, path: Path, conditioned: bool = False, grid: bool = False) -> None:
    """On other numbers of cases and points than it was traced with."""
    surrogate, compiled, rng = lrsa.load(run), program(path), np.random.default_rng(1)
    for batch, points in ((1, 23), (4, 150)):
        n = 64 if grid else points
        values: dict[str, Any] = {"x": rng.random((batch, n, 2)), "f": 2 * rng.random((batch, n, 1))}
        if conditioned:
            values |= {"weights": rng.random((batch, n)) + 0.1, "time": rng.random(batch)}
            values["globals"] = rng.standard_normal((batch, 2))
        values = {name: value.astype(np.float32) for name, value in values.items()}
        expected = surrogate.predict(**values, grid=(8, 8) if grid else None)
        found = compiled(values)
        assert found.shape == (batch, n, 1)
        assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    "kind", ["conditioned", *(pytest.param(k, marks=pytest.mark.slow) for k in ("grid", "transolver"))]
)
def test_a_program_equals_its_surrogate_on_other_numbers_of_cases_and_points(
    tmp_path: Path, kind: str
) -> None:
    """Conditioned: weights, parameters of the case and the time are inputs too."""
    run = made(tmp_path, kind)
    for format, suffix in (("torch", ".pt2"), ("onnx", ".onnx")):
        done = export_run(run, format)
        further = {"weights", "globals", "time"} if kind == "conditioned" else set()
        assert set(done.signature.shapes) == {"x", "f"} | further
        assert done.path == run / f"model{suffix}"
        assert done.difference < 1e-5
        assert_equal_to_surrogate(run, done.path, kind == "conditioned", kind == "grid")


def assert_runs_as_predicted(run: Path, values: Mapping[str, Any]) -> None:
    """The exported program of a run on these inputs beside `predict`."""
    found = program(export_run(run, "torch").path)(values)
    expected = lrsa.load(run).predict(**values)
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) < 1e-5 * np.linalg.norm(expected)


def test_of_an_autoregressive_run_the_frames_are_features(tmp_path: Path) -> None:
    """One feature and the last ten frames of one field in, the next frame out."""
    cases = [frames(case, 12) for case in ragged_cases(4)]
    quick(write(tmp_path / "a.h5", cases, protocol="autoregressive"), tmp_path / "run", epochs=1)
    case = frames(ragged_cases(1, seed=1)[0], 12)
    assert case.f is not None
    assert case.u is not None
    f = np.concatenate([case.f, *case.u[:10]], axis=-1)
    assert_runs_as_predicted(tmp_path / "run", {"x": case.x[None], "f": f[None]})


def test_a_constant_axis_is_an_input_and_dropped_inside(tmp_path: Path) -> None:
    """Points of three coordinates with z = 2 everywhere; at another z the program says the same."""
    names = replace(NAMES, coords=("x", "y", "z"))
    cases = [
        replace(case, x=np.pad(case.x, ((0, 0), (0, 1)), constant_values=2), names=names)
        for case in ragged_cases(4)
    ]
    quick(write(tmp_path / "z.h5", cases), tmp_path / "run", epochs=1)
    rng = np.random.default_rng(2)
    x, f = rng.random((2, 77, 3), dtype=np.float32), rng.random((2, 77, 1), dtype=np.float32)
    assert_runs_as_predicted(tmp_path / "run", {"x": x, "f": f})
    run = program(tmp_path / "run" / "model.pt2")
    elsewhere = x + np.array([0, 0, 5], np.float32)
    np.testing.assert_array_equal(run({"x": x, "f": f}), run({"x": elsewhere, "f": f}))


def test_what_a_program_may_differ_by_is_measured_without_the_mean_of_the_targets(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a pressure of 1e5 ± 1 the mean alone is right to 1e-5, and 0.9 of the rest to 1e-6."""
    cases = [replace(case, u=case.u + 1e5) for case in ragged_cases(4)]  # pyright: ignore[reportOptionalOperand]
    run = tmp_path / "run"
    quick(write(tmp_path / "p.h5", cases), run, epochs=1)
    assert export_run(run, "torch").difference < 1e-3
    right = Torch.read
    for share in (0.0, 0.9, float("nan")):

        def wrong(self: Torch, path: Path, share: float = share) -> Callable[[Mapping[str, Tensor]], Tensor]:
            return lambda inputs: 1e5 + share * (right(self, path)(inputs) - 1e5)

        monkeypatch.setattr(Torch, "read", wrong)
        assert "differs from" in refusal(capsys, "export", run, "--format", "torch", code=1)


def test_the_command_says_what_it_made_and_the_page_runs_it(capsys: Capture, tmp_path: Path) -> None:
    """The Python of the page, in a process that has no lrsa."""
    run = made(tmp_path, "features")
    for format, suffix in (("torch", ".pt2"), ("onnx", ".onnx")):
        path = Path(f"model{suffix}")
        said = say(capsys, "export", run, "--format", format, "--out", path)
        assert "input x (B, N, 2)\ninput f (B, N, 1)\n" in said
        assert float(re.findall(r"largest relative difference is (\S+)", said)[0]) < 1e-5
        assert f"program: {path}" in said
        assert_equal_to_surrogate(run, path)
        assert b"lrsa/attention.py" not in path.read_bytes(), "it tells no folders"
    code = "\nassert u.shape == (3, 500, 1)\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.S))
    code = f"import sys; sys.modules['lrsa'] = None\n{code}\nassert u.shape == (3, 500, 1)"
    subprocess.run([sys.executable, "-c", code], check=True)
    session = onnxruntime.InferenceSession("model.onnx")
    assert [i.shape for i in session.get_inputs()] == [["B", "N", 2], ["B", "N", 1]]
    extra = {"about.json": ""}
    torch.export.load("model.pt2", extra_files=extra)
    about = json.loads(session.get_modelmeta().custom_metadata_map["about"])
    assert about == json.loads(extra["about.json"])
    assert about["fields"] == ["p"]
    assert about["units"]["p"] == "Pa"


class Branching(lrsa.LRSA):
    """What it does depends on the numbers, which a trace does not have."""

    def forward(self, x: Tensor, f: Tensor | None = None, context: lrsa.Context | None = None) -> Tensor:
        return super().forward(x, f, context) * (2.0 if x.sum() > 0 else 1.0)


def test_models_that_cannot_be_exported_are_refused_in_one_line(capsys: Capture, tmp_path: Path) -> None:
    data = write(tmp_path / "g.h5", grid_cases(3))
    lrsa.register("branching", Branching)
    for model, format, words, options in (
        ("graphsage", "torch", "graphsage cannot be exported", {}),
        ("fno", "onnx", "which has no einsum of complex numbers. Take --format torch", {"modes": 2}),
        ("branching", "torch", "branching cannot be exported, torch.export cannot follow it", {"rank": 4}),
    ):
        run = Path(model)
        lrsa.fit(data, model=model, out=run, epochs=1, options={"width": 8, "depth": 1, **options})
        assert words in refusal(capsys, "export", run, "--format", format)


def test_senseless_wishes_are_refused(capsys: Capture, trained: Path) -> None:
    assert "suffix .onnx" in refusal(capsys, "export", trained, "--format", "onnx", "--out", "a.pt2")
    assert "takes torch or onnx" in refusal(capsys, "export", trained, "--format", "tflite")
    assert "is not a run" in refusal(capsys, "export", "nowhere", "--format", "torch")


def test_without_the_extra_it_is_named(
    capsys: Capture, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    said = refusal(capsys, "export", trained, "--format", "onnx", "--out", "a.onnx")
    assert "ONNX needs onnxscript. Install it with `pip install lrsa[export]`" in said


def test_nothing_half_is_left(capsys: Capture, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up; then, what was written does not do what it should. What was there stays."""

    def full(self: Torch, program: Any, signature: Any, about: Any, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    def wrong(self: Torch, path: Path) -> Callable[[Mapping[str, Tensor]], Tensor]:
        return lambda inputs: torch.zeros(*inputs["x"].shape[:2], 1)

    Path("a.pt2").write_bytes(b"there")
    before = files(Path.cwd())
    for name, stand_in, code, words in (
        ("write", full, 2, "no space left"),
        ("read", wrong, 1, "differs from"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Torch, name, stand_in)
            said = refusal(capsys, "export", trained, "--format", "torch", "--out", "a.pt2", code=code)
        assert words in said
        assert files(Path.cwd()) == before


def test_tracing_leaves_the_models_as_they_were() -> None:
    before = geo_fno.over_chunks
    with traceable(geo_fno.GeoFNO(2, 0, 1)):
        assert geo_fno.over_chunks is not before
    assert geo_fno.over_chunks is before


def promised() -> dict[str, dict[str, bool]]:
    """model -> format -> whether the page says that it can be exported."""
    rows = re.findall(r"^\| ([a-z][\w, -]*) \| (yes|no) \| (yes|no) \|", PAGE, re.M)
    return {
        name: {"torch": pt2 == "yes", "onnx": onnx == "yes"}
        for names, pt2, onnx in rows
        for name in names.split(", ")
    }


def test_the_page_speaks_of_every_model() -> None:
    assert set(promised()) == set(lrsa.list_models())


def test_fixed_sensors_fix_the_points(tmp_path: Path) -> None:
    data, options = write(tmp_path / "g.h5", grid_cases(3)), {"width": 8, "sensors": len(grid_cases(1)[0])}
    lrsa.fit(data, model="deeponet", out="run", epochs=1, options=options)
    assert export_run(Path("run"), "torch").difference < 1e-5
    program = torch.export.load("run/model.pt2").module()
    assert (
        program(x=torch.rand(3, options["sensors"], 2), f=torch.rand(3, options["sensors"], 1)).shape[0] == 3
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", sorted(promised()))
def test_every_model_is_exported_or_refused_as_the_page_says(tmp_path: Path, model: str) -> None:
    sizes = {"width": 16, "depth": 1, "heads": 2, "rank": 4}
    options = {name: value for name, value in sizes.items() if name in model_options(model)}
    lrsa.fit(
        write(tmp_path / "g.h5", grid_cases(3, side=16)),
        model=model,
        out=tmp_path / "run",
        epochs=1,
        options=options,
    )
    for format, possible in promised()[model].items():
        if possible:
            assert export_run(tmp_path / "run", format).difference < 1e-5
        else:
            with pytest.raises(lrsa.LrsaError, match="cannot be exported"):
                export_run(tmp_path / "run", format)
        assert (tmp_path / "run" / f"model{FORMATS[format].suffix}").exists() == possible
