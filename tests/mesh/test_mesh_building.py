"""From files to cases: measures, surfaces, normals and distances with known answers; channels and masks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrsa.errors import LrsaError
from lrsa.geometry.distances import distance_to
from lrsa.mesh.building import Problems, build_case
from lrsa.mesh.derive import Geometry
from lrsa.mesh.roles import RawCase, Roles

PATH = Path("case.vtu")
CUBE = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)], float)
HEXAHEDRON = [0, 1, 3, 2, 4, 5, 7, 6]
SPLITS: dict[str, list[tuple[int, list[int]]]] = {
    "hexahedron": [(12, HEXAHEDRON)],
    "wedges": [(13, [0, 2, 1, 4, 6, 5]), (13, [1, 2, 3, 5, 6, 7])],
    "tetrahedra": [
        (10, t) for t in ([0, 1, 3, 7], [0, 1, 5, 7], [0, 4, 5, 7], [0, 4, 6, 7], [0, 2, 6, 7], [0, 2, 3, 7])
    ],
    "pyramids": [
        (14, [*face, 8])
        for face in ([0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5])
    ],
}


def raw_of(points: Any, cells: list[tuple[int, list[int]]], **data: Any) -> RawCase:
    width = max(len(cell) for _, cell in cells)
    filled = np.array([[*cell, *[-1] * (width - len(cell))] for _, cell in cells])
    return RawCase(
        PATH, np.asarray(points, float), cells=filled, cell_types=np.array([t for t, _ in cells]), **data
    )


def square(n: int, warp: bool = False, quads: bool = False) -> RawCase:
    """The unit square in n × n pieces, its inner points moved at random if wanted."""
    side = np.linspace(0, 1, n + 1)
    points = np.stack([*np.meshgrid(side, side, indexing="ij"), np.zeros((n + 1, n + 1))], axis=-1)
    if warp:
        noise = np.random.default_rng(0).uniform(-0.3 / n, 0.3 / n, points[1:-1, 1:-1, :2].shape)
        points[1:-1, 1:-1, :2] += noise
    at = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    corners = np.stack([at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]], axis=-1).reshape(-1, 4)
    cells = [(9, c.tolist()) for c in corners] if quads else []
    if not quads:
        cells = [(5, c[k].tolist()) for c in corners for k in ([0, 1, 2], [0, 2, 3])]
    return raw_of(points.reshape(-1, 3), cells)


def sphere(rings: int = 24) -> RawCase:
    pv = pytest.importorskip("pyvista")
    mesh = pv.Sphere(radius=2.0, theta_resolution=2 * rings, phi_resolution=rings)
    return RawCase(
        PATH, np.asarray(mesh.points, float), cells=mesh.regular_faces, cell_types=np.full(mesh.n_cells, 5)
    )


@pytest.mark.parametrize("name", SPLITS)
def test_volumes_of_every_solid_add_up_to_the_cube(name: str) -> None:
    points = np.concatenate([CUBE, [[0.5, 0.5, 0.5]]]) * [2, 3, 0.5]
    geometry = Geometry(raw_of(points, SPLITS[name]))
    np.testing.assert_allclose(geometry.measure().sum(), 3.0, rtol=1e-14)
    assert geometry.surface()[:8].all()
    assert not geometry.surface()[8]


def test_warped_hexahedra_fill_the_box_that_they_share() -> None:
    pv = pytest.importorskip("pyvista")
    grid = pv.ImageData(dimensions=(5, 4, 4), spacing=(0.5, 1, 1)).cast_to_structured_grid()
    points = np.asarray(grid.points, float)
    inner = ((points > 0) & (points < points.max(0))).all(1)
    points[inner] += np.random.default_rng(0).uniform(-0.12, 0.12, (inner.sum(), 3))
    cells = [(12, c.tolist()) for c in grid.cast_to_unstructured_grid().cell_connectivity.reshape(-1, 8)]
    raw = raw_of(points, cells)
    np.testing.assert_allclose(Geometry(raw).measure().sum(), 18.0, rtol=1e-13)
    np.testing.assert_allclose(Geometry(raw, "cell").measure().sum(), 18.0, rtol=1e-13)
    np.testing.assert_array_equal(Geometry(raw).surface(), ~inner)


@pytest.mark.parametrize("quads", [False, True])
@pytest.mark.parametrize("warp", [False, True])
def test_areas_add_up_to_the_square(quads: bool, warp: bool) -> None:
    measure = Geometry(square(5, warp, quads)).measure()
    np.testing.assert_allclose(measure.sum(), 1.0, rtol=1e-14)
    assert (measure > 0).all()


def test_each_cell_shares_its_measure_equally_among_its_points() -> None:
    raw = raw_of([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [4, 1, 0]], [(9, [0, 1, 2, 3]), (5, [1, 4, 2])])
    np.testing.assert_allclose(Geometry(raw).measure(), [1, 1 + 2 / 3, 1 + 2 / 3, 1, 2 / 3])


def test_a_polygon_with_a_notch_and_quadratic_cells() -> None:
    notched = [[0, 0, 0], [2, 0, 0], [1, 0.5, 0], [2, 2, 0], [0, 2, 0]]
    np.testing.assert_allclose(Geometry(raw_of(notched, [(7, [0, 1, 2, 3, 4])])).measure().sum(), 3.0)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    middles = [(corners[a] + corners[b]) / 2 for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))]
    raw = raw_of([*corners, *middles], [(24, list(range(10)))])
    np.testing.assert_allclose(Geometry(raw).measure().sum(), 1 / 6)
    assert Geometry(raw).surface().all()


def test_normals_of_a_square_point_out_and_vanish_inside() -> None:
    raw = square(4)
    normals, x = Geometry(raw).normals(), raw.points
    inside = ((x[:, :2] > 0) & (x[:, :2] < 1)).all(1)
    assert not normals[inside].any()
    bottom = (x[:, 1] == 0) & (x[:, 0] > 0) & (x[:, 0] < 1)
    np.testing.assert_allclose(normals[bottom], np.tile([0, -1, 0], (bottom.sum(), 1)), atol=1e-14)
    corner = (x[:, :2] == 1).all(1)
    np.testing.assert_allclose(normals[corner], [[0.5**0.5, 0.5**0.5, 0]], atol=1e-14)


def test_the_distance_in_a_square_is_that_to_its_nearest_side() -> None:
    raw = square(7, warp=True)
    x = raw.points[:, :2]
    expected = np.minimum(x, 1 - x).min(1)
    np.testing.assert_allclose(Geometry(raw).distance(), expected, atol=1e-14)
    centres = raw.points[raw.cells].mean(1)[:, :2]
    np.testing.assert_allclose(
        Geometry(raw, "cell").distance(), np.minimum(centres, 1 - centres).min(1), atol=1e-14
    )


def test_a_sphere_is_all_surface_with_radial_normals() -> None:
    geometry = Geometry(sphere())
    radial = geometry.points / 2.0
    assert geometry.surface().all()
    assert not geometry.distance().any()
    assert (geometry.normals() * radial).sum(1).min() > 0.999
    np.testing.assert_allclose(geometry.measure().sum(), 16 * np.pi, rtol=0.01)


def test_a_sphere_turned_inside_out_has_the_same_normals() -> None:
    raw = sphere()
    assert raw.cells is not None
    flipped = RawCase(PATH, raw.points, cells=raw.cells[:, ::-1].copy(), cell_types=raw.cell_types)
    np.testing.assert_allclose(Geometry(flipped).normals(), Geometry(raw).normals(), atol=1e-12)


def test_the_distance_in_a_ball_is_that_to_its_polyhedron() -> None:
    """A ball of tetrahedra from its centre: the nearest facet is on average one radius away."""
    shell = sphere(10)
    assert shell.cells is not None
    n = len(shell.points)
    cells = [(10, [*cell, n]) for cell in shell.cells.tolist()]
    geometry = Geometry(raw_of(np.concatenate([shell.points, [[0, 0, 0]]]), cells))
    heights = np.abs((geometry.facets.normals * shell.points[geometry.facets.corners[:, 0]]).sum(1))
    heights /= np.linalg.norm(geometry.facets.normals, axis=1)
    np.testing.assert_allclose(geometry.distance()[-1], heights.min(), rtol=1e-12)
    assert not geometry.surface()[-1]
    assert ((geometry.normals()[:-1] * shell.points).sum(1) > 1.9).all()


def test_a_patch_in_the_file_is_the_surface() -> None:
    raw = raw_of(CUBE, [(12, HEXAHEDRON), (9, [0, 1, 3, 2])])
    geometry = Geometry(raw)
    np.testing.assert_array_equal(geometry.surface(), CUBE[:, 2] == 0)
    np.testing.assert_allclose(geometry.normals()[:4], np.tile([0, 0, -1.0], (4, 1)))
    np.testing.assert_allclose(geometry.distance(), CUBE[:, 2])
    np.testing.assert_allclose(geometry.measure().sum(), 1.0)


def test_blocks_that_meet_have_no_surface_between_them() -> None:
    moved = CUBE + np.array([1, 0, 0])
    raw = raw_of(np.concatenate([CUBE, moved]), [(12, HEXAHEDRON), (12, [v + 8 for v in HEXAHEDRON])])
    geometry = Geometry(raw, "cell")
    np.testing.assert_allclose(np.abs(geometry.facets.normals).sum(), 10.0)  # ten unit faces, not twelve
    np.testing.assert_allclose(geometry.normals(), [[-1, 0, 0], [1, 0, 0]], atol=1e-14)


@given(seed=st.integers(0, 2**32 - 1), corners=st.sampled_from([2, 3]), spread=st.floats(0.0, 4.0))
def test_the_distance_by_the_tree_is_the_distance_by_force(seed: int, corners: int, spread: float) -> None:
    """Pieces of very different sizes, some of them degenerate."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** -rng.uniform(0, spread + 1e-9, (60, 1, 1))
    pieces = rng.normal(size=(60, 1, 3)) + sizes * rng.normal(size=(60, corners, 3))
    pieces[0] = pieces[0, :1]
    points = 2 * rng.normal(size=(40, 3))
    t = np.linspace(0, 1, 13)
    if corners == 2:
        samples = pieces[:, None, 0] + t[:, None] * (pieces[:, 1] - pieces[:, 0])[:, None]
    else:
        a, b = (v.ravel() for v in np.meshgrid(t, t))
        a, b = a * (1 - b), b
        samples = (
            (1 - a - b)[:, None] * pieces[:, None, 0]
            + a[:, None] * pieces[:, None, 1]
            + b[:, None] * pieces[:, None, 2]
        )
    sampled = np.linalg.norm(points[:, None] - samples.reshape(1, -1, 3), axis=2).min(1)
    exact = distance_to(points, pieces)
    assert (exact <= sampled + 1e-12).all()
    longest = np.linalg.norm(pieces - np.roll(pieces, 1, axis=1), axis=2).max()
    assert (sampled - exact < longest / 8).all()


