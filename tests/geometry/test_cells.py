"""The table of cells against VTK's own cells, and what must hold for every shape and every numbering."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
from hypothesis import given
from hypothesis import strategies as st
from vtkmodules.vtkCommonDataModel import vtkGenericCell
from vtkmodules.vtkFiltersGeometry import vtkLinearToQuadraticCellsFilter

from lrsa.errors import LrsaError
from lrsa.geometry.cells import SHAPES, cell_edges, dimensions, shape_of, simplices, type_names, unknown
from lrsa.geometry.eigenbasis import laplacian
from lrsa.mesh.derive import Geometry
from lrsa.mesh.roles import RawCase

SOLID = {10: 1 / 6, 11: 1, 12: 1, 13: 1 / 2, 14: 1 / 3, 24: 1 / 6, 25: 1, 26: 1 / 2, 27: 1 / 3, 29: 1}
FLAT = {5: 1 / 2, 8: 1, 9: 1, 22: 1 / 2, 23: 1, 28: 1, 34: 1 / 2}
"""Measures of VTK's reference cells."""
CENTRES = {28: 1, 34: 1, 29: 7}


def vtk_cell(kind: int) -> Any:
    """VTK's own cell of this type, its points numbered from 0."""
    cell = vtkGenericCell.InstantiateCell(kind)
    for i in range(cell.GetNumberOfPoints()):
        cell.GetPointIds().SetId(i, i)
        cell.GetPoints().SetPoint(i, *reference(kind)[i])
    return cell


def reference(kind: int) -> np.ndarray:
    """(n, 3) the points of VTK's reference cell."""
    x = np.array(vtkGenericCell.InstantiateCell(kind).GetParametricCoords()).reshape(-1, 3)
    if kind == 27:  # its parameters collapse at the tip: those of the midpoints below it are not their places
        x[9:] = (x[:4] + x[4]) / 2
    return x


def ids(cell: Any) -> list[int]:
    return [cell.GetPointId(i) for i in range(cell.GetNumberOfPoints())]


