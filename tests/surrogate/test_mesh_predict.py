"""Files in, the same files with predictions out: every format, refusals, ranges, query points, times."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import pyvista as pv
import torch
from pyarrow import parquet
from small import files, say
from test_mesh_reading import write_cgns, write_ensight, write_openfoam

import lrsa
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.mesh.importing import import_meshes
from lrsa.mesh.reading import blocks_of, open_mesh
from lrsa.surrogate import predict_files as predicting
from lrsa.surrogate.predict_files import predict_path
from lrsa.surrogate.query import encode_streamed
from lrsa.surrogate.ranges import Ranges

TINY = {"width": 16, "depth": 2, "heads": 2, "rank": 4}
CASES = 6


def plate(seed: int, moved: float = 0.0) -> pv.UnstructuredGrid:
    """Triangles on the unit square in the plane z = 0: input a, targets p and the vector U, all at points."""
    rng = np.random.default_rng(seed)
    inner = rng.uniform(0.05, 0.95, (20 + seed, 2))
    x = np.concatenate([[[0, 0], [1, 0], [0, 1], [1, 1]], inner])
    cloud = pv.PolyData(np.c_[x, np.zeros(len(x))])
    mesh = cloud.delaunay_2d().cast_to_unstructured_grid()
    mesh.points = np.asarray(mesh.points, np.float64) + np.array([moved, 0, 0])
    return dressed(mesh)


def dressed(mesh: Any) -> Any:
    """The mesh with fields that follow from its coordinates, at points and cells."""
    for data, (x, y, z) in (
        (mesh.point_data, np.asarray(mesh.points, np.float64).T),
        (mesh.cell_data, np.asarray(mesh.cell_centers().points, np.float64).T),
    ):
        data["a"], data["p"] = np.sin(x + z), x * y
        data["U"] = np.stack([x, y, x + y], axis=1).astype(np.float32)
        data["id"] = np.arange(len(x), dtype=np.int32)
    return mesh


def train(folder: Path, **options: Any) -> Path:
    """Import the files of a folder and train for one epoch."""
    table = folder / "cases.csv"
    data = folder.with_suffix(".h5")
    imported: dict[str, Any] = {"inputs": ["a"], "targets": ["p", "U"], "workers": 1}
    import_meshes(folder, data, globals_table=table if table.exists() else None, **{**imported, **options})
    run = folder.with_suffix(".run")
    lrsa.fit(data, out=run, epochs=1, threads=1, options=TINY)
    Ranges.of(Dataset(data, "train")).save(run)
    return run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained on six plates, each with a parameter."""
    folder = tmp_path_factory.mktemp("plates") / "cases"
    folder.mkdir()
    for i in range(CASES):
        plate(i).save(folder / f"plate_{i}.vtu")
    rows = "".join(f"plate_{i},{100 + 10 * i}\n" for i in range(CASES))
    (folder / "cases.csv").write_text(f"case,Re\n{rows}")
    return train(folder)


@pytest.fixture(scope="module")
def meshes(run: Path) -> Path:
    return run.with_suffix("")