def test_vectors_become_channels_and_derived_features_come_last() -> None:
    raw = square(2)
    n = len(raw.points)
    data = {"a": np.arange(n), "V": np.arange(3.0 * n).reshape(n, 3), "T": np.ones((n, 6)), "p": np.zeros(n)}
    raw = RawCase(PATH, raw.points, data, cells=raw.cells, cell_types=raw.cell_types)
    channels = {"a": 1, "V": 3, "T": 6, "p": 1}
    recipe = Roles(
        ("V", "a"), ("p", "T"), ("sdf", "normals", "measure", "surface"), ("re",), channels=channels
    )
    case = build_case(raw, recipe, np.array([7.0]))
    assert case.names.inputs == ("V_x", "V_y", "V_z", "a", "normal_x", "normal_y", "normal_z", "sdf")
    assert case.names.targets == ("p", "T_0", "T_1", "T_2", "T_3", "T_4", "T_5")
    assert case.f is not None
    assert case.f.shape == (n, 8)
    np.testing.assert_array_equal(case.f[:, 3], np.arange(n))
    assert case.weights is not None
    np.testing.assert_allclose(case.weights.sum(), 1.0, rtol=1e-6)
    assert case.surface is not None
    assert case.surface.sum() == n - 1
    np.testing.assert_array_equal(case.globals, [7.0])  # pyright: ignore[reportArgumentType]
    assert case.cells is not None


