"""Processes that share a mesh predict it as one process does, each of them its own points."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
from hypothesis import given
from hypothesis import strategies as st
from processes import together
from small import grid_cases, refusal, write

import lrsa
from lrsa.cli.program import main
from lrsa.mesh.importing import import_meshes
from lrsa.mesh.pieces import arrays_of, dealt, write_summary
from lrsa.parallel.ranks import joined
from lrsa.surrogate.predict_files import predict_path
from lrsa.surrogate.predict_shared import predict_shared
from lrsa.surrogate.surrogate import Surrogate

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def box(n: int, far: float = 1.0) -> pv.UnstructuredGrid:
    """Hexahedra of unequal sizes, with an input a and the targets p and U at the points."""
    mesh = pv.ImageData(dimensions=(n, 4, 3)).cast_to_unstructured_grid()
    x, y, z = np.asarray(mesh.points, np.float64).T / (n - 1) * far
    x = x**2
    mesh.points = np.stack([x, y, z], axis=1)
    mesh.point_data["a"], mesh.point_data["p"] = np.sin(x + z), x * y
    mesh.point_data["U"] = np.stack([x, y, x + y], axis=1)
    mesh.point_data["id"] = np.arange(len(x), dtype=np.int32)
    return mesh


def trained(folder: Path, **options: Any) -> Path:
    """A run on boxes, with quadrature weights."""
    (folder / "boxes").mkdir(parents=True)
    for i in range(4):
        box(4 + i).save(folder / "boxes" / f"box_{i}.vtu")
    asked: dict[str, Any] = {"inputs": ["a"], "targets": ["p", "U"], "derive": ["measure"], **options}
    import_meshes(folder / "boxes", folder / "boxes.h5", workers=1, **asked)
    sizes = {"width": 16, "depth": 2, "heads": 2, "rank": 4}
    lrsa.fit(folder / "boxes.h5", out=folder / "run", epochs=1, threads=1, options=sizes)
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("shared"))


def in_pieces(mesh: pv.UnstructuredGrid, path: Path, ends: tuple[int, ...]) -> Path:
    """The cells up to each end as a piece; points between pieces are in both."""
    path.with_suffix("").mkdir()
    pieces = [
        mesh.extract_cells(range(start, end), pass_cell_ids=False, pass_point_ids=False)
        for start, end in zip((0, *ends), ends, strict=False)
    ]
    names = [f"{path.stem}/part {i}.vtu" for i in range(len(pieces))]
    for name, piece in zip(names, pieces, strict=True):
        piece.save(path.parent / name)
    write_summary(path, names, [arrays_of(piece) for piece in pieces])
    return path


def work(run: Path, sources: list[Path], folder: Path) -> None:
    """What every process does; it leaves the numbers of points that its model saw, and what it was told."""
    seen, ask = [], Surrogate.answers

    def answers(self: Surrogate, cases: Any) -> Any:
        seen.extend(map(len, cases))
        return ask(self, cases)

    Surrogate.answers = answers
    with joined(2) as ranks:
        told = [predict_shared(run, path, folder / f"{path.suffix[1:]}.pvtu", ranks) for path in sources]
        assert ranks.points is not None
        said = {"seen": seen, "warnings": [line for summary in told for line in summary.warnings]}
        (folder / f"{ranks.points.rank}.json").write_text(json.dumps(said))


def test_processes_predict_a_mesh_as_one_does(run: Path, home: Path) -> None:
    """In pieces of unequal sizes, and in one file; outside of the training range, which all are told of."""
    mesh, made = box(9, far=2.0), home / "made"
    source = in_pieces(mesh, home / "big.pvtu", (4, 10, 17, 25, 33, 45, mesh.n_cells))
    mesh.save(home / "big.vtu")
    made.mkdir()
    together(2, work, run, [source, home / "big.vtu"], made)
    alone = [predict_path(run, path, home / f"{path.suffix[1:]}.vtu") for path in (source, home / "big.vtu")]
    in_parts, theirs = pv.read(made / "pvtu.pvtu"), pv.read(home / "pvtu.vtu")
    assert np.array_equal(in_parts.points, theirs.points)
    assert np.array_equal(in_parts.cells, theirs.cells)
    assert_same(in_parts, theirs, np.arange(theirs.n_points))
    cut, theirs = pv.read(made / "vtu.pvtu"), pv.read(home / "vtu.vtu")
    index = np.asarray(cut.point_data["id"])
    assert cut.n_cells == theirs.n_cells
    assert set(index) == set(range(theirs.n_points))
    assert_same(cut, theirs, index)
    told = [json.loads((made / f"{rank}.json").read_text()) for rank in range(2)]
    (one, half), (other, rest) = (each["seen"] for each in told)
    assert one + other == in_parts.n_points
    assert max(one, other) < 0.7 * in_parts.n_points
    assert (half, rest) == (54, 54)
    warned = [line for summary in alone for line in summary.warnings]
    assert any("coordinate x" in line for line in warned)
    assert all(each["warnings"] == warned for each in told)
    assert sorted(p.name for p in made.iterdir()) == [
        "0.json",
        "1.json",
        "pvtu",
        "pvtu.pvtu",
        "vtu",
        "vtu.pvtu",
    ]


def assert_same(ours: Any, theirs: Any, index: np.ndarray) -> None:
    """Predictions up to rounding, all other arrays to the bit."""
    assert list(ours.point_data) == list(theirs.point_data)
    for name, values in theirs.point_data.items():
        if name.endswith(("_predicted", "_error")):
            assert np.allclose(ours[name], values[index], rtol=0, atol=1e-5 * np.abs(values).max())
        else:
            assert np.array_equal(ours[name], values[index])


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20), st.integers(1, 20))
def test_every_process_has_a_run_of_pieces(sizes: list[int], count: int) -> None:
    count = min(count, len(sizes))
    with tempfile.TemporaryDirectory() as folder:
        pieces = [Path(folder) / str(i) for i in range(len(sizes))]
        for piece, size in zip(pieces, sizes, strict=True):
            piece.write_bytes(bytes(size))
        shares = dealt(pieces, count)
    assert [piece for share in shares for piece in pieces[share]] == pieces
    assert all(pieces[share] for share in shares)
    assert len(shares) == count


@pytest.mark.slow
def test_the_command_starts_the_processes(run: Path, home: Path) -> None:
    box(6).save(home / "big.vtu")
    predict_path(run, home / "big.vtu", home / "alone.vtu")
    assert main(["predict", str(run), "big.vtu", "--out", "out.pvtu", "--nproc", "2"]) == 0
    ours, theirs = pv.read(home / "out.pvtu"), pv.read(home / "alone.vtu")
    assert_same(ours, theirs, np.asarray(ours.point_data["id"]))


def test_what_cannot_be_shared_is_refused_in_one_line(
    run: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mesh = box(5)
    source = in_pieces(mesh, home / "big.pvtu", (9, mesh.n_cells))
    mesh.save(home / "big.vtu")
    mesh.save(home / "big.vtk")
    derived, grid = trained(home / "derived", derive=["sdf"]), home / "fno"
    data = write(home / "grid.h5", grid_cases(4), grid_cases(2, seed=1))
    lrsa.fit(data, "backbone-fno", out=grid, epochs=1, options={"width": 8, "depth": 1})
    cases = {
        "cannot share the 2 pieces": (run, source, "--out", "o.pvtu", "--nproc", 3),
        "name it --out o.pvtu": (run, source, "--out", "o.vtu", "--nproc", 2),
        "a .vtu or .pvtu file, not big.vtk": (run, "big.vtk", "--out", "o.pvtu", "--nproc", 2),
        "no.pvtu does not exist": (run, "no.pvtu", "--out", "o.pvtu", "--nproc", 2),
        "is the input itself": (run, source, "--out", source, "--nproc", 2),
        "--at is answered by one process": (run, source, "--out", "o.pvtu", "--at", "a.csv", "--nproc", 2),
        "--derive sdf, which needs the whole mesh": (derived, source, "--out", "o.pvtu", "--nproc", 2),
        "cannot be shared with": (grid, "big.vtu", "--out", "o.pvtu", "--nproc", 2),
        "--nproc must be at least 1": (run, source, "--out", "o.pvtu", "--nproc", 0),
    }
    for said, words in cases.items():
        assert said in refusal(capsys, "predict", *words)
    (home / "big" / "part 1.vtu").unlink()
    assert "which does not exist" in refusal(capsys, "predict", *cases["cannot share the 2 pieces"])
    source.write_text("<VTKFile>")
    assert "is not readable" in refusal(capsys, "predict", *cases["cannot share the 2 pieces"])
