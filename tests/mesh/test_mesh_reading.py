"""Every format, written by other software than ours and read back: the same points, cells and arrays."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import meshio
import numpy as np
import pyarrow as pa
import pytest
import pyvista as pv
from pyarrow import parquet

from lrsa.errors import LrsaError
from lrsa.mesh.finding import case_names, find_cases
from lrsa.mesh.pool import TIMEOUT, Call, ReaderPool
from lrsa.mesh.reading import blocks_of, open_mesh, read_raw, read_raw_safely, times_of
from lrsa.mesh.tables import read_globals

TRIANGLES = np.array([[0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4]])
POINTS = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0.5], [0, 1, 0], [1, 1, 0], [2, 1.5, 0.25]], float)
PRESSURE, VELOCITY = np.linspace(-1, 1, 6), np.arange(18.0).reshape(6, 3) / 7
CELL_FIELD = np.array([3.0, 1.0, 4.0, 1.5])


def surface(kind: Any = None) -> Any:
    """Four triangles with a scalar, a vector and a cell array."""
    mesh = pv.PolyData.from_regular_faces(POINTS, TRIANGLES)
    mesh.point_data["p"], mesh.point_data["U"], mesh.cell_data["k"] = PRESSURE, VELOCITY, CELL_FIELD
    return mesh if kind is None else kind(mesh)


def grid(kind: str) -> Any:
    """A structured mesh of 4 × 3 × 2 points."""
    image = pv.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 1, 2), origin=(1, 2, 3))
    mesh = image if kind == "ImageData" else image.cast_to_rectilinear_grid()
    mesh = mesh.cast_to_structured_grid() if kind == "StructuredGrid" else mesh
    mesh.point_data["p"], mesh.cell_data["k"] = np.arange(24.0), np.arange(6.0)
    return mesh


def assert_surface(raw: Any, tolerance: float = 0.0, cell_field: bool = True) -> None:
    np.testing.assert_allclose(raw.points, POINTS, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(raw.cells, TRIANGLES)
    np.testing.assert_allclose(raw.point_data["p"], PRESSURE, rtol=0, atol=tolerance)
    np.testing.assert_allclose(raw.point_data["U"], VELOCITY, rtol=0, atol=tolerance)
    if cell_field:
        np.testing.assert_allclose(raw.cell_data["k"], CELL_FIELD, rtol=0, atol=tolerance)


@pytest.mark.parametrize(
    ("suffix", "make"),
    [
        (".vtp", surface),
        (".vtk", surface),
        (".vtu", lambda: surface(lambda mesh: mesh.cast_to_unstructured_grid())),
    ],
)
def test_vtk_files_of_triangles(tmp_path: Path, suffix: str, make: Callable[[], Any]) -> None:
    path = tmp_path / f"case{suffix}"
    make().save(path)
    assert_surface(read_raw(path), tolerance=1e-7 if suffix == ".vtk" else 0.0)


@pytest.mark.parametrize(
    ("suffix", "kind"), [(".vti", "ImageData"), (".vtr", "RectilinearGrid"), (".vts", "StructuredGrid")]
)
def test_structured_grids_become_hexahedra_in_the_order_of_vtk(
    tmp_path: Path, suffix: str, kind: str
) -> None:
    mesh = grid(kind)
    mesh.save(tmp_path / f"case{suffix}")
    raw = read_raw(tmp_path / f"case{suffix}")
    np.testing.assert_array_equal(raw.points, mesh.points)
    np.testing.assert_array_equal(raw.point_data["p"], np.arange(24.0))
    np.testing.assert_array_equal(raw.cell_data["k"], np.arange(6.0))
    assert raw.cells is not None
    np.testing.assert_array_equal(raw.cells[0], [0, 1, 5, 4, 12, 13, 17, 16])
    assert raw.cell_types is not None
    assert set(raw.cell_types) == {12}


def test_blocks_are_merged_in_order_and_what_a_block_lacks_is_nan(tmp_path: Path) -> None:
    volume, wall = grid("ImageData").cast_to_unstructured_grid(), surface()
    blocks = pv.MultiBlock()
    blocks.append(volume, "volume")
    blocks.append(pv.MultiBlock({"wall": wall}), "patches")
    blocks.save(tmp_path / "case.vtm")
    raw, leaves = read_raw(tmp_path / "case.vtm"), blocks_of(open_mesh(tmp_path / "case.vtm"))
    assert [leaf.n_points for leaf in leaves] == [24, 6]
    np.testing.assert_array_equal(raw.points, np.concatenate([leaf.points for leaf in leaves]))
    np.testing.assert_array_equal(raw.point_data["p"], np.concatenate([np.arange(24.0), PRESSURE]))
    assert np.isnan(raw.point_data["U"][:24]).all()
    np.testing.assert_array_equal(raw.point_data["U"][24:], VELOCITY)
    assert raw.cells is not None
    np.testing.assert_array_equal(raw.cells[6:, :3], TRIANGLES + 24)
    assert (raw.cells[6:, 3:] == -1).all()
    assert find_cases(tmp_path) == [tmp_path / "case.vtm"]


def test_a_pvd_collection_is_one_case_with_frames(tmp_path: Path) -> None:
    rows = ""
    for i, t in enumerate((0.0, 0.5, 2.0)):
        mesh = surface()
        mesh.point_data["p"] = PRESSURE + t
        mesh.save(tmp_path / f"f{i}.vtp")
        rows += f'<DataSet timestep="{t}" part="0" file="f{i}.vtp"/>'
    text = f'<VTKFile type="Collection" version="0.1"><Collection>{rows}</Collection></VTKFile>'
    (tmp_path / "case.pvd").write_text(text)
    assert find_cases(tmp_path) == [tmp_path / "case.pvd"]
    assert times_of(tmp_path / "case.pvd") == [0.0, 0.5, 2.0]
    raw = read_raw(tmp_path / "case.pvd")
    np.testing.assert_array_equal(raw.times, [0.0, 0.5, 2.0])  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(raw.point_data["p"], PRESSURE + np.array([[0.0], [0.5], [2.0]]))
    np.testing.assert_array_equal(raw.point_data["U"], VELOCITY)  # it does not change


@pytest.mark.parametrize("data_format", ["HDF", "XML"])
def test_xdmf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_format: str) -> None:
    monkeypatch.chdir(tmp_path)
    fields = {"p": PRESSURE, "U": VELOCITY}
    mesh = meshio.Mesh(POINTS, [("triangle", TRIANGLES)], fields, {"k": [CELL_FIELD]})  # pyright: ignore[reportArgumentType]
    meshio.write("case.xdmf", mesh, data_format=data_format)
    assert_surface(read_raw_safely(tmp_path / "case.xdmf"), tolerance=1e-12)
    assert find_cases(tmp_path) == [tmp_path / "case.xdmf"]


def test_xdmf_over_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with meshio.xdmf.TimeSeriesWriter("case.xdmf") as writer:
        writer.write_points_cells(POINTS, [("triangle", TRIANGLES)])
        for t in (0.0, 1.0):
            writer.write_data(t, point_data={"p": PRESSURE * (1 + t)})
    raw = read_raw_safely(tmp_path / "case.xdmf")
    np.testing.assert_allclose(raw.point_data["p"], [PRESSURE, 2 * PRESSURE])
    np.testing.assert_array_equal(raw.points, POINTS)


def test_ensight_over_time(tmp_path: Path) -> None:
    write_ensight(tmp_path)
    raw = read_raw_safely(tmp_path / "case.case")
    np.testing.assert_allclose(raw.points, POINTS, atol=1e-5)
    np.testing.assert_array_equal(raw.cells, TRIANGLES)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(raw.point_data["p"], [PRESSURE, 3 * PRESSURE], atol=1e-5)
    assert find_cases(tmp_path) == [tmp_path / "case.case"]


def test_openfoam_folders_are_cases_with_their_internal_mesh(tmp_path: Path) -> None:
    for name in ("run_1", "run_2"):
        write_openfoam(tmp_path / name)
    assert find_cases(tmp_path) == [tmp_path / "run_1", tmp_path / "run_2"]
    raw = read_raw_safely(tmp_path / "run_1")
    assert raw.points.shape == (12, 3)
    np.testing.assert_array_equal(raw.cell_data["p"], [5.0, 7.0])  # the initial condition is left out
    np.testing.assert_allclose(raw.cell_data["U"], [[1, 0, 0], [2, 0, 0]])
    assert raw.cells is not None
    assert raw.cell_types is not None
    assert set(raw.cell_types) == {12}


def test_cgns(tmp_path: Path) -> None:
    write_cgns(tmp_path / "case.cgns")
    raw = read_raw_safely(tmp_path / "case.cgns")
    np.testing.assert_array_equal(raw.points, POINTS)
    np.testing.assert_array_equal(raw.cells, TRIANGLES)  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(raw.point_data["p"], PRESSURE)


@pytest.mark.parametrize("suffix", [".stl", ".ply", ".obj"])
@pytest.mark.parametrize("rows", [6, 4])
def test_geometry_takes_its_fields_from_the_table_beside_it(tmp_path: Path, suffix: str, rows: int) -> None:
    surface().save(tmp_path / f"case{suffix}")
    lines = "\n".join(f"{i},{i}.5,{2 * i}" for i in range(rows))
    (tmp_path / "case.csv").write_text(f"p,U:0,U:1\n{lines}\n")
    raw = read_raw_safely(tmp_path / f"case{suffix}")
    data = raw.point_data if rows == 6 else raw.cell_data
    np.testing.assert_array_equal(data["p"], np.arange(rows))
    np.testing.assert_array_equal(data["U"][:, 1], 2 * np.arange(rows))
    assert len(raw.points) == 6
    assert find_cases(tmp_path) == [tmp_path / f"case{suffix}"]


def test_a_table_that_fits_neither_points_nor_cells_is_refused(tmp_path: Path) -> None:
    surface().save(tmp_path / "case.stl")
    (tmp_path / "case.csv").write_text("p\n1\n2\n")
    with pytest.raises(LrsaError, match=r"case\.csv has 2 rows.*6 points and 4 cells"):
        read_raw(tmp_path / "case.stl")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_tables_are_point_clouds(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"case{suffix}"
    columns = {
        "x": POINTS[:, 0],
        "Y": POINTS[:, 1],
        "p": PRESSURE,
        "U:0": VELOCITY[:, 0],
        "U:1": VELOCITY[:, 1],
    }
    if suffix == ".parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        mark = "," if suffix == ".csv" else "\t"
        rows = [mark.join(repr(float(v)) for v in row) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join([mark.join(columns), *rows]))
    raw = read_raw(path)
    np.testing.assert_array_equal(raw.points, POINTS[:, :2])
    np.testing.assert_array_equal(raw.point_data["p"], PRESSURE)
    np.testing.assert_array_equal(raw.point_data["U"], VELOCITY[:, :2])


def test_arrays_of_npz_and_hdf5(tmp_path: Path) -> None:
    arrays = {"points": POINTS, "p": PRESSURE, "U": VELOCITY, "cells": TRIANGLES, "k": CELL_FIELD}
    np.savez(tmp_path / "case.npz", **arrays)  # pyright: ignore[reportArgumentType]
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for case in ("b", "a"):
            for name, value in arrays.items():
                file[f"{case}/{name}"] = value
    assert_surface(read_raw(tmp_path / "case.npz"))
    cases = find_cases(tmp_path)
    assert cases == [tmp_path / "case.npz", tmp_path / "many.h5" / "a", tmp_path / "many.h5" / "b"]
    assert_surface(read_raw(cases[1]))
    assert case_names(cases) == ["case", "a", "b"]


def test_cells_in_npz_have_the_types_that_it_says_or_those_of_the_rule(tmp_path: Path) -> None:
    """Six points in a plane are a hexagon, unless the file says that they are a quadratic triangle."""
    arrays = {"points": POINTS[:, :2], "cells": np.array([[0, 1, 2, 5, 4, 3], [0, 1, 4, -1, -1, -1]])}
    np.savez(tmp_path / "bare.npz", **arrays)  # pyright: ignore[reportArgumentType]
    np.savez(tmp_path / "typed.npz", **arrays, cell_types=np.array([22, 5]))  # pyright: ignore[reportArgumentType]
    assert read_raw(tmp_path / "bare.npz").cell_types.tolist() == [7, 5]  # pyright: ignore[reportOptionalMemberAccess]
    assert read_raw(tmp_path / "typed.npz").cell_types.tolist() == [22, 5]  # pyright: ignore[reportOptionalMemberAccess]
    for types, words in (([5], "2 cells, but"), ([5, 300], "not VTK's"), ([5.0, 5.5], "not VTK's")):
        np.savez(tmp_path / "bad.npz", **arrays, cell_types=np.array(types))  # pyright: ignore[reportArgumentType]
        with pytest.raises(LrsaError, match=rf"bad\.npz has .*{words}"):
            read_raw(tmp_path / "bad.npz")


def test_an_npz_file_names_its_grid(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((12, 2))
    np.savez(tmp_path / "case.npz", x=x, p=x[:, 0], grid=[3, 4])
    raw = read_raw(tmp_path / "case.npz")
    assert raw.grid == (3, 4)
    assert list(raw.point_data) == ["p"]
    np.savez(tmp_path / "bad.npz", x=x, p=x[:, 0], grid=[4, 4])
    with pytest.raises(LrsaError, match=r"grid that is not that of its 12 points"):
        read_raw(tmp_path / "bad.npz")


def test_frames_in_npz(tmp_path: Path) -> None:
    frames = np.stack([PRESSURE, 2 * PRESSURE])
    np.savez(tmp_path / "case.npz", x=POINTS[:, 0], y=POINTS[:, 1], times=[0.0, 1.0], p=frames)
    raw = read_raw(tmp_path / "case.npz")
    assert raw.points.shape == (6, 2)
    np.testing.assert_array_equal(raw.point_data["p"], frames)


def test_frames_whose_cells_change_their_types_are_refused(tmp_path: Path) -> None:
    rows = ""
    for i, kind in enumerate((9, 10)):
        pv.UnstructuredGrid([4, 0, 1, 4, 3], [kind], POINTS).save(tmp_path / f"f{i}.vtu")
        rows += f'<DataSet timestep="{i}" part="0" file="f{i}.vtu"/>'
    text = f'<VTKFile type="Collection" version="0.1"><Collection>{rows}</Collection></VTKFile>'
    (tmp_path / "case.pvd").write_text(text)
    with pytest.raises(LrsaError, match="changes its mesh at time 1"):
        read_raw(tmp_path / "case.pvd")


def test_a_mesh_that_moves_has_a_displacement(tmp_path: Path) -> None:
    rows = ""
    for i in range(2):
        mesh = surface()
        mesh.points = mesh.points + 0.25 * i
        mesh.save(tmp_path / f"f{i}.vtp")
        rows += f'<DataSet timestep="{i}" part="0" file="f{i}.vtp"/>'
    text = f'<VTKFile type="Collection" version="0.1"><Collection>{rows}</Collection></VTKFile>'
    (tmp_path / "case.pvd").write_text(text)
    raw = read_raw(tmp_path / "case.pvd")
    np.testing.assert_array_equal(raw.points, POINTS)
    np.testing.assert_array_equal(raw.point_data["displacement"][1], np.full((6, 3), 0.25))


def test_cases_of_one_file_name_are_called_by_their_folders(tmp_path: Path) -> None:
    for name in ("run_1", "run_2"):
        (tmp_path / name).mkdir()
        surface().save(tmp_path / name / "result.vtp")
    cases = find_cases(str(tmp_path / "*" / "*.vtp"))
    assert case_names(cases) == ["run_1", "run_2"]


def test_a_table_of_parameters_may_name_files_or_numbers(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("case;speed;angle\n1;10;0.5\n2;20;1\n")
    table = read_globals(tmp_path / "cases.csv")
    assert table.names == ("speed", "angle")
    np.testing.assert_array_equal(table.of(["x", "2"]), [20.0, 1.0])  # pyright: ignore[reportArgumentType]


def test_a_worker_that_dies_or_hangs_is_replaced_and_its_file_named() -> None:
    calls = [
        Call(os.abort, (), Path("aborts.vtu")),
        Call(os.path.basename, ("a/b",), Path("fine.vtu")),
        Call(time.sleep, (60,), Path("hangs.vtu")),
        Call(os.path.basename, ("a/c",), Path("fine too.vtu")),
    ]
    with ReaderPool(1, timeout=4) as pool:
        results = dict(pool.run(calls))
    assert "aborts.vtu crashed" in str(results[0])
    assert "hangs.vtu was not read in time" in str(results[2])
    assert (results[1], results[3]) == ("b", "c")


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_fault_of_the_file_that_is_read(full: int) -> None:
    with ReaderPool(1) as pool:
        with pytest.raises(OSError) as caught:
            pool.one(Call(exec, (f"raise OSError({full}, 'full')",), Path("a.vtu")))
        assert caught.value.errno == full
        assert "a.vtu" not in str(caught.value)
        with pytest.raises(LrsaError, match=r"a\.vtu is not readable \(OSError: .* bad disk\)"):
            pool.one(Call(exec, (f"raise OSError({errno.EIO}, 'bad disk')",), Path("a.vtu")))


def test_who_works_slowly_on_a_busy_machine_gets_longer_and_who_works_for_nothing_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lrsa.mesh.pool.TIMEOUT", 1.0)
    little = "import time\nfor _ in range(12): sum(range(400_000)); time.sleep(0.25)"
    calls = [
        Call(exec, (little,), Path("waits for its turn.vtu")),
        Call(exec, ("while True: pass",), Path("circles.vtu")),
        Call(time.sleep, (600,), Path("hangs.vtu")),
    ]
    with ReaderPool(1) as pool:
        pool.one(Call(len, ("",), Path("starts.vtu")))
        results = dict(pool.run(calls))
    assert results[0] is None
    assert "circles.vtu was not read in time" in str(results[1])
    assert "hangs.vtu was not read in time" in str(results[2])


def test_the_time_of_a_case_is_by_the_size_of_all_its_files(tmp_path: Path) -> None:
    with ReaderPool(1) as pool:
        (tmp_path / "foam" / "1").mkdir(parents=True)
        (tmp_path / "foam" / "1" / "U").write_bytes(bytes(5_000_000))
        (tmp_path / "foam" / "case.foam").touch()
        for path in (tmp_path / "foam", tmp_path / "foam" / "case.foam"):
            assert pool._allowed(path) == pytest.approx(TIMEOUT + 5)
        (tmp_path / "all.h5").write_bytes(bytes(3_000_000))
        assert pool._allowed(tmp_path / "all.h5" / "case_1") == pytest.approx(TIMEOUT + 3)


def write_ensight(folder: Path) -> None:
    """EnSight Gold in ASCII: one part of triangles, a scalar at two times."""
    (folder / "case.case").write_text(
        "FORMAT\ntype: ensight gold\nGEOMETRY\nmodel: case.geo\nVARIABLE\n"
        "scalar per node: 1 p case_p_****.scl\nTIME\ntime set: 1\nnumber of steps: 2\n"
        "filename start number: 0\nfilename increment: 1\ntime values: 0.0 1.0\n"
    )
    coordinates = "\n".join(f"{v:12.5e}" for v in POINTS.T.ravel())
    cells = "\n".join("".join(f"{v + 1:10d}" for v in cell) for cell in TRIANGLES)
    (folder / "case.geo").write_text(
        f"one\ntwo\nnode id assign\nelement id assign\npart\n{1:10d}\nwall\ncoordinates\n{6:10d}\n"
        f"{coordinates}\ntria3\n{4:10d}\n{cells}\n"
    )
    for i, factor in enumerate((1, 3)):
        values = "\n".join(f"{v:12.5e}" for v in factor * PRESSURE)
        (folder / f"case_p_{i:04d}.scl").write_text(f"p\npart\n{1:10d}\ncoordinates\n{values}\n")


def write_openfoam(folder: Path) -> None:
    """Two unit cubes side by side, at time 0 and at time 1."""

    def put(name: str, kind: str, body: str) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"FoamFile {{ version 2.0; format ascii; class {kind}; object {path.name}; }}\n"
        path.write_text(head + body)

    points = [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1, 2)]
    at = {point: i for i, point in enumerate(points)}
    faces = [[(1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1)]]
    for x in (0, 1):
        faces += [
            [(x, 0, 0), (x, 1, 0), (x + 1, 1, 0), (x + 1, 0, 0)],
            [(x, 0, 1), (x + 1, 0, 1), (x + 1, 1, 1), (x, 1, 1)],
            [(x, 0, 0), (x + 1, 0, 0), (x + 1, 0, 1), (x, 0, 1)],
            [(x, 1, 0), (x, 1, 1), (x + 1, 1, 1), (x + 1, 1, 0)],
        ]
        faces += [[(2 * x, 0, 0), (2 * x, 0, 1), (2 * x, 1, 1), (2 * x, 1, 0)][:: 1 if x == 0 else -1]]
    listed = [f"4({' '.join(str(at[p]) for p in face)})" for face in faces]
    owner = [0] + [0] * 5 + [1] * 5
    put("system/controlDict", "dictionary", "application none;\nstartTime 0;\nendTime 1;\n")
    put(
        "constant/polyMesh/points",
        "vectorField",
        f"12\n({' '.join(f'({x} {y} {z})' for x, y, z in points)})\n",
    )
    put("constant/polyMesh/faces", "faceList", f"11\n({' '.join(listed)})\n")
    put("constant/polyMesh/owner", "labelList", f"11\n({' '.join(map(str, owner))})\n")
    put("constant/polyMesh/neighbour", "labelList", "1\n(1)\n")
    put("constant/polyMesh/boundary", "polyBoundaryMesh", "1\n(walls{type wall;nFaces 10;startFace 1;})\n")
    for t, values in ((0, "0 0"), (1, "5 7")):
        rest = "boundaryField { walls { type zeroGradient; } }\n"
        scalar = f"dimensions [0 2 -2 0 0 0 0];\ninternalField nonuniform List<scalar> 2 ({values});\n"
        vector = "dimensions [0 1 -1 0 0 0 0];\ninternalField nonuniform List<vector> 2 ((1 0 0) (2 0 0));\n"
        put(f"{t}/p", "volScalarField", scalar + rest)
        put(f"{t}/U", "volVectorField", vector + rest)


def write_cgns(path: Path) -> None:
    """One unstructured zone of triangles with a field at its vertices, node by node as in the standard."""

    def node(parent: Any, name: str, label: str, kind: str = "MT", data: Any = None) -> Any:
        group = parent.create_group(name, track_order=True)
        describe(group, name, label, kind)
        group.attrs["flags"] = np.array([1], np.int32)
        if data is not None:
            group.create_dataset(" data", data=data)
        return group

    def describe(group: Any, name: str, label: str, kind: str) -> None:
        for key, word, size in (("name", name, 33), ("label", label, 33), ("type", kind, 3)):
            value = np.array(word.encode().ljust(size, b"\0"), f"S{size}")
            group.attrs.create(key, value, dtype=h5py.string_dtype("ascii", size))

    def text(word: str) -> np.ndarray:
        return np.frombuffer(word.encode(), np.int8)

    with h5py.File(path, "w", track_order=True) as file:
        describe(file, "HDF5 MotherNode", "Root Node of HDF5 File", "MT")
        file[" format"] = text("IEEE_LITTLE_32\0")
        file[" hdf5version"] = text("HDF5 Version 1.10.0".ljust(33, "\0"))
        node(file, "CGNSLibraryVersion", "CGNSLibraryVersion_t", "R4", np.array([3.1], np.float32))
        base = node(file, "Base", "CGNSBase_t", "I4", np.array([2, 3], np.int32))
        zone = node(base, "Zone", "Zone_t", "I4", np.array([[6], [4], [0]], np.int32))
        node(zone, "ZoneType", "ZoneType_t", "C1", text("Unstructured"))
        coordinates = node(zone, "GridCoordinates", "GridCoordinates_t")
        for axis, values in zip("XYZ", POINTS.T, strict=True):
            node(coordinates, f"Coordinate{axis}", "DataArray_t", "R8", values)
        elements = node(zone, "Triangles", "Elements_t", "I4", np.array([5, 0], np.int32))
        node(elements, "ElementRange", "IndexRange_t", "I4", np.array([1, 4], np.int32))
        connectivity = (TRIANGLES + 1).ravel().astype(np.int32)
        node(elements, "ElementConnectivity", "DataArray_t", "I4", connectivity)
        solution = node(zone, "Solution", "FlowSolution_t")
        node(solution, "GridLocation", "GridLocation_t", "C1", text("Vertex"))
        node(solution, "p", "DataArray_t", "R8", PRESSURE)


def test_a_worker_follows_the_program_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        np.savez("a.npz", x=np.zeros((4, 2)), u=np.ones((4, 1)))
        assert len(read_raw_safely(Path("a.npz")).points) == 4
