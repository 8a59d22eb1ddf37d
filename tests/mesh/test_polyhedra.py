"""Polyhedra give the same measures, surfaces, normals and distances as the hexahedra that they are."""

from pathlib import Path

import numpy as np
import pytest

from lrsa.mesh.derive import Geometry
from lrsa.mesh.reading import read_raw
from lrsa.mesh.survey import summarise

pv = pytest.importorskip("pyvista")


def twins(folder: Path) -> tuple[Path, Path]:
    """A bent block of hexahedra, and the same as polyhedra; the last cells are hexahedra in both."""
    grid = pv.ImageData(dimensions=(4, 3, 3)).cast_to_unstructured_grid()
    points = np.asarray(grid.points, float)
    points[:, 2] += 0.1 * points[:, 0]
    hexes = np.asarray(grid.cells).reshape(-1, 9)[:, 1:][:, [0, 1, 3, 2, 4, 5, 7, 6]]
    rings = np.array([[0, 4, 7, 3], [1, 2, 6, 5], [0, 1, 5, 4], [3, 7, 6, 2], [0, 3, 2, 1], [4, 5, 6, 7]])
    words, types = [], []
    for i, cell in enumerate(hexes):
        if i < len(hexes) - 3:
            faces = [v for ring in cell[rings] for v in (4, *(ring if i % 2 else ring[::-1]))]
            words += [1 + len(faces), 6, *faces]
            types.append(42)
        else:
            words += [8, *cell]
            types.append(12)
    plain = np.column_stack([np.full(len(hexes), 8), hexes]).ravel()
    pv.UnstructuredGrid(plain, np.full(len(hexes), 12), points).save(folder / "plain.vtu")
    pv.UnstructuredGrid(np.array(words), np.array(types), points).save(folder / "poly.vtu")
    return folder / "plain.vtu", folder / "poly.vtu"


@pytest.mark.parametrize("at", ["point", "cell"])
def test_polyhedra_derive_what_hexahedra_do(tmp_path: Path, at: str):
    plain, poly = (Geometry(read_raw(path), at) for path in twins(tmp_path))
    assert 42 in poly.types
    assert poly.measure().sum() == pytest.approx(12)
    np.testing.assert_allclose(poly.measure(), plain.measure(), rtol=1e-6)
    assert np.array_equal(poly.surface(), plain.surface())
    np.testing.assert_allclose(poly.normals(), plain.normals(), atol=1e-6)
    np.testing.assert_allclose(poly.distance(), plain.distance(), atol=1e-6)


def test_their_measure_is_proposed(tmp_path: Path):
    assert summarise(twins(tmp_path)[1]).dimension == 3
