"""Whatever is wrong is said in one line that names the thing, and nothing is left half-written."""

import errno
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pytest
from safetensors.torch import save_file
from small import (
    WORDS,
    copy_run,
    frames,
    grid_cases,
    quick,
    ragged_cases,
    refusal,
    weights,
    write,
)

import lrsa
from lrsa.cli.program import main
from lrsa.data import writing
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.training.config import TrainConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("trian d.h5", 'no command "trian". Did you mean train?'),
        ("data mak darcy", 'no command "data mak". Did you mean data make?'),
        ("--hlp", 'no command "--hlp"'),
        ("train darci", 'no benchmark "darci". Did you mean darcy?'),
        ("data make darci", 'no benchmark "darci". Did you mean darcy?'),
        ("data show darci", 'no benchmark "darci". Did you mean darcy?'),
        ("data show darcy", "Make it with `lrsa data make darcy`"),
        ("train", "lrsa train needs DATA. `lrsa train --help` explains"),
        ("train d.h5 other.h5", '"other.h5" is one word too many'),
        ("train d.h5 --train.epoch 3", 'no option "--train.epoch". Did you mean --train.epochs?'),
        ("train d.h5 --model.wdth 3", 'no option "--model.wdth". Did you mean --model.width?'),
        ("train d.h5 --epochs 3", 'no option "--epochs". Did you mean --train.epochs?'),
        ("train d.h5 --train.epochs x", '--train.epochs takes a whole number, not "x"'),
        ("train d.h5 --train.epochs 1.5", '--train.epochs takes a whole number, not "1.5"'),
        ("train d.h5 --train.max-lr fast", '--train.max-lr takes a number, not "fast"'),
        ("train d.h5 --train.epochs", "--train.epochs needs a value"),
        ("train d.h5 --train.epochs --train.seed 3", "--train.epochs needs a value"),
        ("train d.h5 --matched --train.max_lr", "--train.max_lr needs a value"),
        ("train d.h5 --model f-fno --model.modes 3", "--model.modes needs 2 values"),
        ("train d.h5 --model f-fno --model.modes 3 x", '--model.modes takes a whole number, not "x"'),
        ("train d.h5 --zzz", 'no option "--zzz". `lrsa train --help` explains'),
        ("train d.h5 --no-matched=3", '"3" is one word too many'),
        ("train d.h5 --train.precision fp8", '--train.precision takes fp32, bf16 or fp16, not "fp8"'),
        ("train d.h5 --model.local near", "--model.local takes pointwise, depthwise or conv"),
        ("train d.h5 --model lrs", 'no model "lrs". Did you mean lrsa?'),
        ("train d.h5 --model", "--model needs the name of a model"),
        ("train darcy --scale huge", '--scale takes demo, cpu or paper, not "huge"'),
        ("train d.h5 --scale demo", "--scale belongs to the benchmarks of the catalogue"),
        ("train missing.h5", "missing.h5 does not exist"),
        ("data show missing.h5", "missing.h5 does not exist"),
        ("data make darcy --fidelity fst", 'no fidelity "fst". Did you mean fast?'),
        ("data make darcy --samples 0", "at least one of each"),
        ("data make darcy --samples -3", "at least one of each"),
        ("data make darcy --samples x", '--samples takes a whole number, not "x"'),
        ("data make darcy --workers 0", "--workers must be at least 1, not 0"),
        ("data make darcy --seed -1", "--seed must be at least 0, not -1"),
        ("data import nowhere --out o.h5 --stride 0", "--stride must be at least 1, not 0"),
        ("data import nowhere --out o.h5", "nowhere does not exist"),
        ("resume nowhere", "nowhere is not a run: it has no config.json"),
        ("evaluate nowhere", "nowhere is not a run: it has no config.json"),
        ("report nowhere", "nowhere is not a run: it has no config.json"),
        ("predict nowhere case.npz --out o.npz", "nowhere is not a run: it has no config.json"),
        ("predict nowhere", "lrsa predict needs INPUT and --out PATH"),
        ("resume", "lrsa resume needs RUN"),
        ("export somewhere", "lrsa export needs --format {torch,onnx}"),
    ],
)
def test_what_was_mistyped_is_named(capsys: Capture, typed: str, words: str) -> None:
    assert words in refusal(capsys, *typed.split())


