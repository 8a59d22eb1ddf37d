"""Fields into files: nothing but the new arrays differs."""

import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import pyvista as pv
from pyarrow import parquet, table

from lrsa.errors import LrsaError
from lrsa.mesh.writing import mesh_file, write_mesh, write_series, write_table


def plate(n: int = 6) -> pv.UnstructuredGrid:
    """Triangles and quadrilaterals, coordinates in float64, and arrays of several kinds."""
    rng = np.random.default_rng(n)
    points = np.c_[rng.random((4 * n, 2)), np.zeros(4 * n)]
    cells, types = [], []
    for i in range(n):
        cells += [4, *range(4 * i, 4 * i + 4)] if i % 2 else [3, *range(4 * i, 4 * i + 3)]
        types.append(pv.CellType.QUAD if i % 2 else pv.CellType.TRIANGLE)
    mesh = pv.UnstructuredGrid(cells, types, points)
    mesh.point_data["a"] = rng.random(4 * n)
    mesh.point_data["id"] = np.arange(4 * n, dtype=np.int32)
    mesh.point_data["vel"] = rng.random((4 * n, 3)).astype(np.float32)
    mesh.cell_data["k"] = rng.random(n)
    mesh.field_data["Re"] = np.array([100.0])
    return mesh


def kinds() -> dict[str, Any]:
    surface = plate().extract_surface(algorithm="dataset_surface")
    grid = pv.ImageData(dimensions=(3, 4, 2))
    grid.point_data["a"] = np.arange(24.0)
    return {
        ".vtu": plate(),
        ".vtp": surface,
        ".vti": grid,
        ".vtr": grid.cast_to_rectilinear_grid(),
        ".vts": grid.cast_to_structured_grid(),
        ".vtk": plate(),
    }


def same_arrays(ours: Any, theirs: Any, new: set[str]) -> None:
    """Points, cells and every array but the new ones are equal, and so are their types."""
    assert np.array_equal(ours.points, theirs.points)
    assert ours.points.dtype == theirs.points.dtype
    if isinstance(theirs, pv.UnstructuredGrid):
        assert np.array_equal(ours.cells, theirs.cells)
        assert np.array_equal(ours.celltypes, theirs.celltypes)
    for kind in ("point_data", "cell_data", "field_data"):
        mine, yours = getattr(ours, kind), getattr(theirs, kind)
        assert set(mine) - new == set(yours)
        for name in yours:
            assert np.array_equal(mine[name], yours[name])
            assert mine[name].dtype == yours[name].dtype


@pytest.mark.parametrize("suffix", kinds())
@pytest.mark.parametrize("location", ["point", "cell"])
def test_only_the_new_arrays_are_new(tmp_path: Path, suffix: str, location: Any) -> None:
    source = tmp_path / f"in{suffix}"
    kinds()[suffix].save(source)
    before, mesh = pv.read(source), pv.read(source)
    count = mesh.n_points if location == "point" else mesh.n_cells
    rng = np.random.default_rng(0)
    fields = {"u_predicted": rng.random(count, np.float32), "w": rng.random((count, 3))}
    out = write_mesh(mesh, tmp_path / "deep" / f"out{suffix}", fields, location)
    after = pv.read(out)
    same_arrays(after, before, set(fields))
    data = after.point_data if location == "point" else after.cell_data
    for name, values in fields.items():
        assert np.array_equal(data[name], values)
    assert before.active_scalars_name == after.active_scalars_name
    assert [p.name for p in out.parent.iterdir()] == [out.name]


def test_every_block_gets_its_part_and_nested_and_empty_blocks_stay(tmp_path: Path) -> None:
    mesh = pv.MultiBlock({"a": plate(3), "none": None, "in": pv.MultiBlock({"b": plate(5), "c": plate(2)})})
    values = np.arange(4.0 * 10)
    out = write_mesh(mesh, tmp_path / "out.vtm", {"u": values}, "point")
    after = pv.read(out)
    assert after.keys() == ["a", "none", "in"]
    assert after[1] is None  # pyright: ignore[reportArgumentType]
    assert np.array_equal(after["a"]["u"], values[:12])  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
    assert np.array_equal(after["in"]["b"]["u"], values[12:32])  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
    assert np.array_equal(after["in"]["c"]["u"], values[32:])  # pyright: ignore[reportArgumentType, reportOptionalSubscript]
    same_arrays(after["in"]["b"], plate(5), {"u"})  # pyright: ignore[reportOptionalSubscript]


