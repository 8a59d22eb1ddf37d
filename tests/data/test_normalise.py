"""Normalisation: the statistics are numpy's over all points, and the maps are what they say."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import OPTIONAL, case_lists, make_case
from hypothesis import given
from hypothesis import strategies as st

from lrsa.data.normalise import Moments, Normaliser, StatisticsOf
from lrsa.data.store import Selection
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet

UNITS = (1e-15, 1.0, 1e12)


def normaliser(cases: list[PointSet], history: int = 0, of: StatisticsOf = "channel") -> Normaliser:
    return Normaliser.of(Selection(cases, range(len(cases))), history, of=of)


def statistics(values: np.ndarray, constant: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of each column; that of a constant one counts as `constant`."""
    deviation = values.std(0)
    return values.mean(0), np.where(deviation > 1e-8 * np.abs(values.mean(0)), deviation, constant)


def assert_close(actual: torch.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-6)


@given(cases=case_lists(sorted(set(OPTIONAL) - {"u_mask", "f_mask"})))
def test_the_statistics_are_those_of_all_points_of_all_cases(cases: list[PointSet]) -> None:
    made = normaliser(cases)
    every = [case.arrays() for case in cases]
    columns = {"u": np.concatenate([a["u"].reshape(-1, 2) for a in every]).astype(float)}
    if cases[0].f is not None:
        columns["f"] = np.concatenate([a["f"] for a in every]).astype(float)
    if cases[0].globals is not None:
        columns["g"] = np.stack([a["globals"] for a in every]).astype(float)
    for name in ("f", "g", "u"):
        shift, scale = getattr(made, f"{name}_shift"), getattr(made, f"{name}_scale")
        if name not in columns:
            assert len(shift) == len(scale) == 0
            continue
        mean, deviation = statistics(columns[name], constant=0.0 if name == "u" else 1.0)
        assert_close(shift, mean)
        assert_close(scale, deviation)


@given(cases=case_lists({"times", "weights"}), seed=st.integers(0, 99))
def test_targets_that_are_not_known_do_not_count(cases: list[PointSet], seed: int) -> None:
    """They hold a number that would show."""
    rng, masked, known = np.random.default_rng(seed), [], [[], []]
    for case in cases:
        mask, u = rng.random((len(case), 2)) < 0.6, case.arrays()["u"].copy()
        u[..., ~mask] = 1e6
        masked.append(replace(case, u=u, u_mask=mask))
        for channel in range(2):
            known[channel].append(u[..., mask[:, channel], channel].ravel())
    made = normaliser(masked)
    for channel in range(2):
        values = np.concatenate(known[channel])[:, None].astype(float)
        mean, deviation = statistics(values, constant=0.0) if len(values) else (np.zeros(1), np.zeros(1))
        assert_close(made.u_shift[channel : channel + 1], mean)
        assert_close(made.u_scale[channel : channel + 1], deviation)


@given(cases=case_lists({"f", "f_mask", "times"}), seed=st.integers(0, 99))
def test_inputs_that_are_not_known_do_not_count_and_enter_as_the_mean(
    cases: list[PointSet], seed: int
) -> None:
    """Whatever is stored there: the statistics are those of the known ones, and the network sees 0."""
    rng = np.random.default_rng(seed)
    made = normaliser(cases)
    if cases[0].f is None or cases[0].f_mask is None:
        assert made.filled(cases[0]) is cases[0]
        return
    others = [changed_where_unknown(case, rng) for case in cases]
    assert all(torch.equal(a, b) for a, b in zip(made.buffers(), normaliser(others).buffers(), strict=True))
    for channel in range(2):
        known = [case.arrays()["f"][case.arrays()["f_mask"][:, channel], channel] for case in cases]
        values = np.concatenate(known)[:, None].astype(float)
        mean, deviation = statistics(values, constant=1.0) if len(values) else (np.zeros(1), np.ones(1))
        assert_close(made.f_shift[channel : channel + 1], mean)
        assert_close(made.f_scale[channel : channel + 1], deviation)
    for case, other in zip(cases, others, strict=True):
        mask, f = torch.from_numpy(case.arrays()["f_mask"]), torch.from_numpy(case.arrays()["f"])
        x = torch.from_numpy(case.x)
        seen, true = (made.features(x, g) for g in (torch.from_numpy(made.filled(other).arrays()["f"]), f))
        assert seen is not None
        assert true is not None
        assert not seen[~mask].any()
        assert torch.equal(seen[mask], true[mask])


def changed_where_unknown(case: PointSet, rng: np.random.Generator) -> PointSet:
    arrays = case.arrays()
    noise = rng.normal(0, 1e3, arrays["f"].shape).astype(np.float32)
    return replace(case, f=np.where(arrays["f_mask"], arrays["f"], noise))


