"""The metrics against their definitions, case by case and field by field."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrsa.objectives.metrics import DEFINITIONS, field_metrics, mean_of, relative_l2


def by_definition(p: np.ndarray, u: np.ndarray) -> dict[str, float]:
    """Of one field, with Python's exact sums."""
    pairs = list(zip(p.ravel().tolist(), u.ravel().tolist(), strict=True))
    error = math.fsum((a - b) ** 2 for a, b in pairs)
    mean = math.fsum(b for _, b in pairs) / len(pairs)
    return {
        "relative_l2": math.sqrt(error / math.fsum(b**2 for _, b in pairs)),
        "mse": error / len(pairs),
        "max_error": max(abs(a - b) for a, b in pairs),
        "r2": 1 - error / math.fsum((b - mean) ** 2 for _, b in pairs),
    }


def fields(seed: int, *shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p, u = rng.standard_normal((2, *shape)).astype(np.float32) + np.float32(2)
    known = rng.random(shape[-2:]) < 0.7
    known[:2] = True  # a field of one value has no spread
    return p, u, known


@given(seed=st.integers(0, 99), frames=st.sampled_from([(), (4,)]), masked=st.booleans())
def test_each_metric_is_its_definition(seed: int, frames: tuple[int, ...], masked: bool) -> None:
    p, u, known = fields(seed, *frames, 9, 3)
    mask = known if masked else None
    every = np.broadcast_to(known if masked else True, u.shape)
    got = field_metrics(p, u, mask)
    assert got.keys() == DEFINITIONS.keys()
    for channel in range(3):
        kept = every[..., channel]
        expected = by_definition(p[..., channel][kept], u[..., channel][kept])
        for name, value in expected.items():
            assert got[name][channel] == pytest.approx(value, rel=1e-9), name
    assert relative_l2(p, u, mask) == pytest.approx(
        by_definition(p[every], u[every])["relative_l2"], rel=1e-9
    )


def test_values_that_are_not_known_do_not_count() -> None:
    p, u, known = fields(0, 9, 3)
    other = np.where(known, p, np.nan)
    truth = np.where(known, u, np.inf)
    for name, values in field_metrics(other, truth, known).items():
        assert np.array_equal(values, field_metrics(p, u, known)[name])


def test_the_perfect_the_mean_and_the_zero_prediction() -> None:
    _, u, _ = fields(0, 9, 2)
    u = u.astype(float)
    perfect = field_metrics(u, u)
    assert not any(perfect[name].any() for name in ("relative_l2", "mse", "max_error"))
    assert (perfect["r2"] == 1).all()
    np.testing.assert_allclose(field_metrics(np.broadcast_to(u.mean(0), u.shape), u)["r2"], 0, atol=1e-12)
    np.testing.assert_allclose(field_metrics(np.zeros_like(u), u)["relative_l2"], 1)


@given(value=st.floats(-1e6, 1e6), count=st.integers(1, 50))
def test_a_constant_field_has_no_r2_and_a_zero_one_no_relative_error(value: float, count: int) -> None:
    """The rounding of its mean is no spread."""
    truth = np.full((count, 1), value)
    got = field_metrics(truth + 1, truth)
    assert np.isnan(got["r2"]).all()
    assert np.isnan(got["relative_l2"]).all() == (not np.square(truth).any())
    assert np.isfinite(got["mse"]).all()


def test_a_field_that_is_nowhere_known_has_no_error() -> None:
    _, u, _ = fields(0, 9, 2)
    got = field_metrics(u, u, np.zeros((9, 2), bool))
    assert np.isnan(got["relative_l2"]).all()
    assert np.isnan(relative_l2(u, u, np.zeros((9, 2), bool)))
    assert not got["max_error"].any()


def test_the_mean_over_cases_leaves_out_those_without_an_error() -> None:
    assert mean_of([1.0, float("nan"), 3.0]) == 2.0
    assert math.isnan(mean_of([float("nan")]))
