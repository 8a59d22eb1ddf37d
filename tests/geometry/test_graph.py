"""The edges of a case: by hand on tiny meshes, by brute force on point clouds, the same bits from disk."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from lrsa.data.prepare import Collator
from lrsa.errors import LrsaError
from lrsa.geometry import graphs as graph
from lrsa.geometry.cells import SHAPES
from lrsa.geometry.graphs import Connection, MeshEdges, NearestGraph, RadiusGraph, batch_edges, case_edges
from lrsa.geometry.neighbours import near_edges, pooling_levels
from lrsa.mesh.building import build_case
from lrsa.mesh.roles import RawCase, Roles
from lrsa.models.baselines.gno import GNO
from lrsa.models.baselines.mesh_graph_net import MeshGraphNet
from lrsa.pointset import PointSet


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))


def pairs(edges: np.ndarray) -> set[tuple[int, int]]:
    found = list(zip(*edges.tolist(), strict=True))
    assert len(found) == len(set(found)), "an edge is there twice"
    return set(found)


def both(*edges: tuple[int, int]) -> set[tuple[int, int]]:
    return {*edges, *((b, a) for a, b in edges)}


def mesh(points: int, dim: int, cells: list[list[int]]) -> PointSet:
    return PointSet(np.random.default_rng(0).random((points, dim)), cells=np.array(cells))


def test_two_triangles_share_an_edge() -> None:
    edges = MeshEdges(self_loops=False).edges(mesh(5, 2, [[0, 1, 2], [2, 1, 3]]))
    assert pairs(edges) == both((0, 1), (1, 2), (0, 2), (1, 3), (2, 3))
    assert (np.diff(edges[1]) >= 0).all()


def test_a_quadrilateral_has_no_diagonal_and_a_tetrahedron_has_six_edges() -> None:
    plane = MeshEdges(self_loops=False).edges(mesh(4, 2, [[0, 1, 2, 3]]))
    space = MeshEdges(self_loops=False).edges(mesh(4, 3, [[0, 1, 2, 3]]))
    assert pairs(plane) == both((0, 1), (1, 2), (2, 3), (3, 0))
    assert pairs(space) == {(a, b) for a in range(4) for b in range(4) if a != b}


@pytest.mark.parametrize(("count", "kind"), [(4, 10), (5, 14), (6, 13), (8, 12)])
def test_the_edges_of_a_polyhedron_are_those_of_its_faces(count: int, kind: int) -> None:
    found = MeshEdges(self_loops=False).edges(mesh(count, 3, [list(range(count))]))
    assert pairs(found) == both(
        *((a, b) for face in SHAPES[kind].faces for a, b in pairwise((*face, face[0])))
    )


@pytest.mark.parametrize("bend", [0.0, 0.1])
@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_quadrilaterals_stored_in_space_have_no_diagonals(bend: float, angle: float) -> None:
    """In a plane of coordinates, in any other plane, and on a curved surface."""
    a, b = (c.ravel() for c in np.meshgrid(np.arange(4.0), np.arange(4.0), indexing="ij"))
    turn = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])
    x = np.stack([a, b, bend * np.sin(a) * b], axis=1) @ turn
    first = [4 * i + j for i in range(3) for j in range(3)]
    mesh = PointSet(x, cells=np.array([[k, k + 4, k + 5, k + 1] for k in first]))
    assert np.array_equal(MeshEdges().edges(mesh), MeshEdges().edges(PointSet(x, grid=(4, 4))))


@pytest.mark.parametrize(("kind", "corners"), [(22, 3), (23, 4), (28, 4), (34, 3)])
def test_quadratic_cells_in_the_plane_are_joined_along_their_boundary(kind: int, corners: int) -> None:
    """VTK numbers the corners first, then the midpoints, then the centre, joined to the midpoints."""
    count = 2 * corners + (kind in (28, 34))
    x = np.zeros((count, 3))
    turn = 2 * np.pi * np.arange(corners) / corners
    x[:corners, 0], x[:corners, 1] = np.cos(turn), np.sin(turn)
    x[corners : 2 * corners] = (x[:corners] + np.roll(x[:corners], -1, axis=0)) / 2
    raw = RawCase(Path("one"), x, {}, {}, np.arange(count)[None], np.array([kind]))
    edges = MeshEdges(self_loops=False).edges(build_case(raw, Roles()))
    outline = edges[:, edges.max(0) < 2 * corners]
    half = np.linalg.norm(x[0] - x[1]) / 2
    assert np.allclose(np.linalg.norm(x[outline[0]] - x[outline[1]], axis=1), half)
    assert outline.shape[1] == 4 * corners
    centre = [(2 * corners, corners + i) for i in range(corners)] if count > 2 * corners else []
    assert pairs(edges) - pairs(outline) == both(*centre)


def test_a_hexahedron_is_the_grid_of_two_points_an_axis() -> None:
    vtk = [0, 4, 6, 2, 1, 5, 7, 3]  # the node order of VTK, as row-major indices of a 2 x 2 x 2 grid
    cell = MeshEdges().edges(mesh(8, 3, [vtk]))
    grid = MeshEdges().edges(PointSet(np.zeros((8, 3)), grid=(2, 2, 2)))
    assert np.array_equal(cell, grid)


def test_mixed_cells_are_filled_up_with_minus_one() -> None:
    edges = MeshEdges(self_loops=False).edges(mesh(5, 2, [[0, 1, 2, 3], [3, 2, 4, -1]]))
    assert pairs(edges) == both((0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (3, 4))


def test_self_loops_are_added_once_at_every_point() -> None:
    points = mesh(5, 2, [[0, 1, 2], [2, 1, 3]])
    loops = pairs(MeshEdges().edges(points)) - pairs(MeshEdges(self_loops=False).edges(points))
    assert loops == {(i, i) for i in range(5)}


def test_a_point_cloud_has_no_mesh_edges() -> None:
    with pytest.raises(LrsaError, match="neither cells nor a grid"):
        MeshEdges().edges(PointSet(np.zeros((3, 2))))


def test_cells_without_known_edges_are_refused() -> None:
    with pytest.raises(LrsaError, match="cells without a type have no known edges"):
        MeshEdges().edges(mesh(7, 3, [list(range(7))]))
    with pytest.raises(LrsaError, match="polyhedra have no known edges"):
        MeshEdges().edges(replace(mesh(8, 3, [list(range(8))]), cell_types=np.array([42])))


def test_the_types_that_cells_carry_decide_and_not_their_points() -> None:
    """Four points that lie flat may be a tetrahedron in a boundary layer; other types are another graph."""
    thin = PointSet(np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 1e-3]]), cells=np.arange(4)[None])
    assert thin.arrays()["cell_types"].tolist() == [9]
    solid = replace(thin, cell_types=np.array([10]))
    assert case_edges(thin, MeshEdges(False)).shape == (2, 8)
    assert case_edges(solid, MeshEdges(False)).shape == (2, 12)
    line = replace(thin, cell_types=np.array([4]))
    assert pairs(case_edges(line, MeshEdges(False))) == both((0, 1), (1, 2), (2, 3))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("neighbours", [3, 200])
@pytest.mark.parametrize("self_loops", [True, False])
def test_radius_graph_equals_brute_force(dim: int, neighbours: int, self_loops: bool) -> None:
    x = np.random.default_rng(dim).random((80, dim))
    x[1] = x[0]  # coinciding points are neighbours at distance zero
    distance = np.linalg.norm(x[:, None] - x, axis=-1)
    np.fill_diagonal(distance, np.inf)
    expected = {
        (int(j), i)
        for i in range(len(x))
        for j in np.argsort(distance[i], kind="stable")[:neighbours]
        if distance[i, j] <= 0.3
    }
    expected |= {(i, i) for i in range(len(x))} if self_loops else set()
    assert pairs(RadiusGraph(0.3, neighbours, self_loops).edges(PointSet(x))) == expected


@pytest.mark.parametrize("neighbours", [1, 7])
def test_nearest_graph_equals_brute_force(neighbours: int) -> None:
    x = np.random.default_rng(2).random((60, 2))
    distance = np.linalg.norm(x[:, None] - x, axis=-1)
    np.fill_diagonal(distance, np.inf)
    expected = {(int(j), i) for i in range(60) for j in np.argsort(distance[i])[:neighbours]}
    assert pairs(NearestGraph(neighbours, self_loops=False).edges(PointSet(x))) == expected


def test_a_neighbour_exactly_at_the_radius_counts() -> None:
    x = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1.0]])
    assert pairs(near_edges(x, 5, radius=0.5, self_loops=False)) == both((0, 1))


def test_a_graph_of_fewer_points_than_neighbours_joins_them_all() -> None:
    assert near_edges(np.random.default_rng(0).random((3, 2)), 10).shape == (2, 9)
    assert near_edges(np.zeros((1, 2)), 10).tolist() == [[0], [0]]


@pytest.mark.parametrize("connection", [MeshEdges(), RadiusGraph(0.4), NearestGraph(3)], ids=repr)
def test_the_cache_returns_identical_bits_and_builds_once(
    connection: graph.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = mesh(6, 2, [[0, 1, 2], [2, 1, 3], [3, 4, 5]])
    first = case_edges(points, connection)
    assert np.array_equal(first, connection.edges(points))
    assert first.dtype == np.int64
    assert len(list((tmp_path / "graphs").iterdir())) == 1
    monkeypatch.setattr(type(connection), "edges", lambda *_: pytest.fail("built twice"))
    assert np.array_equal(case_edges(points, connection), first)


def test_another_case_or_another_rule_is_another_graph(tmp_path: Path) -> None:
    x = np.random.default_rng(3).random((30, 2))
    for points in (PointSet(x), PointSet(x[::-1])):
        for connection in (RadiusGraph(0.2), RadiusGraph(0.3), NearestGraph(4), NearestGraph(4, False)):
            assert np.array_equal(case_edges(points, connection), connection.edges(points))
    assert len(list((tmp_path / "graphs").iterdir())) == 8


def test_pooling_halves_the_points_and_points_back_to_the_nearest_kept_one() -> None:
    x = np.random.default_rng(4).random((41, 2))
    finer = x
    for level, count in zip(pooling_levels(x, 0.5, (0.3, 0.5), 64), (21, 11), strict=True):
        coarse = finer[level.kept]
        assert len(np.unique(level.kept)) == count
        distance = np.linalg.norm(finer[:, None] - coarse, axis=-1)
        assert np.array_equal(level.nearest, distance.argmin(axis=1))
        finer = coarse


def test_pooling_is_fixed_by_the_points_and_not_by_their_order() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((200, 3))
    order = rng.permutation(200)
    here, there = pooling_levels(x, 0.5, (0.3,), 64)[0], pooling_levels(x[order], 0.5, (0.3,), 64)[0]
    assert np.array_equal(here.kept, order[there.kept])


def test_pooling_of_a_grid_looks_random() -> None:
    """On a regular grid every row and column keeps about half of its points."""
    axis = np.linspace(-1, 1, 64)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    kept = np.zeros(64 * 64)
    kept[pooling_levels(x, 0.5, (0.1,), 8)[0].kept] = 1
    for mean in (kept.reshape(64, 64).mean(0), kept.reshape(64, 64).mean(1)):
        assert abs(mean - 0.5).max() < 4 * 0.5 / 8


def test_a_batch_is_a_disjoint_graph_of_padded_cases() -> None:
    cases = [np.array([[0, 1], [1, 0]]), np.array([[2, 0], [0, 2]])]
    assert batch_edges(cases, 4).tolist() == [[0, 1, 6, 4], [1, 0, 4, 6]]


def test_a_model_says_which_edges_it_wants() -> None:
    case = PointSet(np.random.default_rng(0).random((40, 2)).astype(np.float32), grid=(8, 5))
    wanted: dict[nn.Module, Connection] = {
        GNO(2, 0, 1): MeshEdges(),
        GNO(2, 0, 1, radius=0.3): RadiusGraph(0.3),
        MeshGraphNet(2, 0, 1): MeshEdges(self_loops=False),
    }
    for model, connection in wanted.items():
        edges = Collator.of(model, weights=False)([case]).context.edges
        assert edges is not None
        assert np.array_equal(edges.numpy(), connection.edges(case))


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan")])
def test_a_radius_that_joins_nothing_is_refused(radius: float) -> None:
    with pytest.raises(LrsaError, match="joins no points"):
        GNO(2, 0, 1, radius=radius)