def test_nothing_of_tyro_is_used_that_it_may_change_without_notice() -> None:
    """Neither its private modules nor its words, which come in frames on the error output."""
    for source in Path(lrsa.__file__).parent.rglob("*.py"):
        assert not re.search(r"tyro(\._|\S* import _)", source.read_text()), source


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("--train.epochs 0", "--train.epochs must be a whole number, at least 1, not 0"),
        ("--train.epochs -2", "--train.epochs must be"),
        ("--train.batch-size 0", "--train.batch-size must be a whole number, at least 1, not 0"),
        ("--train.max-lr 0", "--train.max-lr must be a positive number, not 0"),
        ("--train.max-lr nan", "--train.max-lr must be a positive number, not nan"),
        ("--train.clip -1", "--train.clip must be a positive number"),
        ("--train.weight-decay -1", "--train.weight-decay must be a number, at least 0"),
        ("--train.gradient-weight inf", "--train.gradient-weight must be a number, at least 0"),
        ("--train.validation 1", "--train.validation must be a number from 0 to below 1, not 1"),
        ("--train.validation -0.1", "--train.validation must be"),
        ("--train.seed -1", "--train.seed must be a whole number, at least 0"),
        ("--model.width 30 --model.heads 4", "width 30 is not a multiple of heads 4"),
        ("--model.width 0", "--model.width must be at least 1, not 0"),
        ("--model.heads 0", "--model.heads must be at least 1, not 0"),
        ("--model.rank -1", "--model.rank must be at least 1, not -1"),
        ("--model.depth 0", "--model.depth must be at least 1, not 0"),
        ("--device tpu9", 'the device "tpu9" is not to be had here'),
        ("--device meta", 'the device "meta" is not to be had here'),
        ("--threads 0", "--threads must be at least 1, not 0"),
        ("--init nowhere", "nowhere is not a run"),
    ],
)
def test_senseless_settings_are_refused_before_anything_is_written(
    capsys: Capture, data: Path, typed: str, words: str
) -> None:
    assert words in refusal(capsys, "train", data, "--out", "run", *typed.split())


def test_senseless_settings_are_refused_before_data_is_made(capsys: Capture) -> None:
    for words in (["--train.epochs", "0"], ["--model.rank", "0"], ["--threads", "0"]):
        refusal(capsys, "train", "darcy", "--scale", "demo", *words)


@pytest.mark.parametrize(
    "settings",
    [{"epochs": "3"}, {"epochs": 2.5}, {"batch_size": True}, {"max_lr": "1e-3"}, {"precision": "fp8"}],
)
def test_ill_typed_settings_are_refused_in_python(settings: dict[str, Any]) -> None:
    with pytest.raises(LrsaError, match="--train"):
        TrainConfig(**settings)


def test_unknown_settings_are_refused_in_python(data: Path) -> None:
    with pytest.raises(LrsaError, match=r'training has no option "epoch".* Did you mean epochs'):
        lrsa.fit(data, out="run", epoch=3)
    with pytest.raises(LrsaError, match=r'the model "lrsa" has no option "wdth".* Did you mean width'):
        lrsa.fit(data, out="run", options={"wdth": 3})
    with pytest.raises(LrsaError, match=r'darcy has no scale "dmo".* Did you mean demo'):
        lrsa.fit("darcy", scale="dmo")
    assert not Path("run").exists()


def test_a_run_is_not_overwritten(capsys: Capture, data: Path, trained: Path) -> None:
    run = copy_run(trained, Path("run"))
    line = refusal(capsys, "train", data, "--out", run)
    assert "run is a run already. Go on with `lrsa resume run`, or name another --out" in line


def test_a_run_folder_that_is_a_file_is_named(capsys: Capture, data: Path) -> None:
    Path("taken").write_text("mine")
    assert "taken" in refusal(capsys, "train", data, "--out", "taken", *WORDS)


