"""The published Heat Transfer files, small ones in the same format: read back equal, or refused."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.heat_transfer.official import read_heat_transfer
from lrsa.problems.official import recognise

FIELDS, PART, FACE = "HeatTransfer.mat", "Part_Mesh.mat", "lbe_ev_input.mat"


def published(cases: int = 203) -> dict[str, Arrays]:
    """The files by name; no axis equals another. Cells of the part count from 1, those of the face from 0."""
    rng = np.random.default_rng(0)
    face = np.concatenate([rng.uniform(-19, 19, (7, 2)), np.zeros((7, 1))], axis=1)
    tetrahedra = np.array([rng.permutation(11)[:4] + 1 for _ in range(9)])
    tetrahedra[0] = [1, 11, 2, 3]
    return {
        FIELDS: {"input": rng.random((cases, 7)), "output": rng.random((cases, 11))},
        PART: {"points": 50 * rng.random((11, 3)), "elements": tetrahedra.astype(float)},
        FACE: {
            "Points": face,
            "Faces": np.array([[0, 1, 2], [2, 3, 4], [4, 5, 6], [1, 2, 3], [6, 0, 1]]).astype(float),
            "Eigenvectors": rng.random((7, 4)),
            "Eigenvalues": rng.random((1, 4)),
        },
    }


def publish(folder: Path, files: dict[str, Arrays], save: Save = save_v5, meshes: str = "") -> None:
    for name, arrays in files.items():
        place = folder / (meshes if name != FIELDS else "")
        place.mkdir(exist_ok=True, parents=True)
        save(place / name, arrays)


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
@pytest.mark.parametrize("meshes", ["", "HeatTransfer_LBO_basis"])
def test_the_splits_are_the_first_100_and_the_last_100(tmp_path: Path, save: Save, meshes: str) -> None:
    raw = published()
    publish(tmp_path, raw, save, meshes)
    assert recognise(tmp_path) == recognise(tmp_path / FIELDS) == "heat-transfer"
    splits = read_heat_transfer(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 100, "test": 100}
    for split, offset in (("train", 0), ("test", 103)):
        for i in (0, 7, 99):
            case = splits[split][i].arrays()
            x = np.concatenate([raw[PART]["points"], raw[FACE]["Points"]]).astype(np.float32)
            assert np.array_equal(case["x"], x)
            assert np.array_equal(case["f"][11:, 0], raw[FIELDS]["input"][offset + i].astype(np.float32))
            assert np.array_equal(case["u"][:11, 0], raw[FIELDS]["output"][offset + i].astype(np.float32))
            assert np.array_equal(case["cells"], raw[PART]["elements"] - 1)
            for mask, where in (("f_mask", slice(11, None)), ("u_mask", slice(11))):
                assert case[mask][where, 0].all()
                assert case[mask][:, 0].sum() == len(case[mask][where])


def test_the_measure_is_the_area_of_the_face(tmp_path: Path) -> None:
    raw = published()
    publish(tmp_path, raw)
    weights = read_heat_transfer(tmp_path)["train"][0].arrays()["weights"]
    corners = raw[FACE]["Points"][raw[FACE]["Faces"].astype(int)]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    assert not weights[:11].any()
    assert abs(weights.sum() / area.sum() - 1) < 1e-6
    assert abs(weights[11 + 5] * 3 / area[2] - 1) < 1e-6, "node 5 is of one triangle"


def test_they_are_written_and_read_as_a_data_set(tmp_path: Path) -> None:
    publish(tmp_path, published())
    write_dataset(tmp_path / "a.h5", read_heat_transfer(tmp_path))
    assert open_dataset(tmp_path / "a.h5", "test")[3].names.inputs == ("T_face", "is_input")


@pytest.mark.parametrize(
    ("file", "key", "value", "said"),
    [
        (FIELDS, "input", np.ones((203, 8)), '"input" of shape (203, 8), not (203, 7)'),
        (FIELDS, "output", np.ones((202, 11)), '"output" of shape (202, 11), not (203, 11)'),
        (PART, "elements", np.ones((9, 3)), '"elements" of shape (9, 3), not (9, 4)'),
        (PART, "elements", np.zeros((9, 4)), "name nodes which are not there"),
        (FACE, "Faces", np.full((5, 3), 7.0), "name nodes which are not there"),
        (FACE, "Points", None, 'no array "Points"'),
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
        read_heat_transfer(tmp_path)
    assert said in str(refused.value)
    assert file in str(refused.value)


def test_too_few_cases_and_a_stride_are_refused(tmp_path: Path) -> None:
    publish(tmp_path, published(199))
    with pytest.raises(LrsaError, match="199 cases, not the 300 published"):
        read_heat_transfer(tmp_path)
    with pytest.raises(LrsaError, match="no stride 2"):
        read_heat_transfer(tmp_path, 2)


def test_a_missing_mesh_is_named(tmp_path: Path) -> None:
    publish(tmp_path, {FIELDS: published()[FIELDS]})
    with pytest.raises(LrsaError, match=r"Part_Mesh.mat does not exist"):
        read_heat_transfer(tmp_path)
