"""The published Plasticity file, small ones in its formats: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5

from lrsa.errors import LrsaError
from lrsa.problems.catalogue import get, open_dataset
from lrsa.problems.official import import_official, recognise
from lrsa.problems.plasticity.official import PLASTICITY, read_plasticity
from lrsa.problems.plasticity.solver import Plasticity


def arrays(cases: int = 987, grid: tuple[int, int] = (5, 3), dtype: str = "float64") -> Arrays:
    """All that the published file holds."""
    rng = np.random.default_rng(0)
    return {
        "input": rng.random((cases, grid[0])).astype(dtype),
        "output": rng.random((cases, *grid, 20, 4)).astype(dtype),
    }


@pytest.fixture(params=SAVES)
def save(request: pytest.FixtureRequest) -> Save:
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_first_900_and_the_last_80_cases_read_back_equal(
    tmp_path: Path, save: Save, dtype: str, stride: int
) -> None:
    raw = arrays(dtype=dtype)
    save(tmp_path / PLASTICITY, raw)
    splits = read_plasticity(tmp_path, stride)
    assert {name: len(cases) for name, cases in splits.items()} == {"train": 900, "test": 80}
    for split, first in (("train", 0), ("test", 907)):
        for i in (0, 7, len(splits[split]) - 1):
            case = splits[split][i]
            output = raw["output"][first + i, ::stride, ::stride].astype(np.float32)
            die = raw["input"][first + i, ::stride].astype(np.float32)
            assert case.grid == output.shape[:2]
            assert case.grid is not None
            assert case.u is not None
            assert case.f is not None
            for t in range(20):
                assert np.array_equal(case.u[t], output[:, :, t].reshape(-1, 4))
            assert np.array_equal(case.f.reshape(case.grid), np.repeat(die[:, None], case.grid[1], axis=1))


def test_a_generated_case_in_the_published_format_is_read_as_it_was(tmp_path: Path, save: Save) -> None:
    solver = Plasticity(young=200e3 / 64, columns=10, rows=3)
    made = solver.sample(np.random.default_rng(0))
    assert made.u is not None
    assert made.f is not None
    raw = arrays(grid=(11, 4))
    raw["output"][910] = np.moveaxis(made.u.reshape(20, 11, 4, 4), 0, 2)
    raw["input"][910] = made.f.reshape(11, 4)[:, 0]
    save(tmp_path / PLASTICITY, raw)
    official = read_plasticity(tmp_path)["test"][3]
    assert official.names == made.names
    assert official.grid == made.grid
    ours, theirs = made.arrays(), official.arrays()
    assert ours.keys() == theirs.keys() | {"redraws"}
    for name in theirs:
        array = ours[name]
        assert theirs[name].dtype == array.dtype
        assert np.array_equal(theirs[name], array), name


def test_the_file_becomes_a_time_conditioned_data_set(tmp_path: Path) -> None:
    path = tmp_path / PLASTICITY
    save_v5(path, arrays())
    assert recognise(tmp_path) == recognise(path) == "plasticity"
    out, counts = import_official(path, get("plasticity"), tmp_path / "plasticity.h5")
    assert (out.name, counts) == ("plasticity.h5", {"train": 900, "test": 80})
    stored = open_dataset(tmp_path / "plasticity.h5", split="test")
    assert stored.schema.protocol == "time-conditioned"
    assert stored.schema.source == "official"
    for ours, theirs in zip(stored, read_plasticity(tmp_path)["test"], strict=True):
        for field, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[field], array), field


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_plasticity(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path, save: Save) -> None:
    path = tmp_path / PLASTICITY
    assert f"{path} does not exist. Put it into" in refusal(tmp_path)
    save(path, arrays())
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"<html>not found</html>"):
        path.write_bytes(content)
        assert f"{path} is no readable MATLAB file" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": np.zeros((987, 5, 3, 20))}, '"output" of shape (987, 5, 3, 20)'),
        ({"output": np.zeros((987, 5, 3, 19, 4))}, '"output" of shape (987, 5, 3, 19, 4)'),
        ({"input": np.zeros((987, 4))}, '"input" of shape (987, 4)'),
        ({"input": np.zeros((986, 5))}, '"input" of shape (986, 5)'),
        ({"input": np.zeros((979, 5)), "output": np.zeros((979, 5, 3, 20, 4))}, "has 979 cases"),
    ],
)
def test_ill_shaped_arrays_are_named(tmp_path: Path, change: Arrays, words: str) -> None:
    save_v5(tmp_path / PLASTICITY, arrays() | change)
    assert words in refusal(tmp_path)


def test_a_file_without_the_arrays_is_refused(tmp_path: Path) -> None:
    save_v5(tmp_path / PLASTICITY, {"other": np.zeros((2, 2))})
    assert 'no array "input" (it has: other)' in refusal(tmp_path)