@given(
    cases=case_lists({"f", "f_mask", "times", "u_mask"}, ragged=False),
    history=st.integers(0, 2),
)
def test_statistics_of_each_point_are_those_of_the_cases_at_it(cases: list[PointSet], history: int) -> None:
    made = normaliser(cases, history, "point")
    every, n = [case.arrays() for case in cases], len(cases[0])
    assert made.points == n
    u = np.stack([np.broadcast_to(a["u"], (3, n, 2)) for a in every]).reshape(-1, n, 2).astype(float)
    known = np.repeat([a.get("u_mask", np.ones((n, 2), bool)) for a in every], 3, axis=0)
    masked = np.ma.masked_array(u, ~known)
    assert_close(made.u_shift, masked.mean(0).filled(0))
    some = masked.std(0).filled(0)
    np.testing.assert_allclose(made.u_scale.numpy(), some, rtol=1e-4, atol=2e-6)
    again = Normaliser.holding(made.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(made.buffers(), again.buffers(), strict=True))
    if cases[0].f is not None:
        f = np.ma.masked_array(
            np.stack([a["f"] for a in every]).astype(float),
            ~np.stack([a.get("f_mask", np.ones((n, 2), bool)) for a in every]),
        )
        assert made.f_shift.shape == (n, 2 + 2 * history)
        assert_close(made.f_shift[:, :2], f.mean(0).filled(0))


def test_statistics_of_each_point_hold_for_that_mesh_alone() -> None:
    made = normaliser([make_case(i, 5) for i in range(3)], of="point")
    five, six = torch.zeros(2, 5, 2), torch.zeros(1, 6, 2)
    seen = made.features(five, five)
    assert seen is not None
    assert seen.shape == made.targets(five).shape
    refused = "statistics of each of 5 points and holds for that mesh alone, but 6"
    with pytest.raises(LrsaError, match=refused):
        made.features(six, six)
    with pytest.raises(LrsaError, match=refused):
        made.targets(six)
    with pytest.raises(LrsaError, match="one mesh for all cases, and they have 5 and 6"):
        normaliser([make_case(0, 5), make_case(1, 6)], of="point")


def test_moments_keep_their_digits_where_the_mean_is_large() -> None:
    """Deviation 1e-3 around 1e4, where the sum of squares would have lost all of it."""
    rng = np.random.default_rng(0)
    parts = [1e4 + 1e-3 * rng.standard_normal((n, 1)) for n in (1, 500, 20, 3000)]
    moments = Moments()
    for part in parts:
        moments.add(part)
    mean, deviation = moments.shift_scale()
    whole = np.concatenate(parts)
    assert abs(mean[0] - whole.mean()) < 1e-11
    assert abs(deviation[0] / whole.std() - 1) < 1e-6


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-12, 101325.7], ids=str)
@pytest.mark.parametrize("sizes", [(1,), (3, 10, 7)], ids=str)
def test_a_constant_channel_keeps_its_scale(value: float, sizes: tuple[int, ...]) -> None:
    moments = Moments()
    for n in sizes:
        moments.add(np.full((n, 1), value, np.float32))
    assert moments.shift_scale()[1] == 1


@pytest.mark.parametrize("unit", UNITS)
def test_units_do_not_matter(unit: float) -> None:
    """A permeability of 1e-15 m² is no constant, nor is a mesh of 1e-15 m a point."""
    cases = [make_case(i, 9) for i in range(3)]
    scaled = [
        replace(c, x=unit * c.x, f=unit * c.arrays()["f"], u=unit * c.arrays()["u"], globals=np.ones(1))
        for c in cases
    ]
    plain, other = normaliser(cases), normaliser(scaled)
    x, f = torch.from_numpy(cases[0].x), torch.from_numpy(cases[0].arrays()["f"])
    torch.testing.assert_close(other.coordinates(unit * x), plain.coordinates(x))
    torch.testing.assert_close(other.features(unit * x, unit * f), plain.features(x, f))
    torch.testing.assert_close(other.targets(f) / unit, plain.targets(f))


def angles(x: torch.Tensor) -> torch.Tensor:
    """The cosine of the angle at each point between those that come next."""
    a, b = x.roll(-1, 0) - x, x.roll(-2, 0) - x
    return torch.nn.functional.cosine_similarity(a.double(), b.double(), dim=-1)


@given(seed=st.integers(0, 99), width=st.floats(0.01, 100), move=st.floats(-10, 10))
def test_the_coordinate_map_keeps_shapes_and_fills_the_unit_box(seed: int, width: float, move: float) -> None:
    cases = [make_case(seed + i, 8 + i) for i in range(3)]
    cases = [replace(case, x=(case.x * [1, width] + move).astype(np.float32)) for case in cases]
    made = normaliser(cases)
    mapped = [made.coordinates(torch.from_numpy(case.x)) for case in cases]
    for case, y in zip(cases, mapped, strict=True):
        torch.testing.assert_close(angles(y), angles(torch.from_numpy(case.x)), rtol=0, atol=2e-3)
    every = torch.cat(mapped)
    low, high = every.amin(0), every.amax(0)
    assert float(high.max()) == pytest.approx(1, abs=1e-3)
    torch.testing.assert_close(low, -high, rtol=0, atol=1e-3)
    assert made.x_scale.unique().numel() == 1


