"""A file with cells of many types goes from VTU to graph, eigenbasis, picture and back without a guess."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv

import lrsa
from lrsa import pointset
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.geometry.eigenbasis import eigenbasis, laplacian
from lrsa.geometry.graphs import MeshEdges
from lrsa.mesh import tables
from lrsa.mesh.importing import import_meshes
from lrsa.pointset import PointSet
from lrsa.report.pictures import draw_pictures, picture_of
from lrsa.report.triangles import triangles_of
from lrsa.surrogate.predict_files import predict_path

CUBE = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
TETRAHEDRA = ((0, 1, 2, 6), (0, 2, 3, 6), (0, 3, 7, 6), (0, 7, 4, 6), (0, 4, 5, 6), (0, 5, 1, 6))
VOLUME, SURFACE = 4 + 1 / 6, 18 + 1.5 + 3**0.5 / 2
"""Of a box of four cubes, and of a tetrahedron of edges 1, 1, 1 and three times √2."""


MODELS: dict[str, dict[str, Any]] = {
    "mesh-graph-net": {"width": 8, "depth": 1},
    "backbone-norm": {"width": 8, "depth": 1, "heads": 2, "rank": 4},
}


def mixed(flatness: float) -> pv.UnstructuredGrid:
    """Four cubes in a row, of one hexahedron, two wedges, six tetrahedra and six pyramids; apart from them a
    quadratic tetrahedron, quadrilaterals, a triangle and a line on the first cube, and a vertex."""
    x = [np.stack(np.meshgrid(range(5), [0, 1], [0, 1], indexing="ij"), -1).reshape(-1, 3)]
    x += [np.array([[3.5, 0.5, 0.5]]), np.add(quadratic_tetrahedron(), [6, 0, 0])]
    at = [(np.add(CUBE, [i, 0, 0]) @ [4, 2, 1]).tolist() for i in range(4)]
    cells = [(12, at[0])]
    cells += [(13, [at[1][v] for v in local]) for local in ((0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7))]
    cells += [(10, [at[2][v] for v in local]) for local in TETRAHEDRA]
    faces = ((0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (3, 7, 6, 2), (0, 3, 2, 1), (4, 5, 6, 7))
    cells += [(14, [*(at[3][v] for v in face), 20]) for face in faces]
    cells += [(24, list(range(21, 31)))]
    cells += [(9, at[0][:4]), (9, at[0][4:]), (5, at[0][:3]), (3, at[0][:2]), (1, at[0][:1])]
    flat = [v for _, nodes in cells for v in (len(nodes), *nodes)]
    mesh = pv.UnstructuredGrid(flat, [kind for kind, _ in cells], np.concatenate(x) * [1, 1, flatness])
    points = np.asarray(mesh.points, float)
    mesh.point_data["a"], mesh.point_data["p"] = np.sin(points[:, 0]), points @ [1.0, 2.0, 3.0]
    return mesh


def quadratic_tetrahedron() -> np.ndarray:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
    middles = [(corners[a] + corners[b]) / 2 for a, b in ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))]
    return np.array([*corners, *middles])


def vtk_edges(mesh: Any) -> set[tuple[int, int]]:
    """The edges of all cells in both directions, by VTK; of quadratic ones their halves."""
    found = set()
    for cell in mesh.cell:
        lines = [list(edge.point_ids) for edge in cell.edges] or (
            [cell.point_ids] if cell.dimension == 1 else []
        )
        for a, b, *middle in lines:
            found |= {(a, m) for m in middle} | {(m, b) for m in middle} if middle else {(a, b)}
    return found | {(b, a) for a, b in found}


@pytest.fixture
def _no_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pointset, tables):
        monkeypatch.setattr(module, "cell_types_of", lambda *_: pytest.fail("a type was guessed"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases of four heights, from cubes to flakes whose tetrahedra a look at them would take for plane."""
    folder = tmp_path_factory.mktemp("mixed") / "cases"
    folder.mkdir()
    for i, flatness in enumerate((1.0, 0.5, 0.1, 0.05, 1.0)):
        mixed(flatness).save(folder / f"case_{i}.vtu")
    out = folder.with_suffix(".h5")
    import_meshes(folder, out, ["a"], ["p"], derive=["measure"], workers=1)
    return out


