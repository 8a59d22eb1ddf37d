"""Configurations, checkpoints and data sets that somebody wrote by hand, and numbers beyond all measure."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from small import WORDS, copy_run, grid_cases, ragged_cases, refusal, write

import lrsa
from lrsa.cli.program import main
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.models.registry import names
from lrsa.training.config import TrainConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]


def crafted(trained: Path, value: Any, *where: str) -> Path:
    """A copy of the run with another value somewhere in its configuration."""
    run = copy_run(trained, Path("run"))
    values = entry = json.loads((run / "config.json").read_text())
    for key in where[:-1]:
        entry = entry[key]
    entry[where[-1]] = value
    (run / "config.json").write_text(json.dumps(values))
    return run


VALUES = ["16", -16, 1e13, 10**13, 10**30, None, [], {}, True, 1.5, float("nan"), "a\nb"]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("option", ["width", "depth", "heads", "rank"])
def test_sizes_of_a_model_that_are_none_are_refused(trained: Path, option: str, value: Any) -> None:
    run = crafted(trained, value, "options", option)
    with pytest.raises(LrsaError) as caught:
        lrsa.load(run)
    assert option in str(caught.value) or "does not belong to" in str(caught.value)


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(
    "where",
    [("data", "path"), ("data", "stride"), ("data", "test"), ("schema", "protocol"), ("model",), ("options",),
     ("schema", "names", "targets"), ("train", "weights"), ("train", "precision"), ("train",), ("threads",)],
    ids=".".join,
)  # fmt: skip
def test_whatever_a_configuration_says_no_bug_is_reported(
    capsys: Capture, trained: Path, where: tuple[str, ...], value: Any
) -> None:
    """Some of it makes sense after all: no number of test cases, say, or more than there are."""
    run = crafted(trained, value, *where)
    capsys.readouterr()
    code = main(["evaluate", str(run)])
    said = capsys.readouterr().err.splitlines()
    assert (code, len(said)) in ((0, 0), (2, 1)), said


@pytest.mark.parametrize("depth", [900, 100_000])
def test_a_configuration_nested_without_end_is_damaged(capsys: Capture, trained: Path, depth: int) -> None:
    run = crafted(trained, "deep", "schema", "provenance")
    nested = '{"a":' * depth + "1" + "}" * depth
    text = (run / "config.json").read_text().replace('"deep"', nested)
    (run / "config.json").write_text(text)
    assert "config.json is damaged: train again" in refusal(capsys, "evaluate", run)


@pytest.mark.parametrize(
    ("where", "value"),
    [(("device",), "a\nb"), (("device",), "meta"), (("train", "epochs"), 10**13), (("train", "epochs"), 7),
     (("train", "seed"), 10**30), (("data", "samples"), -3), (("threads",), 10**9)],
)  # fmt: skip
def test_a_run_that_was_changed_is_not_resumed(
    capsys: Capture, trained: Path, where: tuple[str, ...], value: Any
) -> None:
    refusal(capsys, "resume", crafted(trained, value, *where))


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["progress"].update(epoch="3"),
        lambda state: state["progress"].update(extra=1),
        lambda state: state.pop("scheduler"),
        lambda state: state.update(groups=[]),
        lambda state: state.update(groups={}),
        lambda state: state.update(scheduler=[1]),
        lambda state: state["scheduler"].update(total_steps=5),
    ],
)
def test_a_checkpoint_that_was_changed_is_not_resumed(
    capsys: Capture, trained: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    path = copy_run(trained, Path("run")) / "checkpoint" / "state.safetensors"
    with safe_open(path, "pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dictionary
        state = json.loads(file.metadata()["state"])
    change(state)
    save_file(tensors, path, {"state": json.dumps(state)})
    assert "state.safetensors is" in refusal(capsys, "resume", "run")


HUGE = str(10**30)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (f"--model.width {HUGE}", "--model.width must be at most 1048576"),
        ("--model.width 1000000 --model.heads 1", "GB, and the memory of this machine is"),
        ("--model.width 8192 --model.heads 1 --model.depth 100", "GB, and the memory of this machine is"),
        (f"--model.depth {HUGE}", "--model.depth must be at most 1024"),
        ("--model.depth 100000", "--model.depth must be at most 1024"),
        ("--model.ffn-hidden 0", "--model.ffn-hidden must be at least 1, not 0"),
        ("--model.frequencies -5", "--model.frequencies must be at least 0, not -5"),
        (
            "--model lrsa-fourier --model.modes -5",
            'the model "lrsa-fourier" cannot be made with these options',
        ),
        (f"--train.epochs {HUGE}", "--train.epochs must be below 4294967296"),
        (f"--train.seed {HUGE}", "--train.seed must be below 4294967296"),
        (f"--train.batch-size {HUGE}", "--train.batch-size must be below 4294967296"),
        (f"--train.chunk {HUGE}", "--train.chunk must be below 4294967296"),
        ("--train.epochs " + "9" * 5000, "--train.epochs takes a whole number"),
        (f"--threads {HUGE}", "--threads must be at most 1024"),
        ("--threads 100000", "--threads must be at most 1024"),
    ],
)
def test_numbers_beyond_all_measure_are_refused(capsys: Capture, data: Path, typed: str, words: str) -> None:
    assert words in refusal(capsys, "train", data, "--out", "run", *typed.split())


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (f"data make darcy --samples {HUGE}", "at most 1000000"),
        ("data make darcy --samples 100000000", "at most 1000000"),
        (f"data make darcy --samples 2 --test {HUGE}", "at most 1000000"),
        (f"data make darcy --samples 2 --workers {HUGE}", "--workers must be at most 1024"),
        (f"data make darcy --samples 2 --seed {HUGE}", "--seed must be at most 4294967295"),
        (f"data import nowhere --out o.h5 --stride {HUGE}", "--stride must be at most 4294967295"),
        (f"bench --threads {HUGE}", "--threads must be at most 1024"),
    ],
)
def test_amounts_beyond_all_measure_are_refused(capsys: Capture, typed: str, words: str) -> None:
    assert words in refusal(capsys, *typed.split())


@pytest.mark.parametrize("model", names())
def test_no_model_takes_words_for_sizes(model: str) -> None:
    with pytest.raises(LrsaError, match=f'the model "{model}" takes int as coord_dim'):
        lrsa.create_model(model, coord_dim="2", in_features=1, out_features=1)


def test_counting_before_making_draws_no_random_numbers() -> None:
    """A model that may be large is made twice, and must begin from the same weights."""
    options: dict[str, Any] = {"coord_dim": 2, "in_features": 1, "out_features": 1, "depth": 1, "heads": 1}
    torch.manual_seed(0)
    large = lrsa.create_model("lrsa", **options, width=64, rank=2**14)
    torch.manual_seed(0)
    again = lrsa.LRSA(**options, width=64, rank=2**14)
    assert all(torch.equal(a, b) for a, b in zip(large.parameters(), again.parameters(), strict=True))


def replaced(split: str, name: str, value: np.ndarray | None) -> Callable[[h5py.File], None]:
    def do(file: h5py.File) -> None:
        group: Any = file[split]
        if name in group:
            del group[name]
        if value is not None:
            group[name] = value

    return do


def schema(**change: Any) -> Callable[[h5py.File], None]:
    def do(file: h5py.File) -> None:
        file.attrs["schema"] = json.dumps({**json.loads(str(file.attrs["schema"])), **change})

    return do


NONE = np.zeros((10, 64, 1))
DAMAGES: dict[str, Callable[[h5py.File], object]] = {
    "words": replaced("train", "u", NONE.astype("S3")),
    "whole numbers": replaced("train", "u", NONE.astype(int)),
    "too few cases": replaced("train", "u", NONE[:3]),
    "other points": replaced("train", "u", NONE[:, :5]),
    "one number": replaced("train", "u", np.zeros(())),
    "an unknown array": replaced("train", "foo", NONE),
    "two of one": replaced("train", "x", np.zeros((10, 64, 2))),
    "no points": replaced("shared", "x", None),
    "offsets of nothing": replaced("train", "offsets", np.arange(11)),
    "more cases than there are": lambda file: file["train"].attrs.modify("samples", 10**15),
    "less than no cases": lambda file: file["train"].attrs.modify("samples", -1),
    "a grid of words": lambda file: file.attrs.create("grid", ["a", "b"]),
    "a grid of other points": lambda file: file.attrs.modify("grid", [3, 5]),
    "names that are numbers": schema(names=3),
    "names of other channels": schema(
        names={"coords": ["x"], "inputs": ["a", "b"], "targets": ["p"], "globals": [], "units": {}}
    ),
    "a protocol that is none": schema(protocol=["static"]),
    "letters that are none": lambda file: file.attrs.modify("schema", np.bytes_(b'{"name": "\xff"}')),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_data_set_is_named(
    capsys: Capture, home: Path, trained: Path, damage: Callable[[h5py.File], object]
) -> None:
    write(home / "bad.h5", grid_cases(10), grid_cases(2))
    with h5py.File("bad.h5", "r+") as file:
        damage(file)
    for words in (
        ["train", "bad.h5", "--out", "run", *WORDS],
        ["predict", trained, "bad.h5", "--out", "out.h5"],
    ):
        line = refusal(capsys, *words)
        assert "bad.h5" in line
        assert "damaged" in line


@pytest.mark.parametrize(
    "offsets", [np.full(11, -5), np.full(11, 10**15), np.arange(11) * 0, np.arange(11)[::-1], np.arange(3)]
)
@pytest.mark.parametrize("name", ["offsets", "cell_offsets"])
def test_tables_that_lead_nowhere_are_refused(home: Path, name: str, offsets: np.ndarray) -> None:
    cells = [
        replace(case, cells=np.arange(9 + i % 2 * 3).reshape(-1, 3))
        for i, case in enumerate(ragged_cases(10))
    ]
    path = write(home / "bad.h5", cells)
    with h5py.File(path, "r+") as file:
        replaced("train", name, offsets)(file)
    with pytest.raises(LrsaError, match=r"bad\.h5 is not a readable"):
        Dataset(path, "train")


def test_cells_of_points_that_are_not_there_are_refused(capsys: Capture, home: Path) -> None:
    cases = [replace(case, cells=np.array([[0, 1, 2]])) for case in ragged_cases(4)]
    path = write(home / "bad.h5", cases)
    with h5py.File(path, "r+") as file:
        file["shared/cells"][0, 0] = 10**9  # pyright: ignore[reportIndexIssue]
    line = refusal(capsys, "train", "bad.h5", "--out", "run", "--model", "graphsage")
    assert "cells that name points that are not there" in line


def test_more_than_the_memory_holds_is_not_read(home: Path) -> None:
    """A terabyte of zeros that takes no room in the file."""
    path = write(home / "bomb.h5", ragged_cases(4))
    with h5py.File(path, "r+") as file:
        del file["train/f"]
        file["train"].create_dataset("f", (10**12, 1), "f4", chunks=(10**6, 1), compression="gzip")  # pyright: ignore[reportAttributeAccessIssue]
    assert path.stat().st_size < 10**6
    with pytest.raises(LrsaError, match=r"/train/f of .*bomb\.h5 takes 4000 GB"):
        Dataset(path, "train")


def test_a_clip_that_never_clips_may_be_any_number() -> None:
    assert TrainConfig(clip=1e12).clip == 1e12


@pytest.mark.parametrize(
    ("field", "names"), [("x", {"coords": ("x", "y", "z")}), ("u", {"targets": ("p", "q")})]
)
def test_more_names_than_channels_are_not_written(
    home: Path, field: str, names: dict[str, tuple[str, ...]]
) -> None:
    cases = [replace(case, names=replace(case.names, **names)) for case in grid_cases(3)]
    with pytest.raises(LrsaError, match=f"{field} has more names than channels"):
        write(home / "d.h5", cases)
    assert not list(home.iterdir())
