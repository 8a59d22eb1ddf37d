"""OpenFOAM's files written and read, its programs started, failed, missed and killed; without OpenFOAM."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lrsa.errors import LrsaError
from lrsa.numerics import openfoam
from lrsa.numerics.foam_mesh import plane_sides, write_plane_mesh
from lrsa.numerics.openfoam import FoamFailed, last_time, read_field, run, write_case

RECORDED = Path(__file__).parents[1] / "data" / "airfrans"
SQUARES = np.array([[0, 1, 4, 3], [1, 2, 5, 4], [3, 4, 7, 6], [4, 5, 8, 7]])
GRID = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
LEFT, OTHER = np.array([[3, 0], [3, 6]]), np.array([[0, 1], [1, 2], [2, 5], [5, 8], [8, 7], [6, 7]])
PATCHES = {"left": ("wall", LEFT), "other": ("patch", OTHER)}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(openfoam, "PLACES", (str(tmp_path / "nowhere*"),))
    (tmp_path / "case").mkdir()
    return tmp_path


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_fields_of_a_recorded_run_are_read() -> None:
    end = last_time(RECORDED)
    velocity, pressure = read_field(end / "U"), read_field(end / "p")
    assert velocity.shape == (4080, 3)
    assert pressure.shape == (4080,)
    assert np.abs(velocity[:, 2]).max() < 1e-12
    speed = 3e6 * 1.56e-5
    assert np.linalg.norm(velocity[39::40], axis=1) == pytest.approx(np.full(102, speed), rel=0.02)
    assert 0.9 < pressure.max() / (0.5 * speed**2) < 1.05


def test_uniform_and_short_fields_are_read_and_others_refused(tmp_path: Path) -> None:
    file = tmp_path / "U"
    rest = "boundaryField { far { value uniform (7 8 9); } }"
    for text, values in (
        ("uniform (1 -2e3 0);", [[1, -2000, 0]]),
        ("uniform 5;", [5]),
        ("nonuniform List<vector> 2((1 2 3) (4 5 6));", [[1, 2, 3], [4, 5, 6]]),
        ("nonuniform List<scalar> \n2\n(\n1\n2\n)\n;", [1, 2]),
    ):
        file.write_text(f"internalField {text}\n{rest}")
        assert np.array_equal(read_field(file), values)
    file.write_text(rest)
    with pytest.raises(LrsaError, match="no values in cells"):
        read_field(file)


def test_values_on_a_patch_are_read_of_compressed_files_too(tmp_path: Path) -> None:
    patches = "near_car { value uniform 1; } car { type x; value nonuniform List<scalar> 2(3 4); }"
    text = f"internalField uniform 5;\nboundaryField\n{{ {patches} far {{ type zeroGradient; }} }}"
    (tmp_path / "p.gz").write_bytes(gzip.compress(text.encode()))
    assert np.array_equal(read_field(tmp_path / "p"), [5])
    assert np.array_equal(read_field(tmp_path / "p", "car"), [3, 4])
    assert np.array_equal(read_field(tmp_path / "p", "near_car"), [1])
    for patch in ("far", "wall"):
        with pytest.raises(LrsaError, match=f"no values on {patch}"):
            read_field(tmp_path / "p", patch)


def test_a_case_is_written_from_templates_with_headers(tmp_path: Path) -> None:
    (tmp_path / "t" / "0").mkdir(parents=True)
    (tmp_path / "t" / "0" / "U").write_text("internalField uniform ({{ u }} 0 0);\n")
    (tmp_path / "t" / "dict").write_text("steps {{ steps }};\n")
    write_case(tmp_path / "c", tmp_path / "t", {"u": 1.5, "steps": 10})
    assert np.array_equal(read_field(tmp_path / "c" / "0" / "U"), [[1.5, 0, 0]])
    assert "class volVectorField; object U;" in (tmp_path / "c" / "0" / "U").read_text()
    assert "class dictionary; object dict;" in (tmp_path / "c" / "dict").read_text()
    with pytest.raises(Exception, match="'steps' is undefined"):
        write_case(tmp_path / "c", tmp_path / "t", {"u": 1.5})


def test_a_program_is_found_on_the_path_or_in_a_known_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home / "bin", "aFoam", 'echo "here $PWD $1"')
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
        assert run(home / "case", "aFoam", "-x") == f"here {home / 'case'} -x\n"
    (home / "openfoam99" / "etc").mkdir(parents=True)
    (home / "openfoam99" / "etc" / "bashrc").write_text(f'PATH="{home / "bin"}:$PATH"\n')
    monkeypatch.setattr(openfoam, "PLACES", (str(home / "openfoam*"),))
    assert run(home / "case", "aFoam", "a b").endswith("a b\n")


def test_without_openfoam_one_line_says_how_to_install_it(home: Path) -> None:
    with pytest.raises(LrsaError, match="apt-get install openfoam") as caught:
        run(home / "case", "noFoam")
    assert len(caught.value.lines) == 1


def test_a_failure_names_its_reason_and_keeps_its_log(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'echo Time = 1; echo "--> FOAM FATAL ERROR:"; echo "no such scheme"; echo at line 3; exit 1'
    program(home / "bin", "aFoam", text)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    for count in (1, 2):
        with pytest.raises(FoamFailed, match=r"aFoam failed \(no such scheme\). Its log is "):
            run(home / "case", "aFoam")
        logs = list((home / "home" / "logs").iterdir())
        assert len(logs) == count
        assert all("at line 3" in log.read_text() for log in logs)


def test_a_program_ends_with_the_process_that_started_it(home: Path) -> None:
    program(home / "bin", "aFoam", "echo $$ > pid; mv pid number; exec sleep 600")
    words = (
        "import sys, pathlib; from lrsa.numerics.openfoam import run; run(pathlib.Path(sys.argv[1]), 'aFoam')"
    )
    environment = {**os.environ, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    parent = subprocess.Popen([sys.executable, "-c", words, str(home / "case")], env=environment)
    _wait(lambda: (home / "case" / "number").exists())
    child = int((home / "case" / "number").read_text())
    assert _alive(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _wait(lambda: not _alive(child))


def test_the_sides_of_a_plane_mesh_close_every_cell_and_are_in_openfoams_order() -> None:
    sides, owner, neighbour = plane_sides(SQUARES, PATCHES)
    along = GRID[sides[:, 1]] - GRID[sides[:, 0]]
    vectors = np.stack([along[:, 1], -along[:, 0]], axis=1)
    summed = np.zeros((4, 2))
    np.add.at(summed, owner, vectors)
    np.add.at(summed, neighbour, -vectors[: len(neighbour)])
    assert np.array_equal(summed, np.zeros((4, 2)))
    assert list(zip(owner[:4], neighbour, strict=True)) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert np.array_equal(np.sort(sides[4:6], axis=1), np.sort(LEFT, axis=1))
    middles = GRID[sides].mean(1)
    away = middles[4:] - GRID[SQUARES].mean(1)[owner[4:]]
    assert (np.sum(away * vectors[4:], axis=1) > 0).all()


def test_sides_that_no_patch_has_are_refused() -> None:
    with pytest.raises(LrsaError, match="miss 6 of its outer sides"):
        plane_sides(SQUARES, {"left": ("wall", LEFT)})
    with pytest.raises(LrsaError, match="Name every side once"):
        plane_sides(SQUARES, {"left": ("wall", np.array([[0, 4], [3, 6]])), "other": ("patch", OTHER)})


def test_a_plane_mesh_has_one_layer_of_cells(tmp_path: Path) -> None:
    write_plane_mesh(tmp_path, GRID, SQUARES, PATCHES)
    text = {p.name: p.read_text() for p in (tmp_path / "constant" / "polyMesh").iterdir()}
    assert set(text) == {"points", "faces", "owner", "neighbour", "boundary"}
    assert "\n18\n(\n" in text["points"]
    assert "\n20\n(\n" in text["faces"]
    assert "left { type wall; nFaces 2; startFace 4; }" in text["boundary"]
    assert "frontAndBack { type empty; nFaces 8; startFace 12; }" in text["boundary"]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait(condition, seconds: float = 60) -> None:  # pyright: ignore
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
