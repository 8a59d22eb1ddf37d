"""A disk that is really full: a limit on the size of files, in a process of its own that it might end."""

import resource
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import pyvista as pv
from small import files, grid_points, smooth_case
from test_mesh_writing import kinds, plate

from lrsa.cli.program import main
from lrsa.exporting.formats import FORMATS
from lrsa.mesh.writing import write_mesh, write_series, write_table

pytest_plugins = ["small_runs"]

PROGRAM = """
import resource, sys
from pathlib import Path
import numpy as np
from lrsa.errors import LrsaError
from lrsa.mesh.reading import blocks_of, open_mesh
from lrsa.mesh.writing import write_mesh, write_series, write_table

source, out, kind, whole = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def write():
    if kind == "table":
        return write_table(source, out, {"u": np.random.rand(2000), "g/v": np.random.rand(2000, 3)})
    mesh = open_mesh(source)
    fields = {"u": np.random.rand(sum(block.n_points for block in blocks_of(mesh)))}
    if kind == "series":
        return write_series([(t, open_mesh(source), fields) for t in (0.0, 1.0)], out, "point")
    return write_mesh(mesh, out, fields, "point")

def there():
    return {p: p.read_bytes() for p in out.parent.rglob("*") if p.is_file()}

before = there()
for size in np.linspace(0, 0.95 * whole, 7).astype(int).tolist():
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        write()
    except (LrsaError, OSError) as error:
        assert kind == "table" or "Is the disk full?" in str(error)
    else:
        raise SystemExit(f"nothing was said at {size} of {whole} bytes")
    assert there() == before
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
write()
"""


def fill(source: Path, out: Path, kind: str, whole: int) -> None:
    """Write again and again to a disk with room for less than `whole` bytes, then once with room enough."""
    words = [str(source), str(out), kind, str(whole)]
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert sorted(p.name for p in out.parent.iterdir() if p.name.startswith(".")) == []


def large(suffix: str) -> pv.DataObject:
    """A mesh of the kind that is written under this suffix."""
    grid = pv.ImageData(dimensions=(12, 12, 12))
    grid.point_data["a"] = np.random.default_rng(0).random(12**3)
    made = {
        ".vtu": grid.cast_to_unstructured_grid,
        ".vtk": grid.cast_to_unstructured_grid,
        ".vtp": lambda: grid.extract_surface(algorithm="dataset_surface"),
        ".vti": lambda: grid,
        ".vtr": grid.cast_to_rectilinear_grid,
        ".vts": grid.cast_to_structured_grid,
        ".vtm": lambda: pv.MultiBlock({"a": grid.cast_to_unstructured_grid(), "b": pv.MultiBlock([grid])}),
    }
    return made[suffix]()


@pytest.mark.parametrize("suffix", kinds())
def test_a_full_disk_leaves_the_mesh_that_was_there(tmp_path: Path, suffix: str) -> None:
    source, out = tmp_path / f"in{suffix}", tmp_path / f"out{suffix}"
    large(suffix).save(source)
    mesh = pv.read(source)
    written = write_mesh(mesh, out, {"u": np.random.default_rng(0).random(mesh.n_points)}, "point")
    fill(source, out, "mesh", written.stat().st_size)


@pytest.mark.parametrize(("kind", "suffix"), [("mesh", ".vtm"), ("series", ".pvd")])
def test_a_full_disk_leaves_the_pieces_that_were_there(tmp_path: Path, kind: str, suffix: str) -> None:
    source, out = tmp_path / "in.vtu", tmp_path / "out" / f"all{suffix}"
    if kind == "series":
        large(".vtu").save(source)
        write_series([(0.0, plate(2), {"u": np.zeros(8)})], out, "point")
    else:
        source = source.with_suffix(".vtm")
        large(".vtm").save(source)
        write_mesh(pv.MultiBlock({"a": plate(2), "b": plate(3)}), out, {"u": np.zeros(20)}, "point")
    fill(source, out, kind, 20_000)


def test_a_full_disk_leaves_the_arrays_that_were_there(tmp_path: Path) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.random.default_rng(0).random((2000, 2))
        file["g/w"] = np.zeros(3)
    write_table(source, out, {"u": np.zeros(2000), "g/v": np.zeros((2000, 3))})
    fill(source, out, "table", out.stat().st_size)


def test_room_that_was_not_needed_is_given_back(tmp_path: Path) -> None:
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.eye(3)
    write_table(source, out, {"u": np.zeros(3)})
    assert out.stat().st_size < source.stat().st_size + 4096
    with h5py.File(out, "r") as file:
        assert np.array_equal(np.asarray(file["x"]), np.eye(3))


@pytest.mark.usefixtures("home")
def test_the_command_says_so_and_leaves_the_file(
    trained: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = smooth_case(np.random.default_rng(0), grid_points(24))
    mesh = pv.PolyData(np.c_[case.x, np.zeros(len(case))]).delaunay_2d().cast_to_unstructured_grid()
    mesh.point_data["a"] = np.asarray(case.f)[:, 0]
    mesh.save("case.vtu")
    assert main(["predict", str(trained), "case.vtu", "--out", "out.vtu"]) == 0
    before = files(home)
    said = cramped("predict", trained, "case.vtu", "--out", "out.vtu")
    assert said == "lrsa: out.vtu could not be written by VTK. Is the disk full? Nothing was changed\n"
    assert files(home) == before


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("format", ["torch", "onnx"])
def test_a_program_that_does_not_fit_is_refused_in_one_line(trained: Path, home: Path, format: str) -> None:
    """What a full disk does to torch's own writer ends the process."""
    out = f"a{FORMATS[format].suffix}"
    (home / out).write_bytes(b"there")
    before = files(home)
    assert cramped("export", trained, "--format", format, "--out", out) == "lrsa: File too large\n"
    assert files(home) == before


def cramped(*words: object) -> str:
    """The line of a command that finds room for 6000 bytes in any file, and has to refuse."""
    ended = subprocess.run(
        [sys.executable, "-m", "lrsa", *map(str, words)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_truth_and_lies_survive_being_written(tmp_path: Path) -> None:
    """VTK has no bool: which arrays are is kept beside them, as PyVista itself does."""
    mesh = plate()
    mesh.point_data["wet"] = np.arange(mesh.n_points) % 2 == 0
    mesh.save(tmp_path / "in.vtu")
    out = write_mesh(
        pv.read(tmp_path / "in.vtu"), tmp_path / "out.vtu", {"u": np.zeros(mesh.n_points)}, "point"
    )
    wet = pv.read(out).point_data["wet"]
    assert wet.dtype == bool
    assert np.array_equal(wet, mesh.point_data["wet"])
