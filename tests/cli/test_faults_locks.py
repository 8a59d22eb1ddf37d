"""A run is trained, and a file imported, by one process at a time; the other is told, and spoils nothing."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import OPTIONS, WORDS, files, grid_cases, write
from test_mesh_import import disc
from test_resume import PATIENCE, rows, start, stop_when

from lrsa.cli.program import main
from lrsa.data.store import Dataset
from lrsa.errors import LrsaError
from lrsa.files import alone
from lrsa.mesh.importing import import_meshes
from lrsa.training import fit as fitting
from lrsa.training.config import RunConfig, TrainConfig
from lrsa.training.fit import prepare

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


def test_a_run_is_not_resumed_while_it_is_trained(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    data, run = write(home / "d.h5", grid_cases(10), grid_cases(2, seed=1)), home / "run"
    process = start("train", data, "--out", run, "--train.epochs", "600", *WORDS)
    try:
        stop_when(process, lambda: rows(run) > 1, signal.SIGCONT)
        for words, said in (
            (["resume", "run"], "another process is making"),
            (["resume", "./run"], "another process is making"),
            (["train", str(data), "--out", "run"], "is a run already"),
        ):
            capsys.readouterr()
            assert main(words) == 2
            (line,) = capsys.readouterr().err.splitlines()
            assert said in line
        done = rows(run)
        stop_when(process, lambda: rows(run) > done, signal.SIGCONT)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
    with alone(run):  # it ends with its process, however that ends
        pass
    assert not list(home.glob(".*.lock"))


def test_the_second_of_two_that_begin_one_run_leaves_it_to_the_first(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first begins while the second still prepares: both have seen an empty folder."""
    run, check = home / "run", fitting._check_first_step

    def meanwhile(surrogate: Any, config: RunConfig) -> None:
        replace(config, train=TrainConfig(epochs=7)).begin(run)
        check(surrogate, config)

    monkeypatch.setattr(fitting, "_check_first_step", meanwhile)
    with pytest.raises(LrsaError, match="is a run already"):
        prepare(str(data), "lrsa", out=run, options=OPTIONS, train={"epochs": 3})
    assert RunConfig.load(run).train.epochs == 7


SLOW = """
import sys
from pathlib import Path
from lrsa.mesh.importing import import_meshes

def wait(done, total, words):
    if done == 2:
        print("two are made", flush=True)
        sys.stdin.read()

if __name__ == "__main__":
    import_meshes(sys.argv[1], Path(sys.argv[2]), ["f"], ["p"], workers=1, progress=wait)
"""


def test_two_imports_into_one_file_do_not_meet(home: Path) -> None:
    folder, out, program = home / "discs", home / "out.h5", home / "program.py"
    folder.mkdir()
    for i in range(4):
        disc(20 + i, seed=i).save(folder / f"disc_{i}.vtu")
    program.write_text(SLOW)
    pipe = subprocess.PIPE
    command = [sys.executable, str(program), str(folder), str(out)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as first:
        assert first.stdout is not None
        assert first.stdin is not None
        assert first.stdout.readline() == "two are made\n"
        parts = files(home / "out.h5.parts")
        with pytest.raises(LrsaError, match="another process is making"):
            import_meshes(folder, Path("out.h5"), ["f"], ["p"], workers=1)
        assert len(parts) >= 2
        assert parts.items() <= files(home / "out.h5.parts").items()
        assert not out.exists()
        first.stdin.close()
        assert first.wait(PATIENCE) == 0
    assert len(Dataset(out, "train")) == 3
    assert {p.name for p in home.iterdir()} == {"discs", "out.h5", "program.py"}
