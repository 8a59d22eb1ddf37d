"""Symmetries: groups of maps of a case, that refuse what they do not fit."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from small import grid_cases, ragged_cases

from lrsa.data.symmetry import Symmetry, parse
from lrsa.errors import LrsaError
from lrsa.pointset import Names, PointSet

RNG = np.random.default_rng


def torus(side: int = 8) -> PointSet:
    """Random frames of two fields on a periodic grid."""
    x = np.stack(np.meshgrid(*[np.arange(side) / side] * 2, indexing="ij"), -1).reshape(-1, 2)
    u = RNG(0).standard_normal((3, len(x), 2))
    return PointSet(
        x, u=u, times=np.arange(3), grid=(side, side), names=Names(("x", "y"), targets=("w", "p"))
    )


def full(case: PointSet) -> PointSet:
    """With all that a point may have."""
    n, rng = len(case), RNG(1)
    return replace(
        case,
        u_mask=rng.random((n, 1)) < 0.5,
        weights=rng.random(n),
        surface=rng.random(n) < 0.5,
        globals=rng.random(2),
        names=replace(case.names, globals=("alpha", "mach")),
    )


def bent(rows: int = 6, columns: int = 5) -> PointSet:
    """A channel between bent walls, its first index along x, its second across."""
    i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    x = np.stack([2.0 * i, j - (columns - 1) / 2 + np.sin(i)], -1).reshape(-1, 2)
    return PointSet(x, u=RNG(0).random((len(x), 1)), grid=(rows, columns), names=Names(targets=("v",)))


def grid() -> PointSet:
    return full(grid_cases(1)[0])


def cloud() -> PointSet:
    return full(ragged_cases(1)[0])


CASES: list[tuple[str, Callable[[], PointSet]]] = [
    ("square", grid),
    ("square", cloud),
    ("mirror-x@0.3:alpha:@p,mirror-y:a", cloud),
    ("mirror-y@0:v", bent),
    ("torus-shift", torus),
    ("torus-wave:w", torus),
]


def assert_equal(ours: PointSet, theirs: PointSet) -> None:
    assert ours.arrays().keys() == theirs.arrays().keys()
    assert ours.grid == theirs.grid
    for name, value in theirs.arrays().items():
        np.testing.assert_allclose(ours.arrays()[name], value, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(("text", "make"), CASES)
def test_every_element_and_its_inverse_give_the_case_back(text: str, make: Callable[[], PointSet]) -> None:
    case = make()
    for element in Symmetry.of(text, [case]).elements(case):
        assert_equal(element.inverse()(element(case)), case)
        assert_equal(element(element.inverse()(case)), case)


@pytest.mark.parametrize(("text", "make"), CASES)
def test_two_elements_make_a_third(text: str, make: Callable[[], PointSet]) -> None:
    """The elements are different, and closed under composition."""

    def seen(case: PointSet) -> bytes:
        assert case.u is not None
        return (np.concatenate([case.x.ravel(), case.u.ravel()]).round(4) + 0.0).tobytes()

    case = make()
    elements = Symmetry.of(text, [case]).elements(case)
    images = {seen(element(case)) for element in elements}
    assert len(images) == len(elements)
    for one in elements[:: max(1, len(elements) // 8)]:
        assert {seen(other(one(case))) for other in elements} == images


@pytest.mark.parametrize("text", ["square", "torus-shift"])
def test_a_grid_that_is_its_own_image_keeps_its_points_and_what_moves_moves_together(text: str) -> None:
    case = replace(grid(), u=grid().f)
    for element in Symmetry.of(text, [case]).elements(case):
        moved = element(case)
        assert moved.x is case.x
        assert moved.f is not None
        np.testing.assert_array_equal(moved.f, moved.u)
        for name in ("u_mask", "weights", "surface"):
            assert Counter(moved.arrays()[name].ravel()) == Counter(case.arrays()[name].ravel())


def test_the_operator_that_has_a_symmetry_learns_from_moved_cases_what_it_learns_from_the_others() -> None:
    """u is f smoothed: the exact operator has no error on any image of a case."""
    side = 8
    k = np.arange(side)
    cosines = np.cos(np.pi * np.outer(k, k + 0.5) / side)
    damping = 1 / (1 + np.add.outer(k**2, k**2))

    def operator(f: np.ndarray) -> np.ndarray:
        modes = np.linalg.inv(cosines.T) @ f.reshape(side, side) @ np.linalg.inv(cosines)
        return (cosines.T @ (damping * modes) @ cosines).reshape(-1, 1)

    case = grid_cases(1)[0]
    for element in Symmetry.of("square", [case]).elements(case):
        moved = element(case)
        assert moved.f is not None
        assert moved.u is not None
        np.testing.assert_allclose(operator(moved.f), moved.u, atol=1e-5)


def test_a_mirrored_channel_is_numbered_from_the_same_wall() -> None:
    case = bent()
    moved = Symmetry.of("mirror-y@0", [case]).elements(case)[1](case)
    ours, theirs = (c.x.reshape(6, 5, 2) for c in (moved, case))
    np.testing.assert_array_equal(ours[..., 0], theirs[..., 0])
    np.testing.assert_allclose(ours[..., 1], -theirs[:, ::-1, 1])
    assert moved.u is not None
    assert case.u is not None
    np.testing.assert_array_equal(moved.u.reshape(6, 5), case.u.reshape(6, 5)[:, ::-1])


def test_what_is_named_changes_its_sign_and_places_are_mirrored() -> None:
    case = replace(cloud(), u=cloud().x[:, :1])
    moved = Symmetry.of("mirror-x@0.3:a:alpha:@p", [case]).elements(case)[1](case)
    assert moved.f is not None
    assert moved.globals is not None
    assert moved.u is not None
    assert case.f is not None
    assert case.globals is not None
    np.testing.assert_array_equal(moved.f, -case.f)
    np.testing.assert_array_equal(moved.globals, case.globals * [-1, 1])
    np.testing.assert_array_equal(moved.u[:, 0], moved.x[:, 0])
    np.testing.assert_allclose(moved.x[:, 0], 0.6 - case.x[:, 0], atol=1e-6)


def test_the_middle_is_that_of_all_cases() -> None:
    cases = ragged_cases(5)
    x = np.concatenate([case.x for case in cases])
    middle = Symmetry.of("mirror-y", cases).middle
    np.testing.assert_allclose(middle, (x.min(0) + x.max(0)) / 2, atol=1e-7)


def test_every_element_is_drawn_as_often() -> None:
    case = grid()
    symmetry, rng = Symmetry.of("square", [case]), RNG(0)
    drawn = Counter(symmetry.draw(case, rng) for _ in range(800))
    assert len(drawn) == 8
    assert min(drawn.values()) > 60


def test_without_a_name_nothing_happens() -> None:
    case = grid()
    assert Symmetry.of("", [case]).draw(case, RNG(0))(case) is case


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("miror-y", 'no symmetry "miror-y". Did you mean mirror-y?'),
        ("square,", 'no symmetry ""'),
        ("square:u", "square takes neither places nor fields"),
        ("swap@1", "swap takes no place"),
        ("torus-shift:w", "torus-shift takes no place and no such fields"),
        ("mirror-x@middle", "a mirror stands at a number, as in mirror-x@0.5"),
    ],
)
def test_what_is_no_symmetry_is_refused(text: str, words: str) -> None:
    with pytest.raises(LrsaError) as refused:
        parse(text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "make", "words"),
    [
        ("mirror-z", grid, "mirror-z needs 3 coordinates, and the case has 2"),
        (
            "mirror-y:mch",
            grid,
            'no field or parameter "mch". Did you mean mach? There are: a, p, alpha, mach',
        ),
        ("square", bent, "swap needs a square grid, and the case has one of 6 x 5"),
        ("torus-shift", cloud, "torus-shift needs a grid of two axes, and the case has no grid"),
        ("torus-shift", bent, "torus-shift needs an even grid along x and y"),
        ("torus-wave", lambda: torus(6), "a multiple of four points along each side"),
    ],
)
def test_a_case_that_a_symmetry_does_not_fit_is_refused(
    text: str, make: Callable[[], PointSet], words: str
) -> None:
    case = make()
    with pytest.raises(LrsaError) as refused:
        Symmetry.of(text, [case]).draw(case, RNG(0))
    assert words in str(refused.value)
