"""The published Pipe files, small ones in the same format: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.problems.catalogue import get, open_dataset
from lrsa.problems.official import import_official, recognise
from lrsa.problems.pipe.official import PIPE, read_pipe
from lrsa.problems.pipe.solver import Pipe

SIDE = 5
"""Nodes along each axis of small grids."""


def save(folder: Path, cases: int = 1203, dtype: str = "float64", fields: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    heights = rng.uniform(-1, 1, (cases, SIDE, 1))
    x = np.broadcast_to(np.linspace(0, 10, SIDE)[:, None], (cases, SIDE, SIDE))
    arrays = {
        "X": x,
        "Y": heights + np.linspace(-0.5, 0.5, SIDE),
        "Q": rng.random((cases, fields, SIDE, SIDE)),
    }
    arrays = {axis: array.astype(dtype) for axis, array in arrays.items()}
    for axis, array in arrays.items():
        np.save(folder / PIPE[axis], array)
    return arrays


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_pipe(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("dtype", "fields"), [("float64", 3), ("float32", 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_cases_read_back_equal(tmp_path: Path, dtype: str, fields: int, stride: int) -> None:
    raw = save(tmp_path, dtype=dtype, fields=fields)
    splits = read_pipe(tmp_path, stride)
    assert {name: len(cases) for name, cases in splits.items()} == {"train": 1000, "test": 200}
    for split, first in (("train", 0), ("test", 1000)):
        for i in (0, 7, len(splits[split]) - 1):
            case = splits[split][i]
            part = (first + i, slice(None, None, stride), slice(None, None, stride))
            assert case.grid == raw["X"][part].shape
            assert case.u is not None
            assert case.x.dtype == case.u.dtype == np.float32
            for ours, theirs in (
                (case.x[:, 0], raw["X"][part]),
                (case.x[:, 1], raw["Y"][part]),
                (case.u[:, 0], raw["Q"][:, 0][part]),
            ):
                assert np.array_equal(ours, theirs.astype(np.float32).ravel())


def test_a_generated_case_in_the_published_format_reads_back_in_its_own_schema(tmp_path: Path) -> None:
    solver = Pipe(elements=8)
    theta = np.random.default_rng(0).uniform(-1, 1, 9)
    generated = solver.solve(theta)
    nodes = np.broadcast_to(solver.nodes(theta), (1001, 17, 17, 2))
    for axis, array in (("X", nodes[..., 0]), ("Y", nodes[..., 1])):
        np.save(tmp_path / PIPE[axis], array.astype(np.float32))
    fields = np.zeros((1001, 3, 17, 17), np.float32)
    assert generated.u is not None
    fields[1000, 0] = generated.u.reshape(17, 17)
    np.save(tmp_path / PIPE["Q"], fields)
    official = read_pipe(tmp_path)["test"][0]
    assert official.names == generated.names
    assert official.grid == generated.grid == (17, 17)
    ours, theirs = generated.arrays(), official.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert theirs[name].dtype == array.dtype
        # Weights here are those of nodes that were stored in single precision.
        assert np.allclose(theirs[name], array, rtol=1e-4 if name == "weights" else 0, atol=0), name


def test_a_folder_or_one_of_its_files_is_recognised_and_goes_into_a_store(tmp_path: Path) -> None:
    save(tmp_path, 1002)
    assert recognise(tmp_path) == recognise(tmp_path / PIPE["Y"]) == "pipe"
    out = tmp_path / "pipe.h5"
    assert import_official(tmp_path, get("pipe"), out) == (out, {"train": 1000, "test": 2})
    stored = open_dataset(tmp_path / "pipe.h5", split="test")
    for ours, theirs in zip(stored, read_pipe(tmp_path)["test"], strict=True):
        assert ours.grid == theirs.grid
        for name, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[name], array)


@pytest.mark.parametrize("axis", "XYQ")
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, axis: str) -> None:
    save(tmp_path)
    path = tmp_path / PIPE[axis]
    whole = path.read_bytes()
    for content in (whole[:1000], b"", b"<html>not found</html>"):
        path.write_bytes(content)
        assert f"{path} is no readable numpy file" in refusal(tmp_path)
    path.unlink()
    assert f"{path} does not exist. Put it into" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("axis", "array"),
    [
        ("X", np.zeros((1203, SIDE))),
        ("X", np.full((1203, SIDE, SIDE), "a")),
        ("Y", np.zeros((1203, SIDE, 4))),
        ("Q", np.zeros((1203, SIDE, SIDE))),
        ("Q", np.zeros((1203, 0, SIDE, SIDE))),
        ("Q", np.zeros((1202, 3, SIDE, SIDE))),
    ],
)
def test_ill_shaped_arrays_are_named(tmp_path: Path, axis: str, array: np.ndarray) -> None:
    save(tmp_path)
    np.save(tmp_path / PIPE[axis], array)
    assert f"{PIPE[axis]} holds {array.dtype} of shape {array.shape}" in refusal(tmp_path)


def test_files_without_test_cases_are_refused(tmp_path: Path) -> None:
    save(tmp_path, 1000)
    assert "hold 1000 cases" in refusal(tmp_path)
