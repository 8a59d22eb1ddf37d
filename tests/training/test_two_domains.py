"""Inputs at some points, fields at others: the union with masks, whose unknown values are never seen."""

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from small import NAMES, assert_bit_equal, grid_cases, grid_points, quick, ragged_cases, weights, write

import lrsa
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.evaluation.null import NullBaselines
from lrsa.objectives.protocols import Static
from lrsa.pointset import PointSet, corresponding
from lrsa.surrogate.ranges import Ranges

FLAGGED = replace(NAMES, inputs=("a", "is_input"))


def two_domains(case: PointSet, every: int = 3) -> PointSet:
    """Every so-many-th point gives the input, the others ask for the field."""
    gives = np.arange(len(case)) % every == 0
    assert case.f is not None
    f = np.stack([np.where(gives, case.f[:, 0], 0), gives], axis=1).astype(np.float32)
    mask = np.stack([gives, np.ones(len(case), bool)], axis=1)
    return replace(case, f=f, f_mask=mask, u_mask=~gives[:, None], grid=None, names=FLAGGED)


def changed(case: PointSet, seed: int) -> PointSet:
    """The same case: other numbers where there is no input."""
    assert case.f is not None
    assert case.f_mask is not None
    noise = np.random.default_rng(seed).normal(3, 100, case.f.shape).astype(np.float32)
    return replace(case, f=np.where(case.f_mask, case.f, noise))


def both(cases: list[PointSet]) -> tuple[list[PointSet], list[PointSet]]:
    joined = [two_domains(case) for case in cases]
    return joined, [changed(case, i) for i, case in enumerate(joined)]


def test_a_value_that_is_not_known_changes_no_bit_of_a_training(tmp_path: Path) -> None:
    """Not of the statistics, not of the weights, not of a prediction; in padded batches neither."""
    for name, cases in (("grid", grid_cases(6)), ("ragged", ragged_cases(6))):
        ones, others = both(cases)
        trained = [
            quick(write(tmp_path / f"{name}{i}.h5", part), tmp_path / f"{name}{i}")
            for i, part in enumerate((ones, others))
        ]
        assert_bit_equal(*(weights(tmp_path / f"{name}{i}") for i in range(2)))
        first, second = (surrogate.predict_cases(ones[:3]) for surrogate in trained)
        again = trained[0].predict_cases(others[:3])
        for a, b, c in zip(first, second, again, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a, c)


def test_known_values_do_change_the_prediction(tmp_path: Path) -> None:
    """Without which the test above says nothing."""
    case = two_domains(grid_cases(1)[0])
    surrogate = quick(write(tmp_path / "a.h5", [case] * 2), tmp_path / "run")
    assert case.f is not None
    other = replace(case, f=case.f + np.array([1, 0], np.float32))
    assert not np.array_equal(surrogate.predict(case), surrogate.predict(other))


def test_it_changes_neither_ranges_nor_null_baselines() -> None:
    for cases in (grid_cases(5), ragged_cases(5)):
        ones, others = both(cases)
        assert Ranges.of(ones) == Ranges.of(others)
        fixed = corresponding(ones)
        errors = [NullBaselines(part, Static(), fixed).errors(ones) for part in (ones, others)]
        assert all(np.array_equal(errors[0][name], errors[1][name]) for name in errors[0])


def test_the_nearest_case_is_the_one_whose_few_inputs_are_nearest() -> None:
    """However many points ask for fields: they must not crowd out the inputs."""
    rng, many = np.random.default_rng(0), grid_points(80)
    gives = np.arange(len(many)) == 7
    cases = []
    for value in rng.permutation(40).astype(np.float32):
        f, u = (np.where(gives, value, 0)[:, None].astype(np.float32), np.full((len(many), 1), value))
        cases.append(PointSet(many, f, u, u_mask=~gives[:, None], f_mask=gives[:, None]))
    nulls = NullBaselines(cases[:20], Static(), fixed=True)
    values = np.array([float(case.u[0, 0]) for case in cases if case.u is not None])
    for case, value in zip(cases[20:], values[20:], strict=True):
        found = float(nulls.predictions(case)["nearest case"][0, 0])
        assert abs(found - value) == np.abs(values[:20] - value).min()


def test_statistics_of_each_point_are_a_choice_that_ties_a_run_to_its_mesh(tmp_path: Path) -> None:
    """It trains, loads, resumes its choice, and refuses other points in one line."""
    cases = [two_domains(case) for case in grid_cases(6)]
    data = write(tmp_path / "a.h5", cases[:4], cases[4:])
    surrogate = quick(data, tmp_path / "run", statistics="point")
    assert surrogate.normaliser.u_shift.shape == (64, 1)
    u = surrogate.predict(cases[4])
    assert np.array_equal(u, lrsa.load(tmp_path / "run").predict(cases[4]))
    assert not np.array_equal(u, quick(data, tmp_path / "other").predict(cases[4]))
    with pytest.raises(LrsaError, match="holds for that mesh alone, but 32 are given"):
        surrogate.predict(cases[4].strided(2))
    with pytest.raises(LrsaError, match="Leave one out"):
        quick(data, tmp_path / "third", statistics="point", symmetry="mirror-x")
    with pytest.raises(LrsaError, match="one mesh for all cases"):
        quick(write(tmp_path / "b.h5", ragged_cases(4)), tmp_path / "fourth", statistics="point")


def test_files_without_the_mask_load_as_ever(tmp_path: Path) -> None:
    path = write(tmp_path / "old.h5", grid_cases(3))
    with h5py.File(path) as file:
        assert "train/f_mask" not in file
        assert "shared/f_mask" not in file
    assert Dataset(path, "train")[0].f_mask is None


def test_the_mask_of_a_fixed_mesh_is_kept_once_and_survives(tmp_path: Path) -> None:
    cases = [two_domains(case) for case in grid_cases(4)]
    path = write(tmp_path / "a.h5", cases)
    with h5py.File(path) as file:
        assert "shared/f_mask" in file
    for got, case in zip(lrsa.open_dataset(path), cases, strict=True):
        assert got.f_mask is not None
        assert case.f_mask is not None
        assert np.array_equal(got.f_mask, case.f_mask)
        part = got.strided(2).f_mask
        assert part is not None
        assert np.array_equal(part, got.f_mask[::2])
