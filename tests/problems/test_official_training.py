"""The published files, imported and trained on in the published configuration.

The files are written key by key as published (names, axes, counts), only with fewer points.
"""

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
from small import refusal, say
from test_official_airfrans import publish as airfrans
from test_official_shapenet_car import SMALL
from test_official_shapenet_car import publish as shapenet_car

import lrsa
from lrsa.models.presets import PRESETS
from lrsa.problems.catalogue import CATALOGUE
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
RNG = np.random.default_rng(0)


def elasticity(folder: Path) -> None:
    """sigma (points, 2000), XY (points, 2, 2000), rr (42, 2000): the first 1000 and the last 200."""
    np.save(folder / "Random_UnitCell_sigma_10.npy", 200 * RNG.random((12, 2000)))
    np.save(folder / "Random_UnitCell_XY_10.npy", RNG.random((12, 2, 2000)))
    np.save(folder / "Random_UnitCell_rr_10.npy", RNG.random((42, 2000)))


def darcy(folder: Path) -> None:
    """coeff and sol (1024, s, s) in two files of MATLAB 5: the first 1000 and the first 200."""
    for name in ("piececonst_r421_N1024_smooth1.mat", "piececonst_r421_N1024_smooth2.mat"):
        arrays = {"coeff": RNG.choice([3.0, 12.0], (1024, 21, 21)), "sol": RNG.random((1024, 21, 21))}
        scipy.io.savemat(folder / name, arrays)


def navier_stokes(folder: Path) -> None:
    """u (1200, n, n, 20) in MATLAB 7.3, whose axes HDF5 has the other way round."""
    with h5py.File(folder / "NavierStokes_V1e-5_N1200_T20.mat", "w") as file:
        file["u"] = RNG.standard_normal((20, 4, 4, 1200)).astype(np.float32)


def plasticity(folder: Path) -> None:
    """input (987, i) and output (987, i, j, 20, 4): the first 900 and the last 80."""
    arrays = {"input": RNG.random((987, 5)), "output": RNG.random((987, 5, 3, 20, 4))}
    scipy.io.savemat(folder / "plas_N987_T20.mat", arrays)


def airfoil(folder: Path) -> None:
    """X and Y (n, i, j) and Q (n, 5, i, j), whose last field is the Mach number."""
    i, j = np.meshgrid(np.arange(105.0), np.arange(3.0), indexing="ij")
    shift = 1e-3 * np.arange(1202)[:, None, None]
    for axis, array in {"X": i + shift, "Y": j + shift, "Q": RNG.random((1202, 5, 105, 3))}.items():
        np.save(folder / f"NACA_Cylinder_{axis}.npy", array)


def pipe(folder: Path) -> None:
    """X and Y (2310, i, j) and Q (2310, 3, i, j), whose first field is the velocity along x."""
    i, j = np.meshgrid(np.linspace(0, 10, 5), np.linspace(0, 1, 4), indexing="ij")
    shift = RNG.random((2310, 1, 1))
    for axis, array in {"X": i + 0 * shift, "Y": j + shift, "Q": RNG.random((2310, 3, 5, 4))}.items():
        np.save(folder / f"Pipe_{axis}.npy", array)


def heat_transfer(folder: Path) -> None:
    """input (300, n), output (300, N); both meshes, whose cells count from 1 and from 0."""
    scipy.io.savemat(
        folder / "HeatTransfer.mat", {"input": RNG.random((300, 4)), "output": RNG.random((300, 6))}
    )
    points, elements = RNG.random((6, 3)), np.array([[1, 2, 3, 4], [3, 4, 5, 6]])
    scipy.io.savemat(folder / "Part_Mesh.mat", {"points": points, "elements": elements})
    face = {"Points": RNG.random((4, 3)) * [1, 1, 0], "Faces": np.array([[0, 1, 2], [1, 2, 3]])}
    scipy.io.savemat(folder / "lbe_ev_input.mat", {**face, "Eigenvectors": RNG.random((4, 3))})


