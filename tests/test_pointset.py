"""The one sample type: what fits together, what is refused and in which words, parts of a case."""

from typing import Any

import numpy as np
import pytest
import torch
from cases import NAMES, OPTIONAL, make_case
from hypothesis import given
from hypothesis import strategies as st

from lrsa.errors import LrsaError
from lrsa.pointset import PointSet, cell_types_of


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("x", np.zeros(5)),
        ("f", np.zeros((4, 2))),
        ("f", np.zeros(5)),
        ("u", np.zeros((3, 5, 1))),
        ("u_mask", np.ones((4, 2), bool)),
        ("f_mask", np.ones((5, 2), bool)),  # without f
        ("weights", np.ones((5, 1))),
        ("surface", np.ones(4, bool)),
        ("cells", np.zeros(3, int)),
        ("cell_types", np.zeros(3, int)),
        ("globals", np.zeros((1, 2))),
        ("times", np.asarray(0.0)),
        ("time", np.zeros(2)),
    ],
)
def test_a_field_of_another_shape_is_refused_by_name(field: str, value: np.ndarray) -> None:
    with pytest.raises(LrsaError, match=f"^{field} "):
        make_case(0, 5, (), **{field: value})


@pytest.mark.parametrize("mask", [np.ones((5, 1), bool), np.ones((5, 2)), np.ones((4, 2), bool)])
def test_a_mask_of_inputs_has_their_shape_and_is_of_bool(mask: np.ndarray) -> None:
    with pytest.raises(LrsaError, match=r"^f_mask "):
        make_case(0, 5, ["f"], f_mask=mask)


def test_frames_need_as_many_fields_as_times() -> None:
    with pytest.raises(LrsaError, match=r"^u has shape \(4, 5, 2\); it should be \(3, 5, any\)"):
        make_case(0, 5, ["times"], u=np.zeros((4, 5, 2)))


def test_a_grid_has_as_many_points_as_the_case() -> None:
    assert make_case(0, 6, grid=(2, 3)).grid == (2, 3)
    with pytest.raises(LrsaError, match="6 points, but x has 5"):
        make_case(0, 5, grid=(2, 3))


@pytest.mark.parametrize("convert", [list, np.asarray, torch.tensor], ids=["list", "numpy", "torch"])
def test_whatever_turns_into_an_array_is_one_and_is_kept(convert: Any) -> None:
    """What stays no array is forgotten by `arrays`, and never reaches a file."""
    case = PointSet(convert([[0.0, 1.0]]), u=convert([[1.0]]), time=0.5, grid=[1, 1])  # type: ignore[arg-type]
    assert case.arrays().keys() == {"x", "u", "time"}
    assert all(type(value) is np.ndarray for value in case.arrays().values())
    assert case.grid == (1, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39], ids=str)
@pytest.mark.parametrize("frames", [(), ("times",)], ids=["one frame", "frames"])
@pytest.mark.parametrize(
    ("field", "words"),
    [("x", "coordinate y"), ("f", "input b"), ("u", "target T"), ("weights", "weights"), ("time", "time")],
)
def test_what_is_not_finite_is_refused_with_its_name(
    bad: float, frames: tuple[str, ...], field: str, words: str
) -> None:
    """1e39 is finite in double precision, but not in the single precision of the store."""
    case = make_case(0, 5, ["f", "weights", "time", *frames])
    value = case.arrays()[field].astype(float)
    value[(..., -1) if value.ndim else ()] = bad
    if field == "weights":
        value[-1] = np.abs(bad)
    case = make_case(0, 5, ["f", "weights", "time", *frames], **{field: value})
    with pytest.raises(LrsaError, match=f"^case 7 has (NaN|infinite values) in {words}. Remove"):
        case.check_finite("case 7")


def test_a_global_parameter_that_is_not_finite_is_named() -> None:
    with pytest.raises(LrsaError, match="NaN in parameter Re"):
        make_case(0, 5, globals=np.array([np.nan])).check_finite("it")


@pytest.mark.parametrize("weights", [np.zeros(5), np.array([1.0, 1, 1, 1, -1])], ids=["zero", "negative"])
def test_weights_that_are_no_measure_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(LrsaError, match="negative or all zero"):
        make_case(0, 5, weights=weights).check_finite("it")


@pytest.mark.parametrize("fields", [(), ("weights",)])
def test_a_case_without_points_is_refused(fields: tuple[str, ...]) -> None:
    with pytest.raises(LrsaError, match="no points"):
        make_case(0, 0, fields, cells=None).check_finite("it")