def test_a_mesh_that_its_suffix_cannot_hold_gets_another(tmp_path: Path) -> None:
    assert mesh_file(pv.Sphere(), tmp_path / "a.stl") == tmp_path / "a.vtp"
    assert mesh_file(plate(), tmp_path / "a.foam") == tmp_path / "a.vtu"
    assert mesh_file(plate(), tmp_path / "a.vtk") == tmp_path / "a.vtk"
    assert mesh_file(pv.MultiBlock(), tmp_path / "a.vtk") == tmp_path / "a.vtm"


def test_a_series_is_one_file_for_each_time(tmp_path: Path) -> None:
    frames = [(0.5 * i, plate(3 + i), {"u": np.full(4 * (3 + i), float(i))}) for i in range(3)]
    out = write_series(frames, tmp_path / "s.vtu", "point")
    assert out == tmp_path / "s.pvd"
    reader: Any = pv.get_reader(out)
    assert reader.time_values == [0.0, 0.5, 1.0]
    for i, time in enumerate(reader.time_values):
        reader.set_active_time_value(time)
        frame = reader.read()[0]
        assert np.array_equal(frame["u"], np.full(4 * (3 + i), float(i)))
        assert frame.field_data["TimeValue"] == [time]


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match="u has 3 values for a mesh of 24 points"):
        write_mesh(plate(), tmp_path / "out.vtu", {"u": np.zeros(3)}, "point")
    assert list(tmp_path.iterdir()) == []


FIELDS = {"u_predicted": np.arange(3, dtype=np.float32) / 3, "u_error": np.array([0.1, np.nan, 0.3])}


def test_the_text_of_a_csv_stays_as_it_was(tmp_path: Path) -> None:
    text = 'x,y,name,u_error\n0.10,1e3,"a, b",9\n007,2,"said ""x""",9\n3,4,,9\n'
    (tmp_path / "in.csv").write_text(text)
    write_table(tmp_path / "in.csv", tmp_path / "out.csv", FIELDS)
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["x", "y", "name", "u_predicted", "u_error"]
    assert [row[:3] for row in rows[1:]] == [
        ["0.10", "1e3", "a, b"],
        ["007", "2", 'said "x"'],
        ["3", "4", ""],
    ]
    assert np.array_equal([np.float32(row[3]) for row in rows[1:]], FIELDS["u_predicted"])


def test_parquet_keeps_its_columns_and_types(tmp_path: Path) -> None:
    before = table({"x": [0.1, 0.2, 0.3], "id": ["a", "b", None], "u_error": [1, 2, 3]})
    parquet.write_table(before, tmp_path / "in.parquet")
    write_table(tmp_path / "in.parquet", tmp_path / "out.parquet", {**FIELDS, "v": np.eye(3)})
    after = parquet.read_table(tmp_path / "out.parquet")
    assert after.select(["x", "id"]).equals(before.select(["x", "id"]))
    assert after.column_names == ["x", "id", "u_predicted", "u_error", "v:0", "v:1", "v:2"]


def test_hdf5_keeps_groups_and_attributes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = np.eye(3)
        file["deep/u"] = np.arange(3)
        file["deep"].attrs["unit"] = "m"
    write_table(tmp_path / "in.h5", tmp_path / "out.h5", {"deep/u_predicted": np.ones(3)})
    with h5py.File(tmp_path / "out.h5") as file:
        assert np.array_equal(file["x"], np.eye(3))  # pyright: ignore[reportArgumentType]
        assert file["deep"].attrs["unit"] == "m"
        assert set(file["deep"]) == {"u", "u_predicted"}  # pyright: ignore[reportArgumentType]


def test_npz_keeps_everything_else(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.eye(3), words=np.array(["a"]))
    write_table(tmp_path / "in.npz", tmp_path / "out.npz", FIELDS)
    with np.load(tmp_path / "out.npz") as after:
        assert after.files == ["x", "words", *FIELDS]
        assert after["words"].tolist() == ["a"]


def test_a_table_does_not_change_its_format(tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match=r"both must be [.]csv files"):
        write_table(tmp_path / "in.csv", tmp_path / "out.npz", FIELDS)


def test_a_place_where_no_mesh_can_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "table.csv").touch()
    mesh = plate()
    with pytest.raises(LrsaError, match=r"table\.csv cannot be written .*: name another --out$"):
        write_mesh(mesh, tmp_path / "table.csv" / "out.vtu", {"u": np.zeros(mesh.n_points)}, "point")