def irregular_darcy(folder: Path) -> None:
    """c_field and u_field (1200, nodes), MeshNodes (2, nodes), MeshElements (3, ne) counted from 1."""
    arrays = {
        "c_field": RNG.choice([3.0, 12.0], (1200, 5)),
        "u_field": RNG.random((1200, 5)),
        "MeshNodes": np.array([[0.0, 1, 1, 0, 0.5], [0, 0, 1, 1, 0.4]]),
        "MeshElements": np.array([[1, 2, 3, 4], [2, 3, 4, 1], [5, 5, 5, 5]]),
    }
    scipy.io.savemat(folder / "Darcy.mat", arrays)


def composite(folder: Path) -> None:
    """T_field and D_field (500, nodes), Points (nodes, 3), Faces (F, 4): a 3 and corners from 0."""
    scipy.io.savemat(
        folder / "Composites.mat", {"T_field": RNG.random((500, 5)), "D_field": RNG.random((500, 5))}
    )
    faces = np.array([[3, 0, 1, 2], [3, 1, 2, 3], [3, 2, 3, 4]])
    mesh = {"Points": RNG.random((5, 3)), "Faces": faces, "Eigenvectors": RNG.random((5, 3))}
    scipy.io.savemat(folder / "Composites_LBO_basis.mat", mesh)


def pipe_turbulence(folder: Path) -> None:
    """Input and Output (400, nodes), nodes (nodes, 2), elements (3, ne) counted from 1."""
    arrays = {
        "Input": RNG.random((400, 5)),
        "Output": RNG.random((400, 5)),
        "nodes": np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.4]]),
        "elements": np.array([[1, 2, 3, 4], [2, 3, 4, 1], [5, 5, 5, 5]]),
    }
    scipy.io.savemat(folder / "Turbulence.mat", arrays)


WRITERS: dict[str, Callable[[Path], object]] = {
    "elasticity": elasticity,
    "darcy": darcy,
    "navier-stokes": navier_stokes,
    "plasticity": plasticity,
    "airfoil": airfoil,
    "pipe": pipe,
    "heat-transfer": heat_transfer,
    "airfrans": airfrans,
    "irregular-darcy": irregular_darcy,
    "composite": composite,
    "pipe-turbulence": pipe_turbulence,
    "shapenet-car": shapenet_car,
}


@pytest.fixture(autouse=True)
def small_cars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrsa.problems.shapenet_car.official.POINTS", SMALL)


def test_every_problem_with_official_files_is_tried() -> None:
    assert set(WRITERS) == {name for name, problem in CATALOGUE.items() if problem.official}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_the_published_configuration_is_trained_on_the_published_files(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "published"
    folder.mkdir()
    WRITERS[name](folder)
    said = say(capsys, "data", "import", folder, "--problem", name)
    assert f"{name} (official), {CATALOGUE[name].samples} training and {CATALOGUE[name].test} test" in said
    small = ["--train.epochs", 1, "--train.steps", 2, "--threads", 1]
    said = say(capsys, "train", name, "--source", "official", "--scale", "paper", *small, "--out", "run")
    config, row = RunConfig.load(Path("run")), PRESETS[name]
    flag = name == "heat-transfer"  # of two sets of points in one it says which give the input
    expected = {**row.model, "in_features": row.model["in_features"] + flag}
    assert {key: config.options[key] for key in row.model} == expected
    assert (config.train.batch_size, config.train.max_lr, config.train.optimiser) == (
        row.batch_size,
        row.max_lr,
        "adamw",
    )
    assert (config.train.validation, config.data.stride, config.recipe) == (0.0, 1, "paper")
    assert config.schema.source == "official"
    found = json.loads(Path("run/evaluation.json").read_text())
    assert (found["source"], found["cases"]) == ("official", CATALOGUE[name].test)
    assert "official" in said
    assert "official data" in Path("run/report.html").read_text()
    assert len(lrsa.open_dataset(name, "test")) == CATALOGUE[name].test


def test_official_files_that_are_not_imported_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    line = refusal(capsys, "train", "pipe", "--source", "official", "--scale", "paper")
    assert "lrsa data import FOLDER --problem pipe" in line
