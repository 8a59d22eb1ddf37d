"""The published files, small ones in the same formats: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5, save_v73

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import get, open_dataset
from lrsa.problems.darcy.official import read_darcy
from lrsa.problems.darcy.solver import Darcy
from lrsa.problems.official import import_official, recognise

TRAIN, TEST = "piececonst_r421_N1024_smooth1.mat", "piececonst_r421_N1024_smooth2.mat"


def arrays(cases: int, size: int, seed: int = 0) -> Arrays:
    """All that the published file holds; no axis equals another, so that a wrong order shows."""
    rng = np.random.default_rng(seed)
    coeff = rng.choice([3.0, 12.0], (cases, size, size))
    sol = 0.01 * rng.random((cases, size, size))
    return {"Kcoeff": coeff + 1, "Kcoeff_x": coeff - 1, "Kcoeff_y": coeff, "coeff": coeff, "sol": sol}


@pytest.fixture(params=SAVES)
def save(request: pytest.FixtureRequest) -> Save:
    return request.param


@pytest.mark.parametrize(("size", "stride", "side"), [(21, 5, 5), (23, 5, 5), (9, 1, 9)])
def test_both_formats_read_back_equal(tmp_path: Path, save: Save, size: int, stride: int, side: int) -> None:
    raw = {"train": arrays(7, size), "test": arrays(4, size, seed=1)}
    save(tmp_path / TRAIN, raw["train"])
    save(tmp_path / TEST, raw["test"])
    splits = read_darcy(tmp_path, stride)
    assert list(splits) == ["train", "test"]
    for split, cases in splits.items():
        assert len(cases) == len(raw[split]["coeff"])
        for i, case in enumerate(cases):
            assert case.grid == (side, side)
            assert case.f is not None
            assert case.u is not None
            assert case.f.dtype == case.u.dtype == np.float32
            for ours, key in ((case.f, "coeff"), (case.u, "sol")):
                theirs = raw[split][key][i, ::stride, ::stride].astype(np.float32)
                assert np.array_equal(ours.reshape(side, side), theirs), (split, i, key)


def test_official_and_generated_cases_have_one_schema(tmp_path: Path, save: Save) -> None:
    generated = Darcy(resolution=43, stride=5).sample(np.random.default_rng(0))
    for file in (TRAIN, TEST):
        save(tmp_path / file, arrays(2, 43))
    official = read_darcy(tmp_path)["test"][0]
    assert official.grid == generated.grid
    assert official.names == generated.names
    assert np.array_equal(official.x, generated.x)
    kinds = [{k: (v.shape, v.dtype) for k, v in case.arrays().items()} for case in (official, generated)]
    assert kinds[0] == kinds[1]


def test_the_splits_are_the_first_1000_and_the_first_200(tmp_path: Path, save: Save) -> None:
    raw = {file: arrays(1024, 3, seed) for seed, file in enumerate((TRAIN, TEST))}
    for file, content in raw.items():
        save(tmp_path / file, content)
    splits = read_darcy(tmp_path, stride=1)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 1000, "test": 200}
    for split, file in (("train", TRAIN), ("test", TEST)):
        last = splits[split][-1].f
        assert last is not None
        assert np.array_equal(last[:, 0], raw[file]["coeff"][len(splits[split]) - 1].ravel())


def test_integer_and_single_precision_arrays_are_read(tmp_path: Path, save: Save) -> None:
    """MATLAB stores whole numbers as bytes, whatever their class."""
    content = arrays(3, 5)
    content = {"coeff": content["coeff"].astype(np.uint8), "sol": content["sol"].astype(np.float32)}
    for file in (TRAIN, TEST):
        save(tmp_path / file, content)
    case = read_darcy(tmp_path, stride=1)["train"][2]
    assert case.f is not None
    assert case.u is not None
    assert np.array_equal(case.f[:, 0], content["coeff"][2].ravel())
    assert np.array_equal(case.u[:, 0], content["sol"][2].ravel())


def test_cases_are_views_and_share_their_points(tmp_path: Path) -> None:
    for file in (TRAIN, TEST):
        save_v5(tmp_path / file, arrays(3, 11))
    cases = read_darcy(tmp_path)["train"]
    assert cases[0].x is cases[1].x
    assert cases[0].u is not None
    assert cases[0].u.base is not None
    with pytest.raises(IndexError):
        cases[3]


def test_the_splits_go_into_a_store_and_come_back(tmp_path: Path) -> None:
    for file in (TRAIN, TEST):
        save_v73(tmp_path / file, arrays(3, 11))
    splits = read_darcy(tmp_path)
    write_dataset(tmp_path / "darcy.h5", splits)
    stored = open_dataset(tmp_path / "darcy.h5", split="test")
    assert stored.fixed_points
    for ours, theirs in zip(stored, splits["test"], strict=True):
        for name, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[name], array)


def test_a_folder_or_a_file_of_it_is_recognised(tmp_path: Path) -> None:
    for file in (TRAIN, TEST):
        save_v5(tmp_path / file, arrays(2, 5))
    assert recognise(tmp_path) == recognise(tmp_path / TRAIN) == recognise(tmp_path / TEST) == "darcy"
    assert len(read_darcy(tmp_path / TEST)["train"]) == 2
    (tmp_path / "empty").mkdir()
    assert recognise(tmp_path / "empty") is None
    assert recognise(tmp_path / "other.mat") is None


def test_a_folder_of_two_benchmarks_is_ambiguous(tmp_path: Path) -> None:
    (tmp_path / TRAIN).touch()
    (tmp_path / "Pipe_X.npy").touch()
    assert recognise(tmp_path / "Pipe_X.npy") == "pipe"
    with pytest.raises(LrsaError, match="darcy and pipe"):
        recognise(tmp_path)


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_darcy(folder)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_the_missing_file_is_named(tmp_path: Path, save: Save) -> None:
    save(tmp_path / TRAIN, arrays(2, 11))
    assert recognise(tmp_path) == "darcy"
    assert f"{TEST} does not exist. Put it into" in refusal(tmp_path)


def test_published_files_are_not_written_over(tmp_path: Path, save: Save) -> None:
    for file in (TRAIN, TEST):
        save(tmp_path / file, arrays(2, 11))
    whole = (tmp_path / TEST).read_bytes()
    with pytest.raises(LrsaError, match="is no name of an HDF5 file"):
        import_official(tmp_path, get("darcy"), tmp_path / TEST)
    assert (tmp_path / TEST).read_bytes() == whole


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sol": None}, 'no array "sol" (it has: '),
        ({"coeff": None}, 'no array "coeff" (it has: '),
        ({"coeff": np.ones((3, 11, 12))}, '"coeff" of shape (3, 11, 12)'),
        ({"sol": np.ones((11, 11))}, '"sol" of shape (11, 11)'),
        ({"sol": np.ones((4, 11, 11))}, '"sol" of shape (4, 11, 11)'),
        ({"coeff": np.ones((3, 9, 9)), "sol": np.ones((3, 9, 9))}, "on different grids"),
    ],
)
def test_ill_shaped_arrays_are_named(
    tmp_path: Path, save: Save, change: dict[str, np.ndarray | None], words: str
) -> None:
    save(tmp_path / TRAIN, arrays(3, 11))
    content = {**arrays(3, 11), **change}
    save(tmp_path / TEST, {key: value for key, value in content.items() if value is not None})
    line = refusal(tmp_path)
    assert words in line
    assert TEST in line
    assert "ownload" in line


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, save: Save, share: float) -> None:
    for file in (TRAIN, TEST):
        save(tmp_path / file, arrays(5, 21))
    whole = (tmp_path / TEST).read_bytes()
    (tmp_path / TEST).write_bytes(whole[: int(share * len(whole))])
    line = refusal(tmp_path)
    assert TEST in line
    assert "ownload" in line


@pytest.mark.parametrize("content", [b"<html>404 Not Found</html>\n" * 40, bytes(1000), b"PK\x03\x04" * 99])
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    save_v5(tmp_path / TRAIN, arrays(2, 11))
    (tmp_path / TEST).write_bytes(content)
    line = refusal(tmp_path)
    assert TEST in line
    assert "ownload" in line
