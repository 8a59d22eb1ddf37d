"""One error stays one line, whatever is in the names that it has."""

from pathlib import Path

import numpy as np
import pytest
import pyvista as pv
from small import WORDS, copy_run, refusal

from lrsa.cli.program import main
from lrsa.errors import LrsaError
from lrsa.mesh.importing import Problems, import_meshes

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")
Capture = pytest.CaptureFixture[str]
BREAKS = ["\n", "\r\n", "\x0b", "\u2028"]


@pytest.mark.parametrize("pause", BREAKS, ids=repr)
def test_names_of_files_do_not_break_the_line(capsys: Capture, trained: Path, data: Path, pause: str) -> None:
    for words in (
        ["train", f"a{pause}b.h5", "--out", "run"],
        ["train", f"a{pause}b"],
        ["train", data, "--model", f"a{pause}b"],
        ["train", data, "--out", "run", "--device", f"a{pause}b"],
        ["train", data, f"--a{pause}b", "3"],
        ["resume", f"a{pause}b"],
        ["predict", trained, f"a{pause}b.npz", "--out", "out.npz"],
        ["data", "import", f"a{pause}b", "--out", "out.h5", "--targets", "p"],
        ["evaluate", trained, "--data", f"a{pause}b.h5"],
        ["evaluate", trained, "--stride", f"1{pause}b"],
    ):
        assert "a" in refusal(capsys, *words)


def test_what_the_system_says_does_not_break_the_line(capsys: Capture, data: Path) -> None:
    Path("a\nb").write_text("a file where the run was to be")
    assert "a b" in refusal(capsys, "train", data, "--out", "a\nb", *WORDS)


def test_names_of_arrays_do_not_break_the_line(capsys: Capture, trained: Path) -> None:
    np.savez("case.npz", **{"x": np.zeros((4, 2)), "p\nq": np.zeros(4), "r\ns": np.zeros(4)})
    line = refusal(capsys, "predict", trained, "case.npz", "--out", "out.npz", "--inputs", "none")
    assert "(it has: x, p q, r s)" in line
    run = copy_run(trained, Path("a\nb"))
    (run / "model.safetensors").unlink()
    assert "a b has no finished weights" in refusal(capsys, "predict", run, "case.npz", "--out", "out.npz")


def test_each_problem_of_many_stays_one_line(capsys: Capture, home: Path) -> None:
    (home / "all").mkdir()
    for i in range(3):
        mesh = pv.ImageData(dimensions=(3, 3, 1)).cast_to_unstructured_grid()
        mesh.point_data["p\nq"] = np.full(9, np.nan)
        mesh.save(home / "all" / f"case\n{i}.vtu")
    with pytest.raises(Problems) as caught:
        import_meshes("all", home / "out.h5", [], ["p\nq"], workers=1)
    assert len(caught.value.lines) == len(str(caught.value).splitlines()) == 3
    capsys.readouterr()
    assert main(["data", "import", "all", "--out", "out.h5", "--targets", "p\nq"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("lrsa: all/case ") for line in lines)


def test_an_error_says_its_lines_in_python_too() -> None:
    assert LrsaError("a\nb.vtu does not exist").lines == ["a b.vtu does not exist"]
    assert Problems(["a\nb", "c"]).lines == ["a b", "c"]
