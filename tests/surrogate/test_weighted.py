"""A run trained with quadrature weights says the same, however it is asked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
from test_mesh_predict import TINY, plate

import lrsa
from lrsa.cli.program import main
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.mesh.importing import import_meshes

CASES = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plates of uneven triangles, and a run that was trained on them with the measures of their points."""
    folder = tmp_path_factory.mktemp("weighted")
    (folder / "meshes").mkdir()
    for i in range(CASES):
        plate(i).save(folder / "meshes" / f"plate_{i}.vtu")
    import_meshes(folder / "meshes", folder / "data.h5", ["a"], ["p", "U"], derive=["measure"], workers=1)
    lrsa.fit(folder / "data.h5", out=folder / "run", epochs=2, threads=1, options=TINY)
    return folder


@pytest.fixture(scope="module")
def direct(folder: Path) -> dict[str, np.ndarray]:
    """Of every test case, by the name of its file: what `Surrogate.predict` says."""
    surrogate, tests = lrsa.load(folder / "run"), Dataset(folder / "data.h5", "test")
    assert surrogate.weighted
    names: list[str] = tests.schema.provenance["cases"]["test"]
    return {name: surrogate.predict(case) for name, case in zip(names, tests, strict=True)}


def test_the_weights_of_the_case_are_those_of_its_cells_and_they_matter(
    folder: Path, direct: dict[str, np.ndarray]
) -> None:
    surrogate, tests = lrsa.load(folder / "run"), Dataset(folder / "data.h5", "test")
    for case, u in zip(tests, direct.values(), strict=True):
        np.testing.assert_allclose(surrogate.predict(replace(case, weights=None)), u, atol=1e-5)
        even = replace(case, weights=np.ones(len(case), np.float32))
        assert np.abs(surrogate.predict(even) - u).max() > 1e-3
        with pytest.raises(LrsaError, match="trained with quadrature weights, and the case has neither"):
            surrogate.predict(replace(case, weights=None, cells=None, cell_types=None))


def test_the_command_predicts_the_same_into_meshes_and_data(
    folder: Path, direct: dict[str, np.ndarray], tmp_path: Path
) -> None:
    run = str(folder / "run")
    for name, u in direct.items():
        file = next((folder / "meshes").glob(f"{Path(name).stem}*"))
        assert main(["predict", run, str(file), "--out", str(tmp_path / "out.vtu")]) == 0
        after: Any = pv.read(tmp_path / "out.vtu")
        found = np.column_stack([after["p_predicted"], after["U_predicted"]])[:, : u.shape[1]]
        np.testing.assert_allclose(found, u, atol=1e-5)
    assert main(["predict", run, str(folder / "data.h5"), "--out", str(tmp_path / "out.h5")]) == 0
    for case, u in zip(Dataset(tmp_path / "out.h5", "test"), direct.values(), strict=True):
        assert case.u is not None
        np.testing.assert_array_equal(case.u, u)


def test_the_evaluation_is_that_of_these_predictions(folder: Path, direct: dict[str, np.ndarray]) -> None:
    assert main(["evaluate", str(folder / "run")]) == 0
    kept = json.loads((folder / "run" / "evaluation.json").read_text())
    tests = Dataset(folder / "data.h5", "test")
    for row, case, name in zip(kept["table"], tests, direct, strict=True):
        assert row["name"] == name
        assert case.u is not None
        error = np.linalg.norm(direct[name] - case.u) / np.linalg.norm(case.u)
        assert row["relative_l2"] == pytest.approx(error, rel=1e-5)
