"""The published airfoil files, small ones in the same format: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.airfoil.official import AIRFOIL, read_airfoil
from lrsa.problems.airfoil.solver import Airfoil
from lrsa.problems.catalogue import open_dataset

SHAPE = (105, 4)
"""Of small grids; the wake has its published 50 cells."""


def save(folder: Path, cases: int = 1203, dtype: str = "float64") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    i, j = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
    x, y = (array + 1e-3 * np.arange(cases)[:, None, None] for array in (-i, j))
    arrays = {"X": x, "Y": y, "Q": rng.random((cases, 5, *SHAPE))}
    arrays = {axis: array.astype(dtype) for axis, array in arrays.items()}
    for axis, array in arrays.items():
        np.save(folder / AIRFOIL[axis], array)
    return arrays


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_cases_read_back_equal(tmp_path: Path, dtype: str, stride: int) -> None:
    raw = save(tmp_path, dtype=dtype)
    splits = read_airfoil(tmp_path, stride)
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
                (case.u[:, 0], raw["Q"][:, 4][part]),
            ):
                assert np.array_equal(ours, theirs.astype(np.float32).ravel())


def test_the_published_number_of_nodes_is_read_in_the_schema_of_the_generated_set(tmp_path: Path) -> None:
    solver = Airfoil(tolerance=3e-2)
    generated = solver.solve(np.zeros(8))
    nodes = np.broadcast_to(solver.nodes(np.zeros(8)), (1001, 221, 51, 2))
    for axis, array in (("X", nodes[..., 0]), ("Y", nodes[..., 1])):
        np.save(tmp_path / AIRFOIL[axis], array.astype(np.float32))
    fields = np.lib.format.open_memmap(tmp_path / AIRFOIL["Q"], "w+", np.float32, (1001, 5, 221, 51))
    assert generated.u is not None
    fields[1000, 4] = generated.u.reshape(221, 51)
    del fields
    official = read_airfoil(tmp_path)["test"][0]
    assert official.names == generated.names
    assert official.grid == generated.grid == (221, 51)
    ours, theirs = generated.arrays(), official.arrays()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert theirs[name].dtype == array.dtype
        # Weights here are those of nodes that were stored in single precision.
        assert np.allclose(theirs[name], array, rtol=2e-3 if name == "weights" else 0, atol=0), name


def test_one_of_the_files_stands_for_its_folder_and_the_splits_go_into_a_store(tmp_path: Path) -> None:
    save(tmp_path, 1002)
    splits = read_airfoil(tmp_path / AIRFOIL["Y"])
    write_dataset(tmp_path / "airfoil.h5", splits)
    stored = open_dataset(tmp_path / "airfoil.h5", split="test")
    assert len(stored) == 2
    for ours, theirs in zip(stored, splits["test"], strict=True):
        for name, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[name], array), name


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_airfoil(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("axis", "XYQ")
def test_a_missing_or_damaged_file_is_named(tmp_path: Path, axis: str) -> None:
    save(tmp_path)
    path = tmp_path / AIRFOIL[axis]
    whole = path.read_bytes()
    for content in (whole[:1000], b"", b"<html>not found</html>"):
        path.write_bytes(content)
        assert f"{path} is no readable numpy file" in refusal(tmp_path)
    path.unlink()
    assert f"{path} does not exist. Put it into" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("axis", "array"),
    [
        ("X", np.zeros((1203, 105))),
        ("X", np.full((1203, 105, 4), "a")),
        ("Y", np.zeros((1203, 4, 105))),
        ("Q", np.zeros((1203, 105, 4))),
        ("Q", np.zeros((1203, 4, 105, 4))),
        ("Q", np.zeros((1202, 5, 105, 4))),
    ],
)
def test_ill_shaped_arrays_are_named(tmp_path: Path, axis: str, array: np.ndarray) -> None:
    save(tmp_path)
    np.save(tmp_path / AIRFOIL[axis], array)
    assert f"{AIRFOIL[axis]} holds {array.dtype} of shape {array.shape}" in refusal(tmp_path)


def test_files_without_test_cases_are_refused(tmp_path: Path) -> None:
    save(tmp_path, 1000)
    assert "hold 1000 cases" in refusal(tmp_path)
