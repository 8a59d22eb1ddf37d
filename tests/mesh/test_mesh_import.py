"""A folder of simulations becomes a data set, or a list of everything that is wrong with it."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import pyvista as pv
from small import files

from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.mesh.importing import Problems, import_meshes, propose
from lrsa.mesh.roles import Roles


def disc(n: int, radius: float = 1.0, seed: int = 0) -> Any:
    """A triangulated disc of about n points with a source, a solution and a flux."""
    rng = np.random.default_rng(seed)
    points = radius * np.sqrt(rng.uniform(0, 1, (n, 1))) * _directions(rng.uniform(0, 2 * np.pi, n))
    mesh = pv.PolyData(points).delaunay_2d().cast_to_unstructured_grid()
    x = mesh.points
    mesh.point_data["f"] = x[:, 0] + seed
    mesh.point_data["p"] = (x[:, :2] ** 2).sum(1)
    mesh.point_data["U"] = 2 * x
    return mesh


def _directions(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten discs of different sizes and their table of parameters."""
    folder = tmp_path_factory.mktemp("discs")
    rows = ["case,radius,seed"]
    for i in range(10):
        disc(40 + i, 1 + i / 10, i).save(folder / f"disc_{i}.vtu")
        rows.append(f"disc_{i}.vtu,{1 + i / 10},{i}")
    (folder / "cases.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def imported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "discs.h5"
    seen: list[tuple[int, int]] = []
    result = import_meshes(
        folder,
        out,
        ["f"],
        ["p", "U"],
        folder / "cases.csv",
        ["measure", "sdf"],
        1,
        lambda *d: seen.append(d[:2]),
    )
    assert seen == [(i, 10) for i in range(11)]
    assert result.counts == {"train": 8, "test": 2}
    return out


def test_every_case_is_stored_as_its_file_has_it(folder: Path, imported: Path) -> None:
    found = set()
    for split in ("train", "test"):
        data = Dataset(imported, split)
        names = data.schema.provenance["cases"][split]
        assert len(names) == len(data)
        for name, case in zip(names, data, strict=True):
            mesh = pv.read(folder / f"{name}.vtu")
            found.add(name)
            np.testing.assert_allclose(case.x, mesh.points, atol=1e-7)
            np.testing.assert_allclose(case.u[:, 0], mesh["p"], atol=1e-6)  # pyright: ignore[reportArgumentType, reportCallIssue, reportOptionalSubscript]
            np.testing.assert_allclose(case.u[:, 1:], mesh["U"], atol=1e-6)  # pyright: ignore[reportArgumentType, reportCallIssue, reportOptionalSubscript]
            np.testing.assert_array_equal(case.cells, mesh.cells_dict[5])  # pyright: ignore[reportArgumentType]
            index = int(name.split("_")[1])
            assert case.globals is not None
            np.testing.assert_allclose(case.globals, [1 + index / 10, index], rtol=1e-6)
            np.testing.assert_allclose(case.weights.sum(), mesh.area, rtol=1e-5)  # pyright: ignore[reportOptionalMemberAccess]
    assert found == {f"disc_{i}" for i in range(10)}


def test_the_recipe_and_the_names_are_kept(imported: Path, folder: Path) -> None:
    schema = Dataset(imported, "train").schema
    assert schema.source == "imported"
    assert schema.protocol == "static"
    assert schema.names.inputs == ("f", "sdf")
    assert schema.names.targets == ("p", "U_x", "U_y", "U_z")
    assert schema.names.globals == ("radius", "seed")
    assert schema.provenance["files"] == 10
    recipe = Roles.from_dict(schema.provenance["recipe"])
    assert recipe.channels == {"f": 1, "p": 1, "U": 3}
    assert recipe.derive == ("measure", "sdf")
    assert not list(imported.parent.glob("*.parts"))


def test_nothing_named_lists_what_is_there_and_a_command_that_works(folder: Path, tmp_path: Path) -> None:
    import shlex

    said = propose(folder)
    assert "10 cases (10 .vtu)" in said
    assert "points: 40 to 49" in said
    assert "U: point array, 3 components" in said
    assert "cases.csv" in said
    words = shlex.split(said.splitlines()[-1])
    assert words[:4] == ["lrsa", "data", "import", str(folder)]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert options["--targets"].split(",") == ["f", "p", "U"]
    assert options["--derive"] == "measure"
    assert options["--globals"] == str(folder / "cases.csv")


def test_the_command_that_is_proposed_is_one_that_is_not_refused(tmp_path: Path) -> None:
    """Arrays that a file lacks, or has with other components, are left out; those of cells are not."""
    source = tmp_path / "in"
    source.mkdir()
    for i in range(4):
        mesh = disc(20, seed=i)
        mesh.cell_data["stress"] = np.linspace(0.5, i, mesh.n_cells)
        mesh.cell_data["p"] = np.zeros(mesh.n_cells)
        mesh.point_data["odd"] = mesh.points[:, : 1 + i % 2] + i
        if i:
            mesh.point_data["late"] = mesh.points[:, 0] + i
        else:
            mesh.point_data["early"] = mesh.points[:, 0]
        mesh.save(source / f"disc_{i}.vtu")
    words = propose(source, workers=1).splitlines()[-1].split()
    targets = words[words.index("--targets") + 1].split(",")
    assert targets == ["f", "p", "U", "stress"]
    result = import_meshes(source, tmp_path / "out.h5", [], targets, workers=1)
    assert any(note.startswith("stress: cell arrays, averaged to the points") for note in result.notes)


def test_all_problems_are_told_at_once_and_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    rows = ["case,radius", "a,1", "b,2", "c,", "d,4", "e,5", "g,7"]
    (bad / "cases.csv").write_text("\n".join(rows))
    for name in "abcdefg":
        mesh = disc(30, seed=1)
        if name == "b":
            del mesh.point_data["p"]
        if name == "d":
            mesh.point_data["f"][3] = np.nan
        if name == "e":
            mesh.point_data["U"] = mesh.points[:, :2]
        mesh.save(bad / f"{name}.vtu")
    (bad / "g.vtu").write_bytes(b"")
    with pytest.raises(Problems) as caught:
        import_meshes(bad, tmp_path / "out.h5", ["f"], ["p", "U"], bad / "cases.csv", workers=2)
    *lines, last = caught.value.lines
    left = tmp_path / "out.h5.parts"
    assert last.startswith(f"3 of 7 cases are built and kept in {left}: import again with the same --out")
    assert len(list(left.iterdir())) == 3
    expected = {
        "c.vtu": 'no number in column "radius"',
        "f.vtu": 'no row for "f"',
        "b.vtu": 'no array "p" (it has: f, U)',
        "d.vtu": 'NaN in input "f" (1 of 30)',
        "e.vtu": '"U" with 2 components, but the first file has 3',
        "g.vtu": "is empty",
    }
    assert len(lines) == len(expected)
    for words in expected.values():
        assert sum(words in line for line in lines) == 1, (words, lines)
    assert not (tmp_path / "out.h5").exists()


def test_a_corrected_file_is_all_that_is_read_again(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for i in range(3):
        disc(20, seed=i).save(source / f"{i}.vtu")
    (source / "2.vtu").write_text("nothing")
    with pytest.raises(Problems, match=r"2\.vtu"):
        import_meshes(source, tmp_path / "out.h5", ["f"], ["p"], workers=1)
    disc(20, seed=2).save(source / "2.vtu")
    seen: list[int] = []
    import_meshes(
        source, tmp_path / "out.h5", ["f"], ["p"], workers=1, progress=lambda done, *_: seen.append(done)
    )
    assert seen == [2, 3]


def test_a_field_of_one_block_is_known_there_only(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for i in range(2):
        volume = pv.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
        wall = pv.Plane(i_resolution=2 + i, j_resolution=2)
        wall.clear_data()
        volume["p"], wall["p"] = np.arange(27.0), np.zeros(wall.n_points)
        wall["shear"] = np.ones(wall.n_points)
        pv.MultiBlock({"volume": volume, "wall": wall}).save(source / f"c{i}.vtm")
    result = import_meshes(source, tmp_path / "out.h5", [], ["p", "shear"], workers=1)
    assert "2 of 2 cases know shear at some of the points only (c0, c1)" in result.notes
    case = Dataset(tmp_path / "out.h5", "train")[0]
    assert case.u_mask is not None
    assert case.u_mask[:, 0].all()
    np.testing.assert_array_equal(case.u_mask[:, 1], np.arange(len(case)) >= 27)


def test_what_is_known_at_some_points_only_is_named(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for i in range(6):
        mesh = disc(20, seed=i)
        if i != 1:
            mesh["p" if i < 3 else "U"][4] = np.nan
        mesh.save(source / f"disc_{i}.vtu")
    result = import_meshes(source, tmp_path / "out.h5", ["f"], ["U", "p"], workers=1)
    note = "5 of 6 cases know p, U at some of the points only (disc_0, disc_2, disc_3, ...)"
    assert note in result.notes


def test_meshes_of_different_cells_and_masks_make_one_data_set(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    disc(20, seed=0).save(source / "triangles.vtu")
    quads = pv.ImageData(dimensions=(3, 4, 1)).cast_to_unstructured_grid()
    quads["p"] = np.where(np.arange(12) < 4, np.nan, 1.0)
    quads.save(source / "quads.vtu")
    result = import_meshes(source, tmp_path / "out.h5", [], ["p"], derive=["measure"], workers=1)
    for split in result.counts:
        case = Dataset(tmp_path / "out.h5", split)[0]
        assert case.cells is not None
        assert case.cells.shape[1] == 4
        assert case.u_mask is not None


def test_cell_arrays_make_cases_of_cells(tmp_path: Path) -> None:
    mesh = disc(20)
    mesh.cell_data["k"] = np.arange(mesh.n_cells)
    mesh.save(tmp_path / "a.vtu")
    result = import_meshes(tmp_path / "a.vtu", tmp_path / "out.h5", [], ["k"], workers=1)
    assert result.roles.location == "cell"
    assert result.notes[-1].startswith("no case is for the test: a model of this data cannot be evaluated")
    assert len(Dataset(tmp_path / "out.h5", "train")[0]) == mesh.n_cells
    mixed = import_meshes(tmp_path / "a.vtu", tmp_path / "out.h5", ["f"], ["k"], workers=1)
    assert mixed.roles.location == "point"
    assert any("k: cell arrays, averaged" in note for note in mixed.notes)


def test_a_collection_over_time_is_learned_by_time(tmp_path: Path) -> None:
    for case in ("a", "b"):
        rows = ""
        for i in range(3):
            mesh = disc(20)
            mesh["p"] = mesh["p"] * i
            mesh.save(tmp_path / f"{case}{i}.vtu")
            rows += f'<DataSet timestep="{i}" part="0" file="{case}{i}.vtu"/>'
        text = f'<VTKFile type="Collection" version="0.1"><Collection>{rows}</Collection></VTKFile>'
        (tmp_path / f"{case}.pvd").write_text(text)
    import_meshes(tmp_path, tmp_path / "out.h5", ["f"], ["p"], workers=1)
    data = Dataset(tmp_path / "out.h5", "train")
    assert data.schema.protocol == "time-conditioned"
    assert data[0].u is not None
    assert data[0].u.shape == (3, 20, 1)
    import_meshes(tmp_path, tmp_path / "out.h5", ["p"], ["p"], workers=1)
    first = Dataset(tmp_path / "out.h5", "train")[0]
    assert first.f is not None
    assert first.u is not None
    np.testing.assert_array_equal(first.f, first.u[0])


def test_groups_of_one_hdf5_file_are_cases_and_twins_are_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "all.h5", "w") as file:
        for i in range(3):
            file[f"case_{i}/x"] = np.zeros((4 + i, 2))
            file[f"case_{i}/p"] = np.full(4 + i, float(i))
    result = import_meshes(tmp_path / "all.h5", tmp_path / "out.h5", [], ["p"], workers=1)
    assert sum(result.counts.values()) == 3
    assert any("3 of 3 cases have points that coincide" in note for note in result.notes)


def test_cases_of_areas_and_of_volumes_are_no_one_data_set(tmp_path: Path) -> None:
    """Their weights would be areas here and volumes there, and the flat axis would be an input."""
    source = tmp_path / "in"
    source.mkdir()
    block = pv.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
    block["p"] = np.arange(27.0)
    for name, mesh in (("a", disc(20)), ("b", disc(22)), ("c", block)):
        mesh.save(source / f"{name}.vtu")
    with pytest.raises(Problems) as caught:
        import_meshes(source, tmp_path / "out.h5", [], ["p"], derive=["measure"], workers=1)
    a, c = source / "a.vtu", source / "c.vtu"
    line = f"{c} has cells with a volume, but {a} with an area. Import them as two data sets"
    assert line in caught.value.lines


def test_requests_that_cannot_be_met(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LrsaError, match="no target named"):
        import_meshes(folder, tmp_path / "out.h5")
    with pytest.raises(LrsaError, match="Did you mean normals"):
        import_meshes(folder, tmp_path / "out.h5", [], ["p"], derive=["normal"])  # pyright: ignore[reportArgumentType]
    for inputs, targets in ((["f"], ["p", "p"]), (["p", "p"], ["f"])):
        with pytest.raises(LrsaError, match=r'^--\w+ names "p" twice\.'):
            import_meshes(folder, tmp_path / "out.h5", inputs, targets)
    with pytest.raises(LrsaError, match=r'^"p" is an input and a target: nothing'):
        import_meshes(folder, tmp_path / "out.h5", ["f", "p"], ["U", "p"], workers=1)
    with pytest.raises(LrsaError, match="does not exist"):
        import_meshes(tmp_path / "nowhere", tmp_path / "out.h5", [], ["p"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(LrsaError, match="holds no case"):
        import_meshes(tmp_path / "empty", tmp_path / "out.h5", [], ["p"])


def test_nothing_but_an_earlier_data_set_is_replaced(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(folder, source)
    with h5py.File(source / "theirs.h5", "w") as file:
        file["x"], file["p"] = np.zeros((4, 2)), np.zeros(4)
    (source / "damaged.h5").write_text("no HDF5")
    before = files(source)
    table = source / "cases.csv"
    for out, words in (
        (source / "disc_0.vtu", "is no name of an HDF5 file"),
        (table, "is no name of an HDF5 file"),
        (tmp_path, "is no name of an HDF5 file"),
        (source / "theirs.h5", "is there already"),
        (source / "damaged.h5", "is there already"),
    ):
        with pytest.raises(LrsaError, match=re.escape(f"{out} {words}")):
            import_meshes(source / "*.vtu", out, ["f"], ["p"], table, workers=1)
    assert files(source) == before
    out = tmp_path / "out.h5"
    import_meshes(source / "disc_[01].vtu", out, ["f"], ["p"], workers=1)
    import_meshes(source / "disc_[0-3].vtu", out, ["f"], ["p"], workers=1)
    assert Dataset(out, "train").schema.provenance["files"] == 4


PROGRAM = """
import os, signal, sys
from pathlib import Path
from lrsa.mesh.importing import import_meshes

def die(done, total, words):
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    options = {"derive": ["measure", "sdf"], "workers": 1, "progress": die}
    import_meshes(sys.argv[1], Path(sys.argv[2]), ["f"], ["p", "U"], **options)
"""


def test_killed_and_resumed_equals_uninterrupted(folder: Path, tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.h5", tmp_path / "broken" / "whole.h5"
    options: dict[str, Any] = {"inputs": ["f"], "targets": ["p", "U"], "derive": ["measure", "sdf"]}
    import_meshes(str(folder), whole, **options, workers=2)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    killed = subprocess.run([sys.executable, str(program), str(folder), str(broken)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(broken.with_name("whole.h5.parts").glob("*.npz"))) >= 3
    assert not broken.exists()
    seen: list[int] = []
    import_meshes(str(folder), broken, **options, workers=1, progress=lambda done, *_: seen.append(done))
    assert seen[0] >= 3
    assert broken.read_bytes() == whole.read_bytes()
    assert [p.name for p in broken.parent.iterdir()] == ["whole.h5"]


def test_structured_files_keep_their_index_shape(tmp_path: Path) -> None:
    """At the points and at the cells, of every structured kind; not where only some files have one."""
    made: dict[str, Any] = {
        "a.vti": pv.ImageData(dimensions=(4, 3, 1)),
        "b.vtr": pv.RectilinearGrid(np.arange(4.0), np.arange(3.0), np.zeros(1)),
        "c.vts": pv.RectilinearGrid(np.arange(4.0), np.arange(3.0), np.zeros(1)).cast_to_structured_grid(),
    }
    for name, mesh in made.items():
        mesh.point_data["p"] = mesh.points[:, 0] + 10 * mesh.points[:, 1]
        mesh.cell_data["c"] = mesh.cell_centers().points[:, 0]
        mesh.save(tmp_path / name)
    for target, shape in (("p", (3, 4)), ("c", (2, 3))):
        import_meshes(tmp_path, tmp_path / "out.h5", targets=[target], workers=1)
        data = Dataset(tmp_path / "out.h5", "train")
        assert data.grid == shape
        x = data[0].x.reshape(*shape, -1)
        assert (np.diff(x[..., 0], axis=1) > 0).all()
        assert (np.diff(x[..., 1], axis=0) > 0).all()
    made["a.vti"].cast_to_unstructured_grid().save(tmp_path / "d.vtu")
    import_meshes(tmp_path, tmp_path / "out.h5", targets=["p"], workers=1)
    assert Dataset(tmp_path / "out.h5", "train").grid is None
