"""The published irregular Darcy file, a small one of the same format: read back equal, or refused."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.irregular_darcy.official import read_irregular_darcy
from lrsa.problems.irregular_darcy.solver import IrregularDarcy
from lrsa.problems.official import recognise

FILE = "Darcy.mat"


def arrays(cases: int = 1203) -> Arrays:
    """All that the published file holds: six nodes, four triangles counted from 1, case by case a row."""
    rng = np.random.default_rng(0)
    return {
        "c_field": rng.choice([3.0, 12.0], (cases, 6)),
        "u_field": rng.random((cases, 6)),
        "MeshNodes": np.array([[0.0, 1, 2, 0, 1, 0], [0, 0, 0, 1, 1, 2]]),
        "MeshElements": np.array([[1.0, 2, 2, 4], [2, 5, 3, 5], [4, 4, 5, 6]]),
    }


@pytest.fixture(params=SAVES)
def save(request: pytest.FixtureRequest) -> Save:
    return request.param


def test_the_splits_are_the_first_1000_and_the_last_200(tmp_path: Path, save: Save) -> None:
    raw = arrays()
    save(tmp_path / FILE, raw)
    splits = read_irregular_darcy(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 1000, "test": 200}
    for split, offset in (("train", 0), ("test", 1003)):
        for i in (0, 199, len(splits[split]) - 1):
            case = splits[split][i]
            assert case.f is not None
            assert case.u is not None
            assert case.f.dtype == case.u.dtype == case.x.dtype == np.float32
            assert np.array_equal(case.f[:, 0], raw["c_field"][offset + i].astype(np.float32))
            assert np.array_equal(case.u[:, 0], raw["u_field"][offset + i].astype(np.float32))
            assert np.array_equal(case.x, raw["MeshNodes"].T)
            assert case.cells is not None
            assert case.cells.tolist() == [[0, 1, 3], [1, 4, 3], [1, 2, 4], [3, 4, 5]]
            assert case.cell_types is not None
            assert case.cell_types.tolist() == [5] * 4


def test_official_and_generated_cases_have_one_schema_but_for_the_weights(tmp_path: Path) -> None:
    save_v5(tmp_path / FILE, arrays())
    official = read_irregular_darcy(tmp_path)["test"][0]
    generated = IrregularDarcy(refinement=0).sample(np.random.default_rng(0))
    assert official.names == generated.names
    kinds = [{k: (v.shape[1:], v.dtype) for k, v in case.arrays().items()} for case in (official, generated)]
    assert kinds[0] == {k: v for k, v in kinds[1].items() if k != "weights"}


def test_the_splits_go_into_a_store_and_come_back(tmp_path: Path) -> None:
    save_v5(tmp_path / FILE, arrays())
    splits = read_irregular_darcy(tmp_path / FILE)
    write_dataset(tmp_path / "darcy.h5", splits)
    stored = open_dataset(tmp_path / "darcy.h5", split="test")
    assert stored.fixed_points
    for ours, theirs in zip(stored, splits["test"], strict=True):
        for name, array in theirs.arrays().items():
            assert np.array_equal(ours.arrays()[name], array)
    half = read_irregular_darcy(tmp_path, stride=2)["test"][1]
    assert np.array_equal(half.x, splits["test"][1].x[::2])
    assert half.cells is None


def test_the_file_is_recognised_and_is_not_that_of_the_square(tmp_path: Path) -> None:
    save_v5(tmp_path / FILE, arrays())
    assert recognise(tmp_path) == recognise(tmp_path / FILE) == "irregular-darcy"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"u_field": None}, 'no array "u_field" (it has: '),
        ({"MeshNodes": None}, 'no array "MeshNodes" (it has: '),
        ({"c_field": np.ones((1203, 7))}, '"c_field" of shape (1203, 7), not (cases, 6)'),
        ({"u_field": np.ones((1202, 6))}, '"u_field" of shape (1202, 6)'),
        ({"MeshNodes": np.ones((6, 2))}, '"MeshNodes" of shape (6, 2), not (2, nodes)'),
        ({"MeshElements": np.ones((4, 3))}, '"MeshElements" of shape (4, 3), not (3, triangles)'),
        ({"MeshElements": np.array([[0.0], [1], [2]])}, "no nodes from 1 to 6"),
        ({"MeshElements": np.array([[1.0], [2], [7]])}, "no nodes from 1 to 6"),
        ({"MeshElements": np.array([[1.5], [2], [3]])}, "no nodes from 1 to 6"),
        ({"c_field": np.ones((1199, 6)), "u_field": np.ones((1199, 6))}, "has 1199 cases"),
    ],
)
def test_ill_shaped_arrays_are_named(
    tmp_path: Path, save: Save, change: dict[str, np.ndarray | None], words: str
) -> None:
    content = {**arrays(), **change}
    save(tmp_path / FILE, {key: value for key, value in content.items() if value is not None})
    with pytest.raises(LrsaError) as caught:
        read_irregular_darcy(tmp_path)
    line = str(caught.value)
    assert words in line
    assert FILE in line
    assert "ownload" in line
    assert "\n" not in line


def test_a_missing_or_truncated_file_is_named(tmp_path: Path, save: Save) -> None:
    with pytest.raises(LrsaError, match=r"Darcy\.mat does not exist\. Put it into"):
        read_irregular_darcy(tmp_path)
    save(tmp_path / FILE, arrays())
    whole = (tmp_path / FILE).read_bytes()
    for share in (0.01, 0.5, 0.99):
        (tmp_path / FILE).write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(LrsaError, match="ownload"):
            read_irregular_darcy(tmp_path)