def test_a_frame_is_one_field_and_its_time() -> None:
    case = make_case(0, 5, ["f", "times"])
    for i in range(3):
        frame = case.frame(i)
        assert frame.times is None
        assert np.array_equal(frame.arrays()["u"], case.arrays()["u"][i])
        assert frame.time == case.arrays()["times"][i]
        assert frame.names == NAMES


@given(rows=st.integers(1, 7), columns=st.integers(1, 7), stride=st.integers(1, 4), framed=st.booleans())
def test_a_stride_keeps_the_same_subgrid_of_every_field(
    rows: int, columns: int, stride: int, framed: bool
) -> None:
    fields = [f for f in OPTIONAL if framed or f != "times"]
    case = make_case(1, rows * columns, fields, grid=(rows, columns))
    part = case.strided(stride)
    assert part.grid == (-(-rows // stride), -(-columns // stride))
    for name in ("x", "f", "u_mask", "weights", "surface"):
        value = case.arrays()[name]
        kept = value.reshape(rows, columns, *value.shape[1:])[::stride, ::stride]
        assert np.array_equal(part.arrays()[name], kept.reshape(-1, *value.shape[1:])), name
    u = case.arrays()["u"]
    kept = u.reshape(*u.shape[:-2], rows, columns, 2)[..., ::stride, ::stride, :]
    assert np.array_equal(part.arrays()["u"], kept.reshape(*u.shape[:-2], -1, 2))
    assert (part.cells is None) == (part.cell_types is None) == (stride > 1)


def test_without_a_grid_a_stride_goes_along_the_list() -> None:
    case = make_case(0, 7)
    part = case.strided(3)
    assert part.grid is None
    assert np.array_equal(part.x, case.x[::3])


@given(seed=st.integers(0, 99))
def test_a_subset_takes_all_fields_of_a_point_along(seed: int) -> None:
    case = make_case(seed, 8, OPTIONAL)
    index = np.random.default_rng(seed).permutation(8)
    back = case.subset(index).subset(np.argsort(index))
    for name in ("x", "f", "u", "u_mask", "weights", "surface"):
        assert np.array_equal(back.arrays()[name], case.arrays()[name])
    assert back.globals is case.globals


PLANE = np.random.default_rng(0).random((30, 2))
SPACE = np.random.default_rng(0).random((30, 3))
BENT = np.c_[PLANE, 0.01 * np.sin(PLANE[:, 0])]


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (PLANE, {1: 1, 2: 3, 3: 5, 4: 9, 5: 7, 6: 7, 8: 7, 10: 7}),
        (np.c_[PLANE, np.ones(30)], {1: 1, 2: 3, 3: 5, 4: 9, 5: 7, 6: 7, 8: 7, 10: 7}),
        (BENT, {3: 5, 4: 9, 5: 14, 6: 13, 8: 12}),
        (SPACE, {3: 5, 4: 10, 5: 14, 6: 13, 7: 255, 8: 12, 10: 24, 13: 27, 15: 26, 20: 25, 27: 29}),
    ],
    ids=["plane", "plane in space", "surface", "space"],
)
def test_cells_without_types_get_them_by_their_numbers_of_points(
    x: np.ndarray, expected: dict[int, int]
) -> None:
    """The one place where types are guessed: when a case is made of arrays that do not say them."""
    cells = np.array([[*range(count), *[-1] * (27 - count)] for count in expected])
    assert PointSet(x, cells=cells).arrays()["cell_types"].tolist() == list(expected.values())
    for count, kind in expected.items():
        assert cell_types_of(x, np.tile(np.arange(count), (3, 1))).tolist() == [kind] * 3


def test_types_that_are_given_are_kept() -> None:
    cells = np.array([[0, 1, 2, 3], [0, 1, 2, -1]])
    case = PointSet(PLANE, cells=cells, cell_types=[10, 22])  # type: ignore[arg-type]
    assert case.arrays()["cell_types"].dtype == np.uint8
    assert case.arrays()["cell_types"].tolist() == [10, 22]
    for bad in ([256, 5], [-1, 5], [0.5, 5], [np.nan, 5]):
        with pytest.raises(LrsaError, match="cell_types must be VTK's"):
            PointSet(PLANE, cells=cells, cell_types=np.array(bad))
    with pytest.raises(LrsaError, match="without cells"):
        PointSet(PLANE, cell_types=np.array([5, 5]))
    with pytest.raises(LrsaError, match="cells name points from 0 to 30, but there are 30"):
        PointSet(PLANE, cells=np.array([[0, 1, 30]]))