def spoil(path: Path, split: str, field: str, case: int, value: float) -> None:
    """Put a value into one case of a file."""
    with h5py.File(path, "r+") as file:
        array: Any = file[split][field] if field in file[split] else file["shared"][field]  # pyright: ignore[reportIndexIssue, reportOperatorIssue]
        if field in file[split]:  # pyright: ignore[reportOperatorIssue]
            array[case, 3, 0] = value
        else:
            array[3, 0] = value


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinite values")])
@pytest.mark.parametrize(("field", "named"), [("f", "input a"), ("u", "target p"), ("x", "coordinate x")])
def test_training_names_the_case_and_the_field_that_is_not_finite(
    capsys: Capture, data: Path, field: str, named: str, value: float, kind: str
) -> None:
    """In whichever training case it is, kept for validation or not."""
    for case in (2, 7) if field != "x" else (0,):
        shutil.copy(data, "bad.h5")
        spoil(Path("bad.h5"), "train", field, case, value)
        line = refusal(capsys, "train", "bad.h5", "--out", "run", "--train.validation", "0.5", *WORDS)
        assert f"has {kind} in {named}" in line
        assert field == "x" or f"case {case} of train in " in line
        assert "bad.h5" in line


@pytest.mark.parametrize(("field", "named"), [("f", "input a"), ("u", "target p")])
def test_evaluation_and_prediction_name_it_too(
    capsys: Capture, data: Path, trained: Path, field: str, named: str
) -> None:
    shutil.copy(data, "bad.h5")
    spoil(Path("bad.h5"), "test", field, 1, np.nan)
    expected = f"has NaN in {named}"
    line = refusal(capsys, "evaluate", trained, "--data", "bad.h5")
    assert expected in line
    assert "case 1 of test in bad.h5" in line
    assert expected in refusal(capsys, "predict", trained, "bad.h5", "--out", "out.h5")


def test_test_cases_that_cannot_be_evaluated_do_not_lose_the_run(capsys: Capture, data: Path) -> None:
    shutil.copy(data, "bad.h5")
    spoil(Path("bad.h5"), "test", "u", 1, np.nan)
    write(Path("untested.h5"), grid_cases(4))
    for file, words in (("bad.h5", "NaN in target p"), ("untested.h5", 'has no split "test"')):
        run = Path(file).stem
        assert main(["train", file, "--out", run, "--train.epochs", "1", *WORDS]) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"lrsa: {run} is trained, but cannot be evaluated: ")
        assert words in line
        assert line.count("\n") == 1
        assert weights(Path(run))


def save_case(**change: np.ndarray | None) -> Path:
    """An NPZ case, with some arrays changed or left out."""
    case = grid_cases(1, seed=4)[0]
    arrays = {"x": case.x, "a": case.f, **change}
    np.savez("case.npz", **{k: v for k, v in arrays.items() if v is not None})
    return Path("case.npz")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": None}, 'has no coordinates "x" (it has: a)'),
        ({"x": np.zeros(64)}, '"x" of shape (64,)'),
        ({"x": np.zeros((64, 3, 2))}, '"x" of shape (64, 3, 2)'),
        ({"x": np.random.default_rng(0).random((64, 3))}, "dimensions"),
        ({"x": np.zeros((0, 2)), "a": np.zeros((0, 1))}, '"x" of shape (0, 2)'),
        ({"x": np.full((64, 2), "word")}, "should be numbers"),
        ({"a": np.zeros(63)}, '"a" of shape (63,), but 64 points'),
        ({"a": np.zeros(())}, '"a" of shape ()'),
        ({"a": np.full(64, np.nan)}, "has NaN in input a"),
        ({"a": np.full(64, np.inf)}, "has infinite values in input a"),
        ({"a": np.full(64, 1e300)}, "has infinite values in input a"),
        ({"a": np.full(64, "word")}, "should be numbers"),
        ({"a": None}, "was trained with 1 input feature, but case.npz has 0"),
        ({"weights": np.zeros(3)}, "weights has shape (3,)"),
        ({"weights": np.full(64, -1.0)}, "weights that are negative"),
        ({"grid": np.array([9, 9])}, "a grid (9, 9) has 81 points, but x has 64"),
        ({"globals": np.array([1.0])}, "takes no parameters of the case"),
    ],
)
def test_ill_shaped_arrays_are_named(
    capsys: Capture, trained: Path, change: dict[str, np.ndarray | None], words: str
) -> None:
    line = refusal(capsys, "predict", trained, save_case(**change), "--out", "out.npz")
    assert words in line
    assert "case.npz" in line


