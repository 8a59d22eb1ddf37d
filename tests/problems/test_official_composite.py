"""The published Composite files, small ones in the same format: read back equal, or refused."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.composite.official import read_composite
from lrsa.problems.composite.solver import Composite
from lrsa.problems.official import recognise

FIELDS, MESH = "Composites.mat", "Composites_LBO_basis.mat"
NODES = 7


def published(cases: int = 503) -> dict[str, Arrays]:
    """The files by name: seven nodes, five triangles behind their number of corners, case by case a row."""
    rng = np.random.default_rng(0)
    corners = [[0, 1, 2], [2, 3, 4], [4, 5, 6], [1, 2, 3], [6, 0, 1]]
    return {
        FIELDS: {"T_field": 150 + rng.random((cases, NODES)), "D_field": rng.random((cases, NODES))},
        MESH: {
            "Points": 900 * rng.random((NODES, 3)),
            "Faces": np.array([[3.0, *triangle] for triangle in corners]),
            "Eigenvectors": rng.random((NODES, 4)),
        },
    }


def publish(folder: Path, files: dict[str, Arrays], save: Save = save_v5, mesh: str = "") -> None:
    for name, arrays in files.items():
        place = folder / (mesh if name == MESH else "")
        place.mkdir(exist_ok=True, parents=True)
        save(place / name, arrays)


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
@pytest.mark.parametrize("mesh", ["", "Composites_LBO_basis"])
def test_the_splits_are_the_first_400_and_the_last_100(tmp_path: Path, save: Save, mesh: str) -> None:
    raw = published()
    publish(tmp_path, raw, save, mesh)
    assert recognise(tmp_path) == recognise(tmp_path / FIELDS) == "composite"
    for source in (tmp_path, tmp_path / FIELDS):
        splits = read_composite(source)
        assert {split: len(cases) for split, cases in splits.items()} == {"train": 400, "test": 100}
    for split, offset in (("train", 0), ("test", 403)):
        for i in (0, 7, len(splits[split]) - 1):
            case = splits[split][i].arrays()
            assert np.array_equal(case["x"], raw[MESH]["Points"].astype(np.float32))
            assert np.array_equal(case["f"][:, 0], raw[FIELDS]["T_field"][offset + i].astype(np.float32))
            assert np.array_equal(case["u"][:, 0], raw[FIELDS]["D_field"][offset + i].astype(np.float32))
            assert case["cells"].tolist()[1] == [2, 3, 4]
            assert set(case["cell_types"]) == {5}


def test_they_are_written_and_read_as_a_data_set_with_the_names_of_the_generated_one(tmp_path: Path) -> None:
    publish(tmp_path, published())
    write_dataset(tmp_path / "a.h5", read_composite(tmp_path))
    stored = open_dataset(tmp_path / "a.h5", "test")
    assert stored.fixed_points
    assert stored[3].names == Composite.names


@pytest.mark.parametrize(
    ("file", "key", "value", "said"),
    [
        (FIELDS, "T_field", np.ones((503, 8)), '"T_field" of shape (503, 8), not (cases, 7)'),
        (FIELDS, "D_field", np.ones((502, 7)), '"D_field" of shape (502, 7)'),
        (FIELDS, "D_field", None, 'no array "D_field"'),
        (MESH, "Points", np.ones((7, 2)), '"Points" of shape (7, 2), not (any, 3)'),
        (MESH, "Faces", np.ones((5, 3)), '"Faces" of shape (5, 3), not (any, 4)'),
        (MESH, "Faces", np.array([[3.0, 0, 1, 7]] * 5), "no triangles of nodes 0 to 6"),
        (MESH, "Faces", np.full((5, 4), 4.0), "no triangles"),
    ],
)
def test_other_files_are_refused(
    tmp_path: Path, file: str, key: str, value: np.ndarray | None, said: str
) -> None:
    raw = published()
    del raw[file][key]
    raw[file] |= {} if value is None else {key: value}
    publish(tmp_path, raw)
    with pytest.raises(LrsaError) as refused:
        read_composite(tmp_path)
    assert said in str(refused.value)
    assert file in str(refused.value)


def test_too_few_cases_and_a_missing_mesh_are_named(tmp_path: Path) -> None:
    publish(tmp_path, published(499))
    with pytest.raises(LrsaError, match="499 cases: the first 400 are for training, the last 100"):
        read_composite(tmp_path)
    (tmp_path / MESH).unlink()
    with pytest.raises(LrsaError, match=f"{MESH} does not exist"):
        read_composite(tmp_path)