def sizes(x: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Lengths, areas or volumes of simplices (n, d + 1)."""
    edges = x[parts[:, 1:]] - x[parts[:, :1]]
    square = np.linalg.det(edges @ edges.transpose(0, 2, 1))
    return np.sqrt(np.maximum(square, 0)) / [1, 1, 2, 6][edges.shape[1]]


def halves(edge: list[int]) -> set[frozenset[int]]:
    """An edge of VTK: two ends, or two ends and the point between them."""
    return {frozenset(edge)} if len(edge) == 2 else {frozenset((end, edge[2])) for end in edge[:2]}


@pytest.mark.parametrize("kind", SOLID | FLAT)
def test_edges_and_faces_are_those_of_vtk(kind: int) -> None:
    shape, cell = SHAPES[kind], vtk_cell(kind)
    assert (shape.points, shape.dimension) == (cell.GetNumberOfPoints(), cell.GetCellDimension())
    outline = set().union(*(halves(ids(cell.GetEdge(i))) for i in range(cell.GetNumberOfEdges())))
    edges = {frozenset(edge) for edge in shape.edges}
    assert len(edges) == len(shape.edges)
    centres = set(range(shape.points - CENTRES.get(kind, 0), shape.points))
    assert {edge for edge in edges if not edge & centres} == outline
    assert set().union(*edges) == set(range(shape.points)), "a point without an edge"
    if shape.dimension == 3:
        theirs = {frozenset(ids(cell.GetFace(i))) - centres for i in range(cell.GetNumberOfFaces())}
        assert {frozenset(face) for face in shape.faces} == theirs
    for face in shape.faces:
        assert all(frozenset(edge) in outline for edge in pairwise((*face, face[0])))


@pytest.mark.parametrize("kind", SOLID | FLAT)
def test_points_edges_and_faces_obey_euler(kind: int) -> None:
    """V - E + F = 2 on the surface of a solid, 1 in a flat cell; centres and their edges are not on it."""
    shape, centres = SHAPES[kind], CENTRES.get(kind, 0)
    points = shape.points - centres
    edges = sum(max(edge) < points for edge in shape.edges)
    assert points - edges + len(shape.faces) == shape.dimension - 1


@pytest.mark.parametrize("kind", SOLID)
def test_faces_point_to_one_side(kind: int) -> None:
    """Outward; all of them inward for wedges, whose parameters VTK turns inside out."""
    x = reference(kind)
    sides = set()
    for face in SHAPES[kind].faces:
        ring = x[list(face)] - x[list(face)].mean(0)
        normal = np.cross(ring, np.roll(ring, -1, axis=0)).sum(0)
        sides.add(np.sign(normal @ (x[list(face)].mean(0) - x.mean(0))))
    assert sides == {-1.0 if kind in (13, 26) else 1.0}


@pytest.mark.parametrize("kind", SOLID | FLAT)
@given(seed=st.integers(0, 2**32 - 1))
def test_simplices_fill_the_cell_whatever_its_place_and_its_numbers(kind: int, seed: int) -> None:
    rng, measure = np.random.default_rng(seed), (SOLID | FLAT)[kind]
    map_, local = rng.normal(size=(3, 3)), reference(kind)
    order = rng.permutation(len(local))
    x = np.empty((len(local), 3))
    x[order] = local @ map_
    parts = simplices(order[None], np.array([kind]))
    scale = abs(np.linalg.det(map_)) if kind in SOLID else np.linalg.norm(np.cross(map_[0], map_[1]))
    found = sizes(x, parts)
    assert found.sum() == pytest.approx(measure * scale, rel=1e-9)
    assert found.min() > 1e-9 * scale, "a collapsed simplex"
    assert set(parts.ravel().tolist()) == set(range(len(x))), "a point that belongs to no simplex"
    raw = RawCase(Path("one"), x, cells=order[None], cell_types=np.array([kind]))
    assert Geometry(raw, "cell").measure()[0] == pytest.approx(measure * scale, rel=1e-9)


def scrambled(mesh: pv.UnstructuredGrid, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, cells and types of a mesh, its points numbered at random."""
    flat, offsets = np.asarray(mesh.cell_connectivity), np.asarray(mesh.cell_offsets)
    order = np.random.default_rng(seed).permutation(mesh.n_points)
    counts = np.diff(offsets)
    cells = np.full((mesh.n_cells, counts.max()), -1)
    cells[np.arange(counts.max()) < counts[:, None]] = order[flat]
    x = np.empty((mesh.n_points, 3))
    x[order] = mesh.points
    return x, cells, np.asarray(mesh.celltypes)


def mixed_box() -> pv.UnstructuredGrid:
    """[0, 3]³ in 27 cubes: a layer of hexahedra, one of wedges, one of pyramids around the centres."""
    side = np.arange(4.0)
    x = np.stack(np.meshgrid(side, side, side, indexing="ij"), -1).reshape(-1, 3)
    corner = np.array(
        [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    )
    low = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    cubes = (low[:, None] + corner) @ [16, 4, 1]
    cells: list[int] = []
    types: list[int] = []
    for i, cube in enumerate(cubes):
        pieces = [(12, np.roll(np.arange(8).reshape(2, 4), i, axis=1).ravel().tolist())]  # turned about z
        if i // 9 == 1:
            pieces = [(13, [0, 1, 2, 4, 5, 6]), (13, [0, 2, 3, 4, 6, 7])]
        elif i // 9 == 2:
            x = np.concatenate([x, x[cube].mean(0, keepdims=True)])
            pieces = [(14, [*face[::-1], 8]) for face in SHAPES[12].faces]
        nodes = np.array([*cube, len(x) - 1])
        for kind, local in pieces:
            cells += [len(local), *nodes[list(local)].tolist()]
            types.append(kind)
    return pv.UnstructuredGrid(cells, types, x)


def quadratic_box() -> pv.UnstructuredGrid:
    filter_ = vtkLinearToQuadraticCellsFilter()
    filter_.SetInputData(mixed_box())
    filter_.Update()
    return pv.wrap(filter_.GetOutput())


@pytest.mark.parametrize("box", [mixed_box, quadratic_box])
@pytest.mark.parametrize("seed", range(5))
def test_linear_functions_are_harmonic_inside_whatever_the_numbers(box: Any, seed: int) -> None:
    """Neighbours cut the face between them the same way: otherwise the elements fail this patch test."""
    x, cells, types = scrambled(box(), seed)
    stiffness, mass, used = laplacian(x, cells, types)
    assert len(used) == len(x)
    assert mass.sum() == pytest.approx(27)
    inside = ((x > 1e-9) & (x < 3 - 1e-9)).all(1)
    assert inside.sum() >= 8
    assert np.abs((stiffness @ x)[inside]).max() < 1e-12
    energy = x.T @ (stiffness @ x)
    np.testing.assert_allclose(energy, 27 * np.eye(3), atol=1e-10)


def test_cells_of_any_number_of_points() -> None:
    hexagon = np.stack([np.cos(np.arange(6) * np.pi / 3), np.sin(np.arange(6) * np.pi / 3)], axis=1)
    parts = simplices(np.arange(6)[None], np.array([7]))
    assert sizes(hexagon, parts).sum() == pytest.approx(1.5 * np.sqrt(3))
    assert cell_edges(np.arange(6)[None], np.array([7])).T.tolist() == [[i, (i + 1) % 6] for i in range(6)]
    assert cell_edges(np.arange(4)[None], np.array([4])).T.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert cell_edges(np.array([[3, 1, 2]]), np.array([21])).T.tolist() == [[3, 2], [2, 1]]
    assert cell_edges(np.arange(3)[None], np.array([2])).shape == (2, 0)
    assert simplices(np.arange(4)[None], np.array([4])).tolist() == [[0, 1], [1, 2], [2, 3]]
    for count in range(3):  # polygons that are none have no edge from a point to itself
        assert cell_edges(np.arange(count)[None], np.array([7])).shape == (2, max(count - 1, 0))


def test_beside_volumes_cells_of_lower_dimension_fill_nothing() -> None:
    cells = np.array([[0, 1, 2, -1], [0, 1, 2, 3], [0, 1, -1, -1], [0, -1, -1, -1]])
    assert simplices(cells, np.array([5, 10, 3, 1])).tolist() == [[0, 1, 2, 3]]
    assert simplices(cells[[0, 2, 3]], np.array([5, 3, 1])).tolist() == [[0, 1, 2]]


def test_what_is_not_known_is_named() -> None:
    types = np.array([5, 42, 6, 42, 255])
    assert unknown(types) == "cells of VTK type 6, polyhedra, cells without a type"
    assert unknown(types[:1]) == ""
    assert dimensions(types).tolist() == [2, -1, -1, -1, -1]
    assert type_names(np.array([9, 5, 9])) == ["triangles", "quadrilaterals"]
    with pytest.raises(LrsaError, match="polyhedra: nothing is known"):
        shape_of(42, 8)
    with pytest.raises(LrsaError, match=r"hexahedra \(VTK type 12\) have 8 points, but one has 4"):
        cell_edges(np.arange(4)[None], np.array([12]))
