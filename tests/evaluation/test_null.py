"""Null baselines: exact where they can be, of the right shape everywhere, and blind to units and unknowns."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import make_case
from hypothesis import given
from hypothesis import strategies as st

from lrsa.evaluation.null import NullBaselines
from lrsa.objectives.protocols import Autoregressive, Protocol, Static, TimeConditioned
from lrsa.pointset import PointSet, corresponding

FRAMES = 13


def static(seed: int, points: int, **more: Any) -> PointSet:
    return make_case(seed, points, ["f"], **more)


def framed(seed: int, points: int, **more: Any) -> PointSet:
    u = np.random.default_rng(seed).standard_normal((FRAMES, points, 2)).astype(np.float32)
    return make_case(seed, points, ["f"], **{"u": u, "times": np.linspace(0, 1, FRAMES), **more})


KINDS: dict[str, tuple[Protocol, Callable[..., PointSet]]] = {
    "static": (Static(), static),
    "autoregressive": (Autoregressive(), framed),
    "time-conditioned": (TimeConditioned(), framed),
}
kinds = pytest.mark.parametrize(("how", "make"), KINDS.values(), ids=KINDS.keys())


def target(how: Protocol, case: PointSet) -> np.ndarray:
    return case.arrays()["u"][how.history :] if case.times is not None else case.arrays()["u"]


@kinds
def test_the_mean_field_is_the_mean_of_the_training_cases(
    how: Protocol, make: Callable[..., PointSet]
) -> None:
    cases = [make(i, 6) for i in range(5)]
    predicted = NullBaselines(cases[:4], how, fixed=True).predictions(cases[4])["mean field"]
    expected = np.mean([target(how, case).astype(float) for case in cases[:4]], axis=0)
    np.testing.assert_allclose(predicted, expected, atol=1e-12)


@kinds
def test_identical_cases_are_predicted_exactly(how: Protocol, make: Callable[..., PointSet]) -> None:
    cases = [make(3, 6)] * 3
    errors = NullBaselines(cases, how, fixed=True).errors(cases)
    assert {"mean field", "nearest case"} <= errors.keys()
    for name, values in errors.items():
        assert values.shape == (3,)
        assert values.max() < 1e-6 or name == "last frame"


@kinds
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed points", "ragged"])
def test_the_nearest_case_of_a_training_case_is_itself(
    how: Protocol, make: Callable[..., PointSet], fixed: bool
) -> None:
    cases = [make(i, 6 if fixed else 5 + i) for i in range(6)]
    nulls = NullBaselines(cases, how, fixed)
    assert not nulls.errors(cases)["nearest case"].any()


@kinds
def test_ragged_cases_get_one_number_per_field_and_values_of_the_nearest_points(
    how: Protocol, make: Callable[..., PointSet]
) -> None:
    cases = [make(i, 5 + i) for i in range(4)]
    nulls, case = NullBaselines(cases[:3], how, fixed=False), cases[3]
    got = nulls.predictions(case)
    level = np.mean([target(how, c).astype(float).mean(-2, keepdims=True) for c in cases[:3]], axis=0)
    np.testing.assert_allclose(got["mean field"], np.broadcast_to(level, target(how, case).shape))
    candidates = []
    for other in cases[:3]:
        distance = np.linalg.norm(case.x[:, None] - other.x[None], axis=-1)
        candidates.append(target(how, other)[..., distance.argmin(1), :])
    assert any(np.array_equal(got["nearest case"], candidate) for candidate in candidates)


@pytest.mark.parametrize("unit", [1e-14, 1.0, 1e9])
def test_the_nearest_case_is_nearest_in_all_inputs_whatever_their_units(unit: float) -> None:
    """By brute force, with every input scaled to deviation 1."""
    cases = [static(i, 6, globals=np.random.default_rng(i).random(2)) for i in range(8)]

    def vector(case: PointSet) -> np.ndarray:
        return np.concatenate([case.arrays()[name].astype(float).ravel() for name in ("globals", "x", "f")])

    table = np.stack([vector(case) for case in cases])
    scaled = (table - table[:7].mean(0)) / table[:7].std(0)
    expected = int(np.linalg.norm(scaled[:7] - scaled[7], axis=1).argmin())
    small = [
        replace(
            c,
            x=unit * c.x.astype(float),
            f=unit * c.arrays()["f"].astype(float),
            globals=unit * c.arrays()["globals"],
        )
        for c in cases
    ]
    got = NullBaselines(small[:7], Static(), fixed=True).predictions(small[7])["nearest case"]
    assert np.array_equal(got, cases[expected].arrays()["u"])


def test_the_roll_out_is_near_where_its_first_frames_are_near() -> None:
    """The same x and f: only the history tells the cases apart."""
    cases = [framed(i, 6, x=np.zeros((6, 2)), f=None) for i in range(5)]
    u = cases[3].arrays()["u"].copy()
    u[:10] += 1e-3
    nulls = NullBaselines(cases, Autoregressive(), fixed=True)
    got = nulls.predictions(replace(cases[3], u=u))["nearest case"]
    assert np.array_equal(got, cases[3].arrays()["u"][10:])


def test_parameters_alone_decide_where_nothing_else_differs() -> None:
    cases = [static(i, 6, x=np.ones((6, 2)), f=None, globals=np.array([float(i)])) for i in range(5)]
    query = static(9, 6, x=np.ones((6, 2)), f=None, globals=np.array([2.2]))
    got = NullBaselines(cases, Static(), fixed=True).predictions(query)["nearest case"]
    assert np.array_equal(got, cases[2].arrays()["u"])


@given(seed=st.integers(0, 99), fixed=st.booleans())
def test_targets_that_are_not_known_change_nothing(seed: int, fixed: bool) -> None:
    """They hold a number that would show."""
    rng = np.random.default_rng(seed)
    mask = rng.random((9, 2)) < 0.7
    mask[0] = True
    cases, spoilt = [], []
    for i in range(4):
        n = 9 if fixed else 6 + i
        case = static(seed + i, n, u_mask=mask[:n])
        cases.append(case)
        spoilt.append(replace(case, u=np.where(mask[:n], case.arrays()["u"], 1e6)))
    plain, other = (NullBaselines(c[:3], Static(), fixed).errors(c) for c in (cases, spoilt))
    for name, errors in plain.items():
        np.testing.assert_allclose(other[name], errors, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("fixed", [True, False])
def test_linear_regression_is_exact_for_fields_linear_in_the_parameters(fixed: bool) -> None:
    """Where points differ, for the level of the field. A parameter that never changes does no harm."""
    rng = np.random.default_rng(0)
    field = rng.standard_normal((3, 6, 2)) if fixed else rng.standard_normal((3, 1, 2))
    cases = []
    for i in range(8):
        g = np.array([*rng.standard_normal(2), 0.1])
        u = np.tensordot(np.array([1.0, *g[:2]]), field, 1)
        cases.append(static(i, 6, globals=g, u=np.broadcast_to(u, (6, 2))))
    errors = NullBaselines(cases[:6], Static(), fixed).errors(cases)
    assert errors["linear regression"].max() < 1e-10
    assert errors["mean field"].min() > 1e-3
    assert "linear regression" not in NullBaselines([static(0, 6)], Static(), fixed).errors([static(1, 6)])


def test_points_correspond_where_size_mesh_and_mask_are_the_same() -> None:
    cells, mask = np.array([[0, 1, 2], [3, 4, 5]]), np.ones((6, 2), bool)
    one = static(0, 6, cells=cells, u_mask=mask)
    assert corresponding([one, static(1, 6, cells=cells.copy(), u_mask=mask.copy())])
    assert not corresponding([one, static(1, 6, cells=cells[:, ::-1], u_mask=mask)])
    assert not corresponding([one, static(1, 6, cells=cells, u_mask=~mask)])
    assert not corresponding([static(0, 6), static(1, 7)])


def test_points_beside_a_mesh_correspond_where_they_are_at_the_same_places() -> None:
    """The surface of a body is one mesh for all cases, the points around it are random."""
    cells = np.array([[0, 1, 2, -1]])
    one, two = static(0, 6, cells=cells), static(1, 6, cells=cells)
    assert not corresponding([one, two])
    assert corresponding([one, replace(two, x=np.concatenate([two.x[:3], one.x[3:]]))])


def test_points_that_lie_anywhere_are_not_fitted() -> None:
    """Their number alone does not make them the same points; that they stay or have one mesh does."""
    rng, cells = np.random.default_rng(0), np.array([[0, 1, 2]])
    places = rng.random((30, 2))

    def fitted(cases: list[PointSet]) -> bool:
        return "POD regression" in NullBaselines(cases[:4], Static(), fixed=True).predictions(cases[4])

    assert not fitted([static(i, 30) for i in range(5)])
    assert fitted([static(i, 30, cells=cells) for i in range(5)])
    assert fitted([static(i, 30, x=places + 0.01 * rng.random((30, 2))) for i in range(5)])