def test_too_many_inputs_are_listed_with_the_cure(capsys: Capture, trained: Path) -> None:
    """As in the style guide."""
    extra = np.zeros(64)
    path = save_case(a=None, b=extra, c=extra, d=extra)
    line = refusal(capsys, "predict", trained, path, "--out", "out.npz")
    assert f"{trained} was trained with 1 input feature, but case.npz has 3 (b, c, d)" in line
    assert "Pick 1 with --inputs b" in line
    line = refusal(capsys, "predict", trained, path, "--out", "out.npz", "--inputs", "e")
    assert 'has no array "e" (it has: x, b, c, d)' in line


def test_data_sets_of_other_inputs_are_refused(capsys: Capture, trained: Path) -> None:
    cases = [replace(case, f=np.repeat(case.f, 3, 1)) for case in grid_cases(3)]  # pyright: ignore[reportArgumentType, reportCallIssue]
    write(Path("wide.h5"), cases, cases)
    line = refusal(capsys, "predict", trained, "wide.h5", "--out", "out.h5")
    assert "was trained with 1 input feature, but wide.h5 has 3" in line
    assert "1 input features (a), but 3 are given" in refusal(
        capsys, "evaluate", trained, "--data", "wide.h5"
    )


def test_data_sets_of_other_targets_are_refused(capsys: Capture, trained: Path) -> None:
    names = replace(grid_cases(1)[0].names, targets=("T",))
    cases = [replace(case, names=names) for case in grid_cases(3)]
    write(Path("other.h5"), cases, cases)
    line = refusal(capsys, "evaluate", trained, "--data", "other.h5")
    assert "predicts p, but other.h5 has the targets T" in line


@pytest.mark.parametrize(
    ("stride", "words"),
    [("0", "1 or more"), ("-2", "1 or more"), ("1,0", "1 or more"), ("x", "--stride takes whole numbers")],
)
def test_senseless_samplings_are_refused(capsys: Capture, trained: Path, stride: str, words: str) -> None:
    for command in ("evaluate", "report"):
        assert words in refusal(capsys, command, trained, "--stride", stride)


def test_an_input_is_not_overwritten(capsys: Capture, trained: Path, data: Path) -> None:
    shutil.copy(data, "in.h5")
    for path in (Path("in.h5"), save_case()):
        line = refusal(capsys, "predict", trained, path, "--out", f"./{path}")
        assert "is the input itself: name another --out" in line


@pytest.mark.parametrize(
    ("source", "out", "words"),
    [
        ("in.h5", "out.npz", "both must be .h5"),
        ("none.npz", "out.npz", "none.npz does not exist"),
        ("none.h5", "out.h5", "none.h5 does not exist"),
    ],
)
def test_files_that_do_not_go_together_are_named(
    capsys: Capture, trained: Path, data: Path, source: str, out: str, words: str
) -> None:
    shutil.copy(data, "in.h5")
    assert words in refusal(capsys, "predict", trained, source, "--out", out)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7, 0.98])
def test_truncated_files_are_refused(capsys: Capture, trained: Path, data: Path, share: float) -> None:
    whole = data.read_bytes()
    Path("cut.h5").write_bytes(whole[: int(share * len(whole))])
    case = save_case().read_bytes()
    Path("cut.npz").write_bytes(case[: int(share * len(case))])
    for words in (
        ["train", "cut.h5", "--out", "run"],
        ["data", "show", "cut.h5"],
        ["evaluate", trained, "--data", "cut.h5"],
        ["predict", trained, "cut.npz", "--out", "out.npz"],
    ):
        line = refusal(capsys, *words)
        assert "cut." in line
        assert "readable" in line


def test_foreign_files_are_refused(capsys: Capture, trained: Path) -> None:
    with h5py.File("foreign.h5", "w") as file:
        file["a"] = np.zeros(3)
    Path("text.h5").write_text("not HDF5\n" * 100)
    assert "another kind" in refusal(capsys, "train", "foreign.h5", "--out", "run")
    assert "readable" in refusal(capsys, "train", "text.h5", "--out", "run")
    np.save("array.npy", np.zeros(3))
    Path("array.npy").rename("array.npz")
    assert "array.npz" in refusal(capsys, "predict", trained, "array.npz", "--out", "out.npz")
    np.savez("objects.npz", x=np.array([{}, []], object))
    assert "objects.npz" in refusal(capsys, "predict", trained, "objects.npz", "--out", "out.npz")