@pytest.fixture
def cases(imported: Path, _no_guess: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[PointSet]:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    return [case for split in ("train", "test") for case in Dataset(imported, split)]


def height(case: PointSet) -> float:
    return float(np.ptp(case.x[:, 2]))


def test_the_store_keeps_the_cells_and_types_of_the_file(cases: list[PointSet]) -> None:
    assert sorted(round(height(case), 6) for case in cases) == [0.05, 0.1, 0.5, 1.0, 1.0]
    for case in cases:
        mesh = mixed(1.0)
        assert case.arrays()["cell_types"].tolist() == mesh.celltypes.tolist()
        for nodes, cell in zip(case.arrays()["cells"], mesh.cell, strict=True):
            assert nodes[nodes >= 0].tolist() == cell.point_ids


def test_the_graph_has_the_edges_of_vtk(cases: list[PointSet]) -> None:
    for case in cases:
        edges = MeshEdges(self_loops=False).edges(case)
        assert set(zip(*edges.tolist(), strict=True)) == vtk_edges(mixed(1.0))


def test_the_eigenbasis_is_that_of_the_volume(cases: list[PointSet]) -> None:
    for case in cases:
        _, mass, used = laplacian(case.x.astype(float), case.cells, case.cell_types)
        assert mass.sum() == pytest.approx(VOLUME * height(case), rel=1e-5)
        assert np.array_equal(used, np.arange(len(case)))
        assert case.arrays()["weights"].sum() == pytest.approx(VOLUME * height(case), rel=1e-5)
        basis = eigenbasis(case, 6).astype(float)
        np.testing.assert_allclose(basis.T @ (mass @ basis), np.eye(6), atol=2e-4)


def test_the_picture_is_that_of_the_surface(cases: list[PointSet]) -> None:
    case = next(case for case in cases if height(case) == 1)
    seen = triangles_of(case)
    assert seen is not None
    assert seen.boundary
    a, b, c = (case.x[seen.points[:, i]].astype(float) for i in range(3))
    inner = 4.0  # at two places a quadrilateral meets two triangles: not one face, so both are seen
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2
    assert area == pytest.approx(SURFACE + inner, rel=1e-6)
    (image,) = draw_pictures([picture_of(case, case.arrays()["u"][:, 0])])
    assert len(np.unique(image[image[..., 3] > 250][:, :3], axis=0)) > 20


def test_the_cells_of_an_npz_file_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run whose data was written from Python; the types count as well."""
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    x = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    cells, types = np.arange(20).reshape(5, 4), np.array([9, 9, 10, 10, 4])
    lrsa.write_dataset(
        tmp_path / "a.h5", [PointSet(x + i, u=x[:, :1] + i, cells=cells, cell_types=types) for i in range(4)]
    )
    options = MODELS["mesh-graph-net"]
    surrogate = lrsa.fit(
        tmp_path / "a.h5",
        out=tmp_path / "run",
        model="mesh-graph-net",
        epochs=1,
        threads=1,
        options=options,
    )
    np.savez(tmp_path / "in.npz", x=x, cells=cells, cell_types=types)
    predict_path(tmp_path / "run", tmp_path / "in.npz", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as after:
        (predicted,) = (after[name] for name in after.files if name.endswith("_predicted"))
    expected = surrogate.predict(x, cells=cells, cell_types=types)[:, 0]
    np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-6)
    for others in (surrogate.predict(x, cells=cells), surrogate.predict(x)):
        assert np.abs(others[:, 0] - expected).max() > 1e-5
    np.savez(tmp_path / "bad.npz", x=x, cells=cells.astype(float))
    with pytest.raises(LrsaError, match=r'bad\.npz has "cells" of type float64; it should be integers'):
        predict_path(tmp_path / "run", tmp_path / "bad.npz", tmp_path / "out.npz")


@pytest.mark.usefixtures("_no_guess")
@pytest.mark.parametrize("model", MODELS)
def test_predictions_come_back_on_the_same_cells(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))
    run, source = tmp_path / "run", imported.with_suffix("") / "case_3.vtu"
    surrogate = lrsa.fit(imported, out=run, model=model, epochs=1, threads=1, options=MODELS[model])
    predict_path(run, source, tmp_path / "out.vtu")
    before: Any = pv.read(source)
    after: Any = pv.read(tmp_path / "out.vtu")
    assert np.array_equal(after.cells, before.cells)
    assert np.array_equal(after.celltypes, before.celltypes)
    case = next(
        case for split in ("train", "test") for case in Dataset(imported, split) if height(case) < 0.06
    )
    given: dict[str, Any] = {"weights": case.weights, "cells": case.cells}
    asked: Callable[..., np.ndarray] = surrogate.predict
    expected = asked(case.x, case.f, cell_types=case.cell_types, **given)[:, 0]
    np.testing.assert_allclose(after["p_predicted"], expected, rtol=1e-4, atol=1e-5)
    polygons = asked(case.x, case.f, cell_types=np.full(len(case.arrays()["cells"]), 7), **given)[:, 0]
    assert np.abs(polygons - expected).max() > 1e-4, "the types make no difference"