def test_what_is_nan_in_a_target_is_unknown() -> None:
    raw = square(1)
    p = np.array([1.0, np.nan, 3.0, 4.0])
    raw = RawCase(PATH, raw.points, {"p": p, "q": np.ones(4)}, cells=raw.cells, cell_types=raw.cell_types)
    case = build_case(raw, Roles((), ("p", "q")))
    np.testing.assert_array_equal(case.u_mask, [[1, 1], [0, 1], [1, 1], [1, 1]])  # pyright: ignore[reportArgumentType]
    assert case.u is not None
    np.testing.assert_array_equal(case.u[:, 0], [1, 0, 3, 4])


def test_cell_arrays_live_at_the_centres_or_are_averaged() -> None:
    raw = raw_of([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [4, 1, 0]], [(9, [0, 1, 2, 3]), (5, [1, 4, 2])])
    raw = RawCase(PATH, raw.points, {"p": np.ones(5)}, {"k": np.array([1.0, 4.0])}, raw.cells, raw.cell_types)
    alone = build_case(raw, Roles((), ("k",), ("measure",), location="cell"))
    np.testing.assert_allclose(alone.x, [[1, 1, 0], [8 / 3, 1, 0]], rtol=1e-6)
    assert alone.weights is not None
    np.testing.assert_allclose(alone.weights, [4, 2])
    np.testing.assert_array_equal(alone.u, [[1], [4]])  # pyright: ignore[reportArgumentType]
    mixed = build_case(raw, Roles(("p",), ("k",)))
    np.testing.assert_array_equal(mixed.u, [[1], [2.5], [2.5], [1], [4]])  # pyright: ignore[reportArgumentType]


