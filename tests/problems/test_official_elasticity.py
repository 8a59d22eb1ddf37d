"""The published Elasticity files, small ones in the same format: read back equal, or refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.elasticity.official import read_elasticity
from lrsa.problems.elasticity.solver import Elasticity

XY, SIGMA, RR = (f"Random_UnitCell_{key}_10.npy" for key in ("XY", "sigma", "rr"))


def publish(
    folder: Path, cases: int = 1203, points: int = 5, kind: type = np.float64
) -> dict[str, np.ndarray]:
    """All three files; no axis equals another, so that a wrong order shows."""
    rng = np.random.default_rng(0)
    arrays = {
        XY: rng.random((points, 2, cases)).astype(kind),
        SIGMA: (200 * rng.random((points, cases))).astype(kind),
        RR: rng.random((42, cases)).astype(kind),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / name, array)
    return arrays


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_splits_are_the_first_1000_and_the_last_200(tmp_path: Path, kind: type) -> None:
    raw = publish(tmp_path, kind=kind)
    splits = read_elasticity(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 1000, "test": 200}
    for split, offset in (("train", 0), ("test", 1003)):
        for i in (0, 1, 199, len(splits[split]) - 1):
            case = splits[split][i]
            assert case.f is None
            assert case.u is not None
            assert case.x.dtype == case.u.dtype == np.float32
            assert np.array_equal(case.x, raw[XY][:, :, offset + i].astype(np.float32))
            assert np.array_equal(case.u[:, 0], raw[SIGMA][:, offset + i].astype(np.float32))


def test_files_in_the_order_of_fortran_read_the_same(tmp_path: Path) -> None:
    raw = publish(tmp_path)
    for name in (XY, SIGMA):
        np.save(tmp_path / name, np.asfortranarray(raw[name]))
    case = read_elasticity(tmp_path)["test"][-1]
    assert np.array_equal(case.x, raw[XY][:, :, -1].astype(np.float32))


def test_every_second_point(tmp_path: Path) -> None:
    publish(tmp_path)
    whole, half = (read_elasticity(tmp_path, stride)["test"][7] for stride in (1, 2))
    for name, array in half.arrays().items():
        assert np.array_equal(array, whole.strided(2).arrays()[name])


def test_official_and_generated_cases_have_one_schema_but_for_the_weights(tmp_path: Path) -> None:
    publish(tmp_path, points=972)
    official = read_elasticity(tmp_path)["test"][0]
    generated = Elasticity(refinement=1).sample(np.random.default_rng(0))
    assert official.names == generated.names
    kinds = [{k: (v.shape, v.dtype) for k, v in case.arrays().items()} for case in (official, generated)]
    assert kinds[0] == {k: v for k, v in kinds[1].items() if k != "weights"}


@pytest.mark.parametrize("inside", ["", "Meshes", "elasticity/Meshes"])
def test_a_folder_above_or_a_file_of_it_will_do(tmp_path: Path, inside: str) -> None:
    publish(tmp_path / inside)
    cases = [read_elasticity(place)["test"][3] for place in (tmp_path, tmp_path / inside / SIGMA)]
    assert np.array_equal(cases[0].x, cases[1].x)


def test_cases_are_views_and_end(tmp_path: Path) -> None:
    publish(tmp_path)
    cases = read_elasticity(tmp_path)["test"]
    assert cases[0].x.base is not None
    assert len(list(cases)) == 200
    with pytest.raises(IndexError):
        cases[200]


def test_the_splits_go_into_a_store_and_come_back(tmp_path: Path) -> None:
    publish(tmp_path)
    splits = read_elasticity(tmp_path)
    write_dataset(tmp_path / "elasticity.h5", splits)
    stored = open_dataset(tmp_path / "elasticity.h5", split="test")
    for ours, theirs in zip(stored, splits["test"], strict=True):
        for name, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[name], array)


def refusal(folder: Path) -> str:
    with pytest.raises(LrsaError) as caught:
        read_elasticity(folder)
    line = str(caught.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize("name", [XY, SIGMA])
def test_the_missing_file_is_named(tmp_path: Path, name: str) -> None:
    publish(tmp_path)
    (tmp_path / name).unlink()
    assert f"{name} does not exist. Put it into" in refusal(tmp_path)


def test_the_radii_are_not_needed(tmp_path: Path) -> None:
    publish(tmp_path)
    (tmp_path / RR).unlink()
    assert len(read_elasticity(tmp_path)["train"]) == 1000


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        (XY, np.ones((5, 1203)), f"{XY} has the shape (5, 1203)"),
        (XY, np.ones((1203, 5, 2)), f"{XY} has the shape (1203, 5, 2)"),
        (SIGMA, np.ones((1203, 5)), f"{SIGMA} has the shape (1203, 5), but the points ask for (5, 1203)"),
        (SIGMA, np.ones((5, 1204)), f"{SIGMA} has the shape (5, 1204)"),
        (SIGMA, np.full((5, 1203), "a"), "no array of numbers"),
        (SIGMA, np.full((5, 1203), None), "no readable NumPy file"),
    ],
)
def test_foreign_arrays_are_named(tmp_path: Path, name: str, array: np.ndarray, words: str) -> None:
    publish(tmp_path)
    np.save(tmp_path / name, array)
    line = refusal(tmp_path)
    assert words in line
    assert "ownload" in line


def test_splits_that_would_overlap_are_refused(tmp_path: Path) -> None:
    publish(tmp_path, cases=1199)
    assert "has 1199 cases" in refusal(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    publish(tmp_path)
    whole = (tmp_path / SIGMA).read_bytes()
    (tmp_path / SIGMA).write_bytes(whole[: int(share * len(whole))])
    line = refusal(tmp_path)
    assert f"{SIGMA} is no readable NumPy file" in line
    assert "ownload" in line


def test_a_web_page_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    publish(tmp_path)
    (tmp_path / XY).write_bytes(b"<html>404 Not Found</html>\n" * 40)
    assert f"{XY} is no readable NumPy file" in refusal(tmp_path)
