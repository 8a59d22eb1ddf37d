"""The published Pipe Turbulence file, a small one of the same format: read back equal, or refused."""

from pathlib import Path

import numpy as np
import pytest
from matlab import SAVES, Arrays, Save, save_v5

from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.problems.catalogue import open_dataset
from lrsa.problems.official import recognise
from lrsa.problems.pipe_turbulence.official import read_pipe_turbulence
from lrsa.problems.pipe_turbulence.solver import PipeTurbulence

FILE = "Turbulence.mat"


def arrays(cases: int = 403) -> Arrays:
    """All that the published file holds: six nodes, four triangles counted from 1, case by case a row."""
    rng = np.random.default_rng(0)
    return {
        "Input": rng.random((cases, 6)),
        "Output": rng.random((cases, 6)),
        "nodes": np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [0, 2]]),
        "elements": np.array([[1.0, 2, 2, 4], [2, 5, 3, 5], [4, 4, 5, 6]]),
    }


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
def test_the_splits_are_the_first_300_and_the_last_100(tmp_path: Path, save: Save) -> None:
    raw = arrays()
    save(tmp_path / FILE, raw)
    assert recognise(tmp_path) == recognise(tmp_path / FILE) == "pipe-turbulence"
    splits = read_pipe_turbulence(tmp_path)
    assert {split: len(cases) for split, cases in splits.items()} == {"train": 300, "test": 100}
    for split, offset in (("train", 0), ("test", 303)):
        for i in (0, 99, len(splits[split]) - 1):
            case = splits[split][i].arrays()
            assert np.array_equal(case["f"][:, 0], raw["Input"][offset + i].astype(np.float32))
            assert np.array_equal(case["u"][:, 0], raw["Output"][offset + i].astype(np.float32))
            assert np.array_equal(case["x"], raw["nodes"])
            assert case["cells"].tolist() == [[0, 1, 3], [1, 4, 3], [1, 2, 4], [3, 4, 5]]
            assert case["cell_types"].tolist() == [5] * 4


def test_they_are_written_and_read_as_a_data_set_with_the_names_of_the_generated_one(tmp_path: Path) -> None:
    save_v5(tmp_path / FILE, arrays())
    write_dataset(tmp_path / "a.h5", read_pipe_turbulence(tmp_path / FILE))
    stored = open_dataset(tmp_path / "a.h5", "test")
    assert stored.fixed_points
    assert stored[3].names == PipeTurbulence.names


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("Input", np.ones((403, 7)), '"Input" of shape (403, 7), not (cases, 6)'),
        ("Output", np.ones((402, 6)), '"Output" of shape (402, 6)'),
        ("nodes", np.ones((2, 6)), '"nodes" of shape (2, 6), not (nodes, 2)'),
        ("elements", np.ones((4, 3)), '"elements" of shape (4, 3), not (3, triangles)'),
        ("elements", np.zeros((3, 4)), "no nodes from 1 to 6"),
        ("Output", None, 'no array "Output"'),
    ],
)
def test_other_files_are_refused(tmp_path: Path, key: str, value: np.ndarray | None, said: str) -> None:
    raw = arrays()
    del raw[key]
    save_v5(tmp_path / FILE, raw | ({} if value is None else {key: value}))
    with pytest.raises(LrsaError) as refused:
        read_pipe_turbulence(tmp_path)
    assert said in str(refused.value)
    assert FILE in str(refused.value)


def test_too_few_cases_are_refused(tmp_path: Path) -> None:
    save_v5(tmp_path / FILE, arrays(399))
    with pytest.raises(LrsaError, match="399 cases: the first 300 are for training, the last 100"):
        read_pipe_turbulence(tmp_path)