def test_frames_are_targets_and_a_changing_input_gives_its_first() -> None:
    raw = square(1)
    frames = np.arange(12.0).reshape(3, 4)
    data = {"p": frames, "q": frames + 100, "c": np.ones(4)}
    raw = RawCase(PATH, raw.points, data, times=np.array([0.0, 0.5, 1.0]))
    case = build_case(raw, Roles(("q",), ("p", "c")))
    assert case.u is not None
    assert case.u.shape == (3, 4, 2)
    np.testing.assert_array_equal(case.u[..., 0], frames)
    np.testing.assert_array_equal(case.f, frames[:1].T + 100)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(case.times, [0.0, 0.5, 1.0])  # pyright: ignore[reportArgumentType]


def test_every_problem_of_a_file_has_its_line() -> None:
    raw = square(1)
    data = {
        "a": np.array([1, np.nan, 1, 1]),
        "short": np.ones(3),
        "V": np.ones((4, 3)),
        "big": np.full(4, 1e300),
    }
    raw = RawCase(PATH, raw.points, data, cells=raw.cells, cell_types=raw.cell_types)
    recipe = Roles(("a", "short"), ("V", "cp", "big"), channels={"V": 2})
    with pytest.raises(Problems) as caught:
        build_case(raw, recipe)
    lines = caught.value.lines
    assert len(lines) == 5
    assert all(line.startswith("case.vtu has ") for line in lines)
    for words in (
        'NaN in input "a" (1 of 4)',
        '"short" of shape (3,), but 4 points',
        "3 components",
        '"cp" (it has:',
        "infinite",
    ):
        assert any(words in line for line in lines), words


def test_without_targets_a_case_can_be_built_for_prediction() -> None:
    raw = square(1)
    case = build_case(raw, Roles((), ("p",), ("sdf",)), targets=False)
    assert case.u is None
    assert case.names.targets == ("p",)


def test_what_has_no_cells_derives_nothing() -> None:
    with pytest.raises(LrsaError, match=r"case\.vtu has no cells"):
        build_case(RawCase(PATH, CUBE, {"p": np.ones(8)}), Roles((), ("p",), ("sdf",)))
    with pytest.raises(LrsaError, match="polyhedra"):
        Geometry(raw_of(CUBE, [(42, HEXAHEDRON)]))