@pytest.fixture(scope="module")
def solids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on boxes in three dimensions without parameters."""
    folder = tmp_path_factory.mktemp("solids") / "cases"
    folder.mkdir()
    for i in range(4):
        dressed(box(3 + i)).save(folder / f"box_{i}.vtu")
    return train(folder)


def box(n: int) -> pv.UnstructuredGrid:
    return pv.ImageData(dimensions=(n, 3, 4), spacing=(1 / (n - 1), 1 / 2, 1 / 3)).cast_to_unstructured_grid()


def parameters(folder: Path, **rows: float) -> Path:
    path = folder / "globals.csv"
    path.write_text("case,Re\n" + "".join(f"{name},{value}\n" for name, value in rows.items()))
    return path


def expected(run: Path, points: np.ndarray, a: np.ndarray, reynolds: float | None = None) -> np.ndarray:
    """What the surrogate says, asked directly."""
    parameter = None if reynolds is None else [reynolds]
    return lrsa.load(run).predict(points, np.reshape(a, (-1, 1)), globals=parameter)


def assert_untouched(after: Any, before: Any, new: set[str]) -> None:
    """Points, topology and all other arrays are equal."""
    if isinstance(before, pv.MultiBlock):
        assert after.keys() == before.keys()
        for ours, theirs in zip(after, before, strict=True):
            assert_untouched(ours, theirs, new)
        return
    assert np.array_equal(after.points, before.points)
    ours, theirs = (mesh.cast_to_unstructured_grid() for mesh in (after, before))
    assert np.array_equal(ours.cells, theirs.cells)
    assert np.array_equal(ours.celltypes, theirs.celltypes)
    for kind in ("point_data", "cell_data"):
        assert set(getattr(after, kind)) - new == set(getattr(before, kind))
        for name, values in getattr(before, kind).items():
            assert np.array_equal(getattr(after, kind)[name], values)


NEW = {"p_predicted", "U_predicted", "p_error", "U_error"}


def test_a_plate_comes_back_with_predictions_and_nothing_else_changed(
    run: Path, meshes: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.vtu"
    summary = predict_path(run, meshes / "plate_2.vtu", out, globals_table=meshes / "cases.csv")
    before, after = pv.read(meshes / "plate_2.vtu"), pv.read(out)
    assert_untouched(after, before, NEW)
    u = expected(run, before.points, before.point_data["a"], 120.0)
    np.testing.assert_allclose(after.point_data["p_predicted"], u[:, 0], atol=1e-6)
    np.testing.assert_allclose(after.point_data["U_predicted"], u[:, 1:], atol=1e-6)
    np.testing.assert_allclose(after.point_data["U_error"], u[:, 1:] - before.point_data["U"], atol=1e-6)
    assert (summary.cases, summary.written, summary.notes, summary.warnings) == (1, [out], [], [])


def test_a_folder_keeps_its_names_and_no_training_case_is_warned_of(
    run: Path, meshes: Path, tmp_path: Path
) -> None:
    out, seen = tmp_path / "out", []
    summary = predict_path(
        run, meshes, out, globals_table=meshes / "cases.csv", progress=lambda *state: seen.append(state)
    )
    assert sorted(p.name for p in out.iterdir()) == [f"plate_{i}.vtu" for i in range(CASES)]
    assert seen[-1][:2] == (2 * CASES, 2 * CASES)
    tests = Dataset(meshes.with_suffix(".h5"), "test").schema.provenance["cases"]["test"]
    assert not [line for line in summary.warnings if not any(name in line for name in tests)]


def saved(suffix: str) -> Callable[[Path], tuple[Path, Any]]:
    """Write a box in a format of VTK."""

    def write(folder: Path) -> tuple[Path, Any]:
        mesh: Any = box(4)
        if suffix in (".vti", ".vtr", ".vts"):
            image = pv.ImageData(dimensions=(4, 3, 4), spacing=(1 / 3, 1 / 2, 1 / 3))
            mesh = {
                ".vti": image,
                ".vtr": image.cast_to_rectilinear_grid(),
                ".vts": image.cast_to_structured_grid(),
            }[suffix]
        if suffix == ".vtp":
            mesh = mesh.extract_surface(algorithm="dataset_surface", pass_pointid=False, pass_cellid=False)
        mesh = dressed(mesh)
        if suffix == ".vtm":
            other = dressed(box(3).translate((0.0, 0.0, 0.1)))
            mesh = pv.MultiBlock({"a": mesh, "in": pv.MultiBlock({"b": other})})
        mesh.save(folder / f"case{suffix}")
        return folder / f"case{suffix}", pv.read(folder / f"case{suffix}")

    return write


@pytest.mark.parametrize("suffix", [".vtu", ".vtp", ".vtk", ".vti", ".vtr", ".vts", ".vtm"])
def test_round_trip_of_the_formats_of_vtk(solids: Path, tmp_path: Path, suffix: str) -> None:
    path, before = saved(suffix)(tmp_path)
    out = tmp_path / "new" / f"out{suffix}"
    summary = predict_path(solids, path, out)
    after = pv.read(out)
    assert summary.notes == []
    assert_untouched(after, before, NEW)
    leaves = [(after["a"], before["a"]), (after["in"]["b"], before["in"]["b"])] if suffix == ".vtm" else []  # pyright: ignore[reportOptionalSubscript]
    pairs = leaves or [(after, before)]
    points = np.concatenate([old.points for _, old in pairs])
    u = expected(solids, points, np.concatenate([old.point_data["a"] for _, old in pairs]))
    told = np.concatenate([new.point_data["p_predicted"] for new, _ in pairs])
    np.testing.assert_allclose(told, u[:, 0], atol=1e-6)


def test_xdmf_comes_out_as_vtu_and_a_name_that_cannot_be_written_is_refused(
    solids: Path, tmp_path: Path
) -> None:
    meshio = pytest.importorskip("meshio")
    mesh = dressed(box(4))
    cells = [("hexahedron", mesh.cells_dict[pv.CellType.VOXEL][:, [0, 1, 3, 2, 4, 5, 7, 6]])]
    data = {name: np.asarray(mesh.point_data[name]) for name in ("a", "p", "U")}
    meshio.Mesh(np.asarray(mesh.points), cells, data).write(tmp_path / "case.xdmf", data_format="XML")
    with pytest.raises(LrsaError, match=r"cannot be written as .xdmf: name it --out .*out\.vtu"):
        predict_path(solids, tmp_path / "case.xdmf", tmp_path / "out.xdmf")
    assert not (tmp_path / "out.xdmf").exists()
    summary = predict_path(solids, tmp_path / "case.xdmf", tmp_path / "out.vtu")
    assert summary.written == [tmp_path / "out.vtu"]
    assert summary.notes == [
        f"case.xdmf: no fields can be written to .xdmf files, see {tmp_path / 'out.vtu'}"
    ]
    after = pv.read(tmp_path / "out.vtu")
    assert np.array_equal(after.point_data["a"], mesh.point_data["a"])
    u = expected(solids, mesh.points, mesh.point_data["a"])
    np.testing.assert_allclose(after.point_data["U_predicted"], u[:, 1:], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "write", "told"),
    [
        ("case.cgns", lambda folder: write_cgns(folder / "case.cgns"), "case.vtm"),
        ("", write_openfoam, "1.vtm"),
        ("case.case", write_ensight, "case.pvd"),
    ],
)
def test_formats_that_vtk_reads_only_come_out_in_its_own(
    tmp_path: Path, name: str, write: Callable[[Path], None], told: str
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    for i in range(2):
        (folder / str(i)).mkdir(parents=True)
        write(folder / str(i))
    run = train(folder, inputs=[], targets=["p"])
    source, target = (folder / "1" / name, out / told) if name else (folder, out)
    if name:
        with pytest.raises(LrsaError, match=f"name it --out .*{told}"):
            predict_path(run, source, out / name)
    summary = predict_path(run, source, target)
    assert summary.written[-1] == out / told
    assert "no fields can be written" in summary.notes[-1]
    before, after = open_mesh(folder / "1" / name), open_mesh(out / told)
    new = {"p_predicted", "p_error"}
    for block, old in zip(blocks_of(after), blocks_of(before), strict=True):
        assert_untouched(block, old, new)
        errors = block.point_data["p_predicted"] - old.point_data["p"]
        np.testing.assert_allclose(block.point_data["p_error"], errors, atol=1e-5)


@pytest.mark.parametrize("suffix", [".stl", ".ply", ".obj"])
def test_geometry_takes_its_inputs_from_the_table_beside_it_and_comes_out_as_vtp(
    solids: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"case{suffix}"
    pv.Box((0, 1, 0, 1, 0, 1)).triangulate().save(path)
    mesh = pv.read(path)
    a = np.linspace(0, 1, mesh.n_points)
    path.with_suffix(".csv").write_text("a\n" + "\n".join(map(str, a)))
    summary = predict_path(solids, path, tmp_path / "out.vtp")
    after = pv.read(tmp_path / "out.vtp")
    assert np.array_equal(after.points, mesh.points)
    assert np.array_equal(after.faces, mesh.faces)
    np.testing.assert_allclose(
        after.point_data["p_predicted"], expected(solids, mesh.points, a)[:, 0], atol=1e-6
    )
    assert "no fields can be written" in summary.notes[0]


def columns(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.random((15, 3))
    return {"x": x, "a": rng.random(15), "p": rng.random(15)}


@pytest.mark.parametrize("suffix", [".npz", ".h5", ".csv", ".parquet"])
def test_round_trip_of_tables(solids: Path, tmp_path: Path, suffix: str) -> None:
    path, out, arrays = tmp_path / f"case{suffix}", tmp_path / f"out{suffix}", columns()
    flat = {"x": arrays["x"][:, 0], "y": arrays["x"][:, 1], "z": arrays["x"][:, 2]} | {
        k: arrays[k] for k in ("a", "p")
    }
    if suffix == ".npz":
        np.savez(path, **arrays)  # pyright: ignore[reportArgumentType]
    elif suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.update(arrays)
    elif suffix == ".parquet":
        parquet.write_table(pa.table(flat), path)
    else:
        lines = [
            ",".join(flat),
            *(",".join(map(repr, map(float, row))) for row in zip(*flat.values(), strict=True)),
        ]
        path.write_text("\n".join(lines))
    predict_path(solids, path, out)
    after: dict[str, Any]
    if suffix == ".npz":
        with np.load(out) as file:
            after = dict(file)
    elif suffix == ".h5":
        with h5py.File(out) as file:
            after = {name: np.asarray(value) for name, value in file.items()}
    elif suffix == ".parquet":
        after = {n: c.to_numpy() for n, c in zip(flat, parquet.read_table(out).columns, strict=False)}
        after |= {
            n: parquet.read_table(out)[n].to_numpy() for n in ("p_predicted", "p_error", "U_predicted:2")
        }
    else:
        with open(out) as file:
            after = {k: np.array([float(v) for v in vs]) for k, *vs in zip(*csv.reader(file), strict=True)}
    for name, values in (arrays if suffix in (".npz", ".h5") else flat).items():
        assert np.array_equal(after[name], values)
    u = expected(solids, arrays["x"], arrays["a"])
    np.testing.assert_allclose(after["p_predicted"], u[:, 0], atol=1e-6)
    np.testing.assert_allclose(after["p_error"], u[:, 0] - arrays["p"], atol=1e-6)
    last = after["U_predicted"][:, 2] if suffix in (".npz", ".h5") else after["U_predicted:2"]
    np.testing.assert_allclose(last, u[:, 3], atol=1e-6)


def test_all_groups_of_an_hdf5_file_are_predicted_into_one_file(solids: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "all.h5", "w") as file:
        for i in range(3):
            file.create_group(f"case_{i}").update(columns(i))
    summary = predict_path(solids, tmp_path / "all.h5", tmp_path / "out.h5")
    assert (summary.cases, summary.written) == (3, [tmp_path / "out.h5"])
    with h5py.File(tmp_path / "out.h5") as file:
        for i in range(3):
            told: Any = file[f"case_{i}/p_predicted"]
            u = expected(solids, columns(i)["x"], columns(i)["a"])
            np.testing.assert_allclose(told, u[:, 0], atol=1e-6)


def test_a_cell_recipe_writes_cell_arrays(tmp_path: Path) -> None:
    folder = tmp_path / "cells"
    folder.mkdir()
    for i in range(3):
        mesh = plate(i)
        mesh.point_data.clear()
        mesh.save(folder / f"{i}.vtu")
    run = train(folder)
    predict_path(run, folder / "1.vtu", tmp_path / "out.vtu")
    before, after = pv.read(folder / "1.vtu"), pv.read(tmp_path / "out.vtu")
    assert_untouched(after, before, NEW)
    assert not len(after.point_data)
    u = expected(run, before.cell_centers().points, before.cell_data["a"])
    np.testing.assert_allclose(after.cell_data["p_predicted"], u[:, 0], atol=1e-5)


def test_the_error_is_unknown_where_the_truth_is(solids: Path, tmp_path: Path) -> None:
    mesh = dressed(box(4))
    mesh.point_data["p"][:5] = np.nan
    del mesh.point_data["U"], mesh.cell_data["U"]
    mesh.save(tmp_path / "in.vtu")
    predict_path(solids, tmp_path / "in.vtu", tmp_path / "out.vtu")
    after = pv.read(tmp_path / "out.vtu")
    assert np.isfinite(after.point_data["p_predicted"]).all()
    assert np.array_equal(np.isnan(after.point_data["p_error"]), np.isnan(mesh.point_data["p"]))
    assert "U_predicted" in after.point_data
    assert "U_error" not in after.point_data


def test_a_case_outside_the_training_range_is_warned_of_by_channel_and_distance(
    run: Path, tmp_path: Path
) -> None:
    plate(1, moved=3.0).save(tmp_path / "far.vtu")
    low, high = Ranges.load(run).spans["parameter Re"]  # pyright: ignore[reportOptionalMemberAccess]
    table = parameters(tmp_path, far=high + 2 * (high - low))
    summary = predict_path(run, tmp_path / "far.vtu", tmp_path / "out.vtu", globals_table=table)
    assert summary.warnings[0].startswith("far.vtu: coordinate x is 3 to 4, trained on 0 to 1: 3 ranges")
    assert any("parameter Re" in line and line.endswith("2 ranges outside") for line in summary.warnings)
    assert not any("coordinate y" in line or "coordinate z" in line for line in summary.warnings)


def at_points(path: Path, x: np.ndarray, header: str, **more: np.ndarray) -> Path:
    np.savetxt(
        path,
        np.c_[x, *more.values()],
        header=",".join([header, *more]),
        comments="",
        delimiter=",",
        fmt="%.17g",
    )
    return path


def test_query_points_that_are_mesh_points_get_the_prediction_of_the_mesh(
    run: Path, meshes: Path, tmp_path: Path
) -> None:
    path, table = meshes / "plate_3.vtu", meshes / "cases.csv"
    mesh = pv.read(path)
    query = at_points(tmp_path / "q.csv", mesh.points[::-1, :2], "x,y")
    summary = predict_path(run, path, tmp_path / "out.csv", globals_table=table, at=query)
    told = np.genfromtxt(tmp_path / "out.csv", names=True, delimiter=",")
    assert told.dtype.names == ("x", "y", "p_predicted", "U_x_predicted", "U_y_predicted", "U_z_predicted")
    u = expected(run, mesh.points, mesh.point_data["a"], 130.0)[::-1]
    np.testing.assert_allclose(told["p_predicted"], u[:, 0], atol=1e-6)
    np.testing.assert_allclose(told["U_z_predicted"], u[:, 3], atol=1e-6)
    assert summary.notes == ["q.csv has no a: taken from the nearest point of plate_3.vtu"]


def test_inputs_of_query_points_come_from_their_own_columns(solids: Path, tmp_path: Path) -> None:
    dressed(box(4)).save(tmp_path / "in.vtu")
    x = np.full((2, 3), 0.4)
    query = at_points(tmp_path / "q.csv", x, "x,y,z", a=np.array([0.1, 0.9]))
    summary = predict_path(solids, tmp_path / "in.vtu", tmp_path / "out.csv", at=query)
    told = np.genfromtxt(tmp_path / "out.csv", names=True, delimiter=",")
    assert abs(told["p_predicted"][0] - told["p_predicted"][1]) > 1e-6
    assert summary.notes == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,y,z\n0,0,0\n0,,0\n", r'q\.csv has no number in column "y" of row 3, but ""'),
        ("x,y,z,a\n0,0,0,-\n0,0,0,1\n", r'q\.csv has no number in column "a" of row 2, but "-"'),
    ],
)
def test_a_query_point_without_a_number_is_named_by_its_row(
    solids: Path, tmp_path: Path, text: str, said: str
) -> None:
    dressed(box(4)).save(tmp_path / "in.vtu")
    (tmp_path / "q.csv").write_text(text)
    with pytest.raises(LrsaError, match=said):
        predict_path(solids, tmp_path / "in.vtu", tmp_path / "out.csv", at=tmp_path / "q.csv")


def test_encoding_in_chunks_is_exact(solids: Path) -> None:
    model = lrsa.load(solids).model.double()
    assert isinstance(model, lrsa.NeuralOperator)
    x, f = torch.rand(1, 50, 3, dtype=torch.float64), torch.rand(1, 50, 1, dtype=torch.float64)
    context = lrsa.Context(weights=0.1 + torch.rand(1, 50, dtype=torch.float64))
    whole, parts = model.encode(x, f, context), encode_streamed(model, x, f, context, chunk=7)
    for ours, theirs in zip(parts.latents, whole.latents, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on plates whose p grows in time."""
    folder = tmp_path_factory.mktemp("series") / "cases"
    for i in range(3):
        write_series(folder, i)
    return train(folder, targets=["p"])