def test_data_of_another_version_is_refused(capsys: Capture, data: Path) -> None:
    shutil.copy(data, "new.h5")
    with h5py.File("new.h5", "r+") as file:
        file.attrs["version"] = 99
    assert "data format 99" in refusal(capsys, "train", "new.h5", "--out", "run")


class Damage(NamedTuple):
    """What can happen to a run folder, and what is said of it."""

    do: Callable[[Path], object]
    words: str


def other_format(run: Path) -> None:
    values = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**values, "format": 99}))


DAMAGES = [
    Damage(other_format, "run format 99"),
    Damage(lambda run: (run / "config.json").unlink(), "is not a run"),
    Damage(lambda run: (run / "config.json").write_text("{"), "config.json is damaged: train again"),
    Damage(lambda run: (run / "model.safetensors").write_bytes(b"x" * 99), "model.safetensors is damaged"),
    Damage(lambda run: (run / "model.safetensors").unlink(), "lrsa resume"),
    Damage(lambda run: save_file(weights(run) | {"a": weights(run)["normaliser.x_shift"].clone()},
                                 run / "model.safetensors"), "does not belong to"),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_runs_are_refused(capsys: Capture, trained: Path, data: Path, damage: Damage) -> None:
    run = copy_run(trained, Path("run"))
    damage.do(run)
    for words in (["evaluate", run], ["report", run], ["predict", run, data, "--out", "out.h5"]):
        assert damage.words in refusal(capsys, *words)


def test_what_the_model_needs_the_data_must_have(capsys: Capture) -> None:
    write(Path("points.h5"), ragged_cases(4))
    for words in (["--model.local", "depthwise"], ["--model", "fno"], ["--train.gradient-weight", "0.1"]):
        line = refusal(capsys, "train", "points.h5", "--out", "run", *words)
        assert "structured grid" in line
    assert "--model.local pointwise" in refusal(
        capsys, "train", "points.h5", "--out", "run", "--model.local", "conv"
    )
    assert "needs a time" in refusal(capsys, "train", "points.h5", "--out", "run", "--model.time")


def test_data_without_targets_or_with_too_few_frames_is_refused(capsys: Capture) -> None:
    write(Path("blind.h5"), [replace(case, u=None) for case in grid_cases(4)])
    assert "blind.h5 has no targets to learn" in refusal(capsys, "train", "blind.h5", "--out", "run")
    write(Path("short.h5"), [frames(case, 3) for case in grid_cases(3)], protocol="autoregressive")
    assert "more than 10 frames" in refusal(capsys, "train", "short.h5", "--out", "run", *WORDS)


def test_cases_that_do_not_belong_together_are_refused(home: Path) -> None:
    first, second = grid_cases(2)
    for other, words in (
        (replace(second, f=np.zeros((64, 2))), "but the first has"),
        (replace(second, u=np.full((64, 1), np.nan)), "case 1 of train has NaN in target p"),
    ):
        with pytest.raises(LrsaError, match=words):
            write(Path("mixed.h5"), [first, other])
    with pytest.raises(LrsaError, match="it should be"):
        PointSet(first.x, np.zeros((63, 1)))
    assert not list(home.iterdir())


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_fills_up_is_named_and_nothing_is_left(
    capsys: Capture, data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_put", full)
        line = refusal(capsys, "predict", trained, data, "--out", "out.h5")
        assert "no space left on the disk" in line
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert main(["train", str(data), "--out", "run", "--train.epochs", "2", *WORDS]) == 2
        line = capsys.readouterr().err
        assert "no space left on the disk (run/" in line
        assert line.count("\n") == 1
    assert not list(Path.cwd().rglob("*.tmp"))
    assert not list(Path.cwd().rglob("*.safetensors"))
    assert main(["resume", "run"]) == 0, "with space again, it goes on"
    quick(data, "whole")
    assert all((weights(Path("run"))[k] == v).all() for k, v in weights(Path("whole")).items())


def test_too_little_space_is_said_before_anything_is_written(
    capsys: Capture, data: Path, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_case()
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100))
    for words in (
        ["predict", trained, data, "--out", "out.h5"],
        ["predict", trained, path, "--out", "out.npz"],
    ):
        assert "no space for out." in refusal(capsys, *words)
