"""Coordinates and times far from 0, of which single precision would keep too little."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import frames, grid_cases, write
from test_mesh_import import disc

from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.mesh.importing import Problems, import_meshes
from lrsa.pointset import check_digits


def moved(folder: Path, by: float, kind: type = np.float64) -> Path:
    folder.mkdir()
    for i in range(2):
        mesh = disc(30, seed=i)
        mesh.points = (np.asarray(mesh.points, np.float64) + np.array([by, by / 2, 0])).astype(kind)
        mesh.save(folder / f"disc_{i}.vtu")
    return folder


def test_meshes_far_from_the_origin_are_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(Problems) as caught:
        import_meshes(moved(tmp_path / "far", 1e6), tmp_path / "out.h5", ["f"], ["p"], workers=1)
    assert len(caught.value.lines) == 2
    for line in caught.value.lines:
        assert "coordinates too far from 0" in line
        assert "Subtract the same origin from all cases, e.g. 999999, 499999" in line
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("by", [0.0, 100.0])
def test_meshes_near_it_keep_their_digits(tmp_path: Path, by: float) -> None:
    folder = moved(tmp_path / "near", by)
    import_meshes(folder, tmp_path / "out.h5", ["f"], ["p"], workers=1)
    case = Dataset(tmp_path / "out.h5", "train")[0]
    assert case.f is not None
    seeds = case.f[:, 0] - (case.x[:, 0].astype(np.float64) - by)  # the input is x + seed, before the move
    assert np.abs(seeds - np.round(seeds)).max() < 2e-5


def test_what_was_rounded_before_is_taken_as_it_is(tmp_path: Path) -> None:
    """Single precision in the file: nothing more is lost."""
    folder = moved(tmp_path / "far", 1e6, np.float32)
    import_meshes(folder, tmp_path / "out.h5", ["f"], ["p"], workers=1)
    assert len(Dataset(tmp_path / "out.h5", "train")) == 1


def test_data_sets_from_python_are_refused_too(tmp_path: Path) -> None:
    cases = [replace(case, x=0.9 * case.x.astype(np.float64) + 1e6) for case in grid_cases(3)]
    with pytest.raises(LrsaError, match="case 0 of train has coordinates too far from 0"):
        write(tmp_path / "d.h5", cases)
    first = frames(grid_cases(1)[0], 3)
    assert first.times is not None
    late = replace(first, times=first.times.astype(np.float64) + 1.7e9)
    with pytest.raises(LrsaError, match="case 0 of train has times too far from 0"):
        write(tmp_path / "d.h5", [late], protocol="time-conditioned")
    assert not (tmp_path / "d.h5").exists()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((0, 2)),
        np.full((3, 2), 1234567.891),
        np.array([[1234567.891, 0.0], [1234567.891, 1.0]]),
        np.array([1234567.891]),
        np.array([[2**24 - 1, 0], [0, 1]]),
        np.random.default_rng(0).random((50, 3)) * 1e-9,
        np.random.default_rng(0).random((50, 3)) * 1e9,
    ],
    ids=["nothing", "one place", "a constant axis", "one time", "whole numbers", "small", "large"],
)
def test_size_alone_is_no_reason(values: np.ndarray) -> None:
    check_digits(values, "here", "coordinates")