def write_series(folder: Path, i: int) -> Path:
    pieces = folder / f"s{i}"
    pieces.mkdir(parents=True)
    rows = []
    for k in range(3):
        mesh = plate(i)
        mesh.point_data["p"] = (1 + k) * mesh.point_data["p"]
        mesh.save(pieces / f"{k}.vtu")
        rows.append(f'<DataSet timestep="{0.5 * k}" part="0" file="s{i}/{k}.vtu"/>')
    text = f'<VTKFile type="Collection" version="0.1"><Collection>{"".join(rows)}</Collection></VTKFile>'
    (folder / f"s{i}.pvd").write_text(text)
    return folder / f"s{i}.pvd"


def test_a_series_is_predicted_at_its_times_with_the_error_of_each(series: Path, tmp_path: Path) -> None:
    source = series.with_suffix("") / "s1.pvd"
    summary = predict_path(series, source, tmp_path / "out.pvd")
    assert summary.written == [tmp_path / "out.pvd"]
    reader: Any = pv.get_reader(tmp_path / "out.pvd")
    assert reader.time_values == [0.0, 0.5, 1.0]
    for k, time in enumerate(reader.time_values):
        reader.set_active_time_value(time)
        after, before = reader.read()[0], pv.read(series.with_suffix("") / "s1" / f"{k}.vtu")
        assert_untouched(after, before, {"p_predicted", "p_error"})
        f = np.reshape(before.point_data["a"], (-1, 1))
        u = lrsa.load(series).predict(before.points, f, time=np.float32(time))
        np.testing.assert_allclose(after.point_data["p_predicted"], u[:, 0], atol=1e-6)
        np.testing.assert_allclose(after.point_data["p_error"], u[:, 0] - before.point_data["p"], atol=1e-6)