def test_other_coordinate_maps_are_what_they_say() -> None:
    x = np.random.default_rng(0).uniform([0, -3], [10, 1], (50, 2)).astype(np.float32)
    cases, points = Selection([make_case(0, 50, x=x)], [0]), torch.from_numpy(x)
    assert torch.equal(Normaliser.of(cases, coordinates="raw").coordinates(points), points)
    each = Normaliser.of(cases, coordinates="axis").coordinates(points).numpy()
    assert np.allclose(each.mean(0), 0, atol=1e-5)
    assert np.allclose(each.std(0), 1, rtol=1e-5)


@pytest.mark.parametrize("plane", [0.0, 1.0, -1e6, 1e-7], ids=str)
def test_an_axis_on_which_all_points_agree_is_dropped(plane: float) -> None:
    cases = [make_case(i, 6) for i in range(3)]
    flat = [replace(c, x=np.insert(c.x, 1, np.float32(plane), axis=1)) for c in cases]
    made = normaliser(flat)
    assert made.x_axes.tolist() == [0, 2]
    assert made.coordinates(torch.from_numpy(flat[0].x)).shape == (6, 2)
    far = [replace(c, x=c.x * [1, 1e-3] + [1e6, 0]) for c in cases]
    assert normaliser(far).x_axes.tolist() == [0, 1]
    different = [replace(c, x=np.insert(c.x, 1, np.float32(i), axis=1)) for i, c in enumerate(cases)]
    assert normaliser(different).x_axes.tolist() == [0, 1, 2]


def test_frames_of_the_history_are_features_scaled_as_targets() -> None:
    cases = [make_case(i, 6, ["f", "times"]) for i in range(3)]
    made = normaliser(cases, history=2)
    assert len(made.f_shift) == 2 + 2 * 2
    u = torch.from_numpy(cases[0].arrays()["u"])  # (T, N, o)
    f = torch.from_numpy(cases[0].arrays()["f"])
    window = torch.cat([f, u[0], u[1]], dim=-1)
    scaled = made.features(torch.from_numpy(cases[0].x), window)
    assert scaled is not None
    torch.testing.assert_close(scaled[:, 2:4], (u[0] - made.u_shift) / made.u_scale)
    torch.testing.assert_close(scaled[:, 4:6], (u[1] - made.u_shift) / made.u_scale)
    torch.testing.assert_close(made.targets(scaled[:, 4:6]), u[1])


@given(cases=case_lists({"globals", "f"}))
def test_normalised_data_has_mean_zero_and_deviation_one_and_targets_go_back(cases: list[PointSet]) -> None:
    cases = [make_case(99, 9, cases[0].arrays()), *cases]
    made = normaliser(cases)
    u = torch.cat([torch.from_numpy(case.arrays()["u"]) for case in cases])
    normalised = (u - made.u_shift) / made.u_scale
    torch.testing.assert_close(normalised.mean(0), torch.zeros(2), rtol=0, atol=1e-5)
    torch.testing.assert_close(normalised.std(0, correction=0), torch.ones(2), rtol=1e-5, atol=0)
    torch.testing.assert_close(made.targets(normalised), u)


def test_statistics_are_loaded_with_the_weights() -> None:
    made = normaliser([make_case(i, 6, ["f", "globals"]) for i in range(3)])
    empty = Normaliser(2, 2, 1, 2, 2)
    empty.load_state_dict(made.state_dict())
    x = torch.rand(1, 5, 2)
    assert torch.equal(empty.coordinates(x), made.coordinates(x))


def test_a_case_that_is_not_finite_is_named() -> None:
    cases = [make_case(i, 4) for i in range(4)]
    cases[2].arrays()["f"][1, 0] = np.nan
    with pytest.raises(LrsaError, match=r"^case 2 has NaN in input a"):
        Normaliser.of(Selection(cases, [3, 2]))


@pytest.mark.parametrize("unit", UNITS)
def test_training_times_become_zero_to_one_whatever_their_unit(unit: float) -> None:
    times = unit * np.array([2.0, 3.0, 6.0])
    case = PointSet(np.eye(5, 2), u=np.ones((3, 5, 1)), times=times)
    mapped = normaliser([case]).time(torch.from_numpy(times.astype(np.float32)))
    assert_close(mapped, np.array([0.0, 0.25, 1.0]))
