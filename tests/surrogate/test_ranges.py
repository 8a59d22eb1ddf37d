"""The distance of a case from the training range."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet
from lrsa.surrogate.ranges import FILE, TOLERANCE, Ranges

NAMES = Names(("x", "y"), ("a", "b"), ("u",), ("Re",))


def case(seed: int, reynolds: float = 100.0, scale: float = 1.0, **others: np.ndarray) -> PointSet:
    rng = np.random.default_rng(seed)
    x, f = scale * rng.random((30, 2)), rng.normal(size=(30, 2))
    return PointSet(
        x.astype(np.float32),
        f.astype(np.float32),
        globals=np.array([reynolds]),
        names=NAMES,
        **others,  # pyright: ignore[reportArgumentType]
    )


TRAINED = [case(seed, 100.0 + 50 * seed) for seed in range(5)]
"""Re from 100 to 300."""


def test_no_training_case_is_outside() -> None:
    ranges = Ranges.of(TRAINED)
    for each in TRAINED:
        assert max(ranges.distances(each).values()) == 0
        assert ranges.warnings(each) == []


def test_the_distance_of_a_parameter_is_in_units_of_its_range() -> None:
    distances = Ranges.of(TRAINED).distances(case(0, 500.0))
    assert distances.pop("parameter Re") == 1.0
    assert set(distances.values()) == {0.0}
    assert Ranges.of(TRAINED).distances(case(0, 50.0))["parameter Re"] == 0.25


def test_the_warning_names_the_channel_the_numbers_and_the_worst_first() -> None:
    lines = Ranges.of(TRAINED).warnings(case(0, 350.0, scale=1000.0))
    assert len(lines) == 3
    assert "coordinate" in lines[0]
    assert lines[-1] == "parameter Re is 350, trained on 100 to 300: 0.25 ranges outside"


def test_a_hundredth_of_the_range_is_not_worth_a_warning() -> None:
    ranges = Ranges.of(TRAINED)
    assert not ranges.warnings(case(0, 300 + 200 * TOLERANCE * 0.99))
    assert ranges.warnings(case(0, 300 + 200 * TOLERANCE * 1.01))


@pytest.mark.parametrize(("constant", "unit"), [(0.0, 1.0), (-20.0, 20.0)])
def test_a_constant_channel_is_measured_by_its_value(constant: float, unit: float) -> None:
    ranges = Ranges.of([case(0, constant), case(1, constant)])
    assert ranges.distances(case(0, constant + 5.0))["parameter Re"] == pytest.approx(5.0 / unit)


def test_times_have_a_range_too() -> None:
    ranges = Ranges.of([case(0, times=np.array([0.0, 0.5, 1.0]))])
    assert ranges.distances(case(0, times=np.array([0.5, 2.0])))["time"] == 1.0
    assert ranges.distances(case(0, time=np.array(0.25)))["time"] == 0.0


@given(st.lists(st.integers(0, 4), min_size=1, unique=True), st.floats(-1e6, 1e6))
def test_more_training_cases_never_bring_a_case_further_out_in_absolute_terms(
    some: list[int], re: float
) -> None:
    few, all_ = Ranges.of([TRAINED[i] for i in some]), Ranges.of(TRAINED)
    for name, (low, high) in few.spans.items():
        assert all_.spans[name][0] <= low <= high <= all_.spans[name][1]
    new = case(7, re)
    inside = {name for name, d in few.distances(new).items() if d == 0}
    assert all(all_.distances(new)[name] == 0 for name in inside)


def test_ranges_survive_the_run_folder(tmp_path: Path) -> None:
    assert Ranges.load(tmp_path) is None
    ranges = Ranges.of(TRAINED)
    ranges.save(tmp_path)
    assert Ranges.load(tmp_path) == ranges


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"time": [1]}), json.dumps({"time": 3})])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(LrsaError, match=r"ranges[.]json is damaged"):
        Ranges.load(tmp_path)