def test_one_time_can_be_asked_for(series: Path, tmp_path: Path) -> None:
    plate(0).save(tmp_path / "in.vtu")
    with pytest.raises(LrsaError, match=r"in[.]vtu has none: give it with --time"):
        predict_path(series, tmp_path / "in.vtu", tmp_path / "out.vtu")
    predict_path(series, tmp_path / "in.vtu", tmp_path / "out.vtu", times=[0.25])
    after = pv.read(tmp_path / "out.vtu")
    u = lrsa.load(series).predict(
        after.points, np.reshape(after.point_data["a"], (-1, 1)), time=np.float32(0.25)
    )
    np.testing.assert_allclose(after.point_data["p_predicted"], u[:, 0], atol=1e-6)
    assert "p_error" not in after.point_data


def test_query_points_at_all_times(series: Path, tmp_path: Path) -> None:
    source = series.with_suffix("") / "s1.pvd"
    query = at_points(tmp_path / "q.csv", np.full((2, 2), 0.5), "x,y")
    predict_path(series, source, tmp_path / "out.csv", at=query)
    told = np.genfromtxt(tmp_path / "out.csv", names=True, delimiter=",")
    assert told["time"].tolist() == [0, 0, 0.5, 0.5, 1, 1]


def damaged(mesh: Any, what: str) -> Any:
    if what == "missing array":
        del mesh.point_data["a"], mesh.cell_data["a"]
    elif what == "component counts":
        mesh.point_data["a"] = np.zeros((mesh.n_points, 3))
    elif what == "dimensions":
        mesh.points[:, 2] = np.linspace(0, 1, mesh.n_points)
    elif what == "NaN":
        mesh.point_data["a"][3] = np.nan
    return mesh


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("missing array", r'bad\.vtu has no array "a" \(it has: .*p.*\)'),
        ("component counts", r'bad\.vtu has "a" with 3 components, but .* was trained with 1'),
        ("dimensions", r"trained on points of one z, but those of bad\.vtu reach from 0 to 1"),
        ("NaN", r'bad\.vtu has NaN in input "a"'),
        ("no row", r"globals\.csv has no row for .*bad\.vtu"),
        ("truncated", r"bad\.vtu"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_is_written(
    run: Path, tmp_path: Path, what: str, said: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    plate(0).save(folder / "a_good.vtu")
    damaged(plate(1), what).save(folder / "bad.vtu")
    if what == "truncated":
        (folder / "bad.vtu").write_bytes((folder / "bad.vtu").read_bytes()[:700])
    table = parameters(tmp_path, a_good=110, **({} if what == "no row" else {"bad": 120}))
    with pytest.raises(LrsaError, match=said):
        predict_path(run, folder, tmp_path / "out", globals_table=table)
    assert not (tmp_path / "out").exists()


def test_a_run_with_parameters_asks_for_their_table(run: Path, meshes: Path, tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match="trained with Re for every case: give them with --globals"):
        predict_path(run, meshes / "plate_0.vtu", tmp_path / "out.vtu")
    (tmp_path / "g.csv").write_text("case,Ma\nplate_0,1\n")
    with pytest.raises(LrsaError, match=r"no column Re \(it has: Ma\)"):
        predict_path(run, meshes / "plate_0.vtu", tmp_path / "out.vtu", globals_table=tmp_path / "g.csv")


def test_other_refusals(solids: Path, tmp_path: Path) -> None:
    mesh = dressed(box(4))
    mesh.save(tmp_path / "in.vtu")
    source, out = tmp_path / "in.vtu", tmp_path / "out.vtu"
    with pytest.raises(LrsaError, match="is the input itself"):
        predict_path(solids, source, source)
    with pytest.raises(LrsaError, match="knows no time"):
        predict_path(solids, source, out, times=[1.0])
    with pytest.raises(LrsaError, match="does not exist"):
        predict_path(solids, tmp_path / "none.vtu", out)
    with pytest.raises(LrsaError, match="trained with 1 input arrays"):
        predict_path(solids, source, out, inputs=["a", "p"])
    query = at_points(tmp_path / "q.csv", np.zeros((1, 2)), "x,y")
    with pytest.raises(LrsaError, match='no column "z"'):
        predict_path(solids, source, tmp_path / "out.csv", at=query)
    flat = {"x": np.zeros((4, 2)), "a": np.zeros(4)}
    np.savez(tmp_path / "flat.npz", **flat)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LrsaError, match=r"trained in 3 dimensions, but flat\.npz has 2"):
        predict_path(solids, tmp_path / "flat.npz", tmp_path / "out.npz")


@pytest.mark.parametrize(
    ("at", "out", "said"),
    [
        (False, "in", r"in\.vtu is the input itself: name another --out"),
        (False, "cases.vtu", r"cases\.vtu is the file of --globals: name another --out"),
        (True, "q.csv", r"q\.csv is the file of --at: name another --out"),
        (True, "out.vtu", r"predictions at query points are a CSV file: name it --out .*out\.csv"),
    ],
)
def test_nothing_that_is_read_is_written_over(
    run: Path, meshes: Path, tmp_path: Path, at: bool, out: str, said: str
) -> None:
    """Whatever the output is called: a mesh whose suffix is left out gets its own."""
    shutil.copy(meshes / "plate_1.vtu", tmp_path / "in.vtu")
    table = parameters(tmp_path, **{"in": 110}).rename(tmp_path / "cases.vtu")
    query = at_points(tmp_path / "q.csv", np.full((2, 2), 0.5), "x,y")
    before = files(tmp_path)
    with pytest.raises(LrsaError, match=said):
        predict_path(run, tmp_path / "in.vtu", tmp_path / out, globals_table=table, at=query if at else None)
    assert files(tmp_path) == before


def test_the_command_names_the_file_that_it_wrote(
    run: Path, meshes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--globals", meshes / "cases.csv", "--out", tmp_path / "named")
    said = say(capsys, "predict", run, meshes / "plate_1.vtu", *words)
    assert f"{tmp_path / 'named.vtu'}: 1 case predicted" in said
    assert (tmp_path / "named.vtu").exists()


def test_inputs_may_have_other_names(solids: Path, tmp_path: Path) -> None:
    mesh = dressed(box(4))
    del mesh.cell_data["a"]
    mesh.rename_array("a", "alpha")
    mesh.save(tmp_path / "in.vtu")
    predict_path(solids, tmp_path / "in.vtu", tmp_path / "out.vtu", inputs=["alpha"])
    after = pv.read(tmp_path / "out.vtu")
    u = expected(solids, after.points, after.point_data["alpha"])
    np.testing.assert_allclose(after.point_data["p_predicted"], u[:, 0], atol=1e-6)


def test_cases_that_are_not_held_are_read_again(
    run: Path, meshes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = meshes / "cases.csv"
    predict_path(run, meshes, tmp_path / "held", globals_table=table)
    monkeypatch.setattr(predicting, "HELD", 0)
    predict_path(run, meshes, tmp_path / "again", globals_table=table)
    for i in range(CASES):
        ours, theirs = (pv.read(tmp_path / name / f"plate_{i}.vtu") for name in ("held", "again"))
        assert np.array_equal(ours.point_data["p_predicted"], theirs.point_data["p_predicted"])
