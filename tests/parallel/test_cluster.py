"""A Dask cluster makes the same data as processes of this machine, and loses no case with a worker."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import pyvista as pv
from dask.distributed import Client, LocalCluster
from small import refusal, say

from lrsa.cli.program import main
from lrsa.experiments.cells import recorded
from lrsa.experiments.running import run
from lrsa.experiments.study import Study, Work
from lrsa.experiments.table import Column, Row, Table
from lrsa.parallel.pool import results
from lrsa.problems.catalogue import get
from lrsa.problems.making import make_dataset

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two workers, each a process of one thread."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made:
        assert isinstance(made, LocalCluster)
        yield made


def test_a_cluster_makes_the_same_file(cluster: LocalCluster, home: Path) -> None:
    given = (get("darcy"), 9, 3, "fast", 0, 1)
    here = make_dataset(*given, home / "here.h5")
    there = make_dataset(*given, home / "there.h5", cluster=cluster.scheduler_address)
    assert here.read_bytes() == there.read_bytes()


@dataclass(frozen=True)
class Deadly:
    """A call that kills its worker the first time."""

    mark: Path

    def __call__(self) -> int:
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 7


def test_a_worker_that_dies_costs_its_call_only(cluster: LocalCluster, home: Path) -> None:
    calls = [Deadly(home / "mark"), *(Deadly(home) for _ in range(3))]
    assert dict(results(calls, cluster=cluster.scheduler_address)) == dict.fromkeys(range(4), 7)
    assert (home / "mark").exists()
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)


def test_a_cluster_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrsa.parallel.pool.PATIENCE", 1)
    monkeypatch.setattr("lrsa.experiments.running.data_for_scale", lambda *given: pytest.fail("made data"))
    make = ("data", "make", "darcy", "--fidelity", "fast", "--samples", 2, "--out", "a.h5")
    for words in (make, ("reproduce", "table-standard", "--scale", "demo", "--out", "pages")):
        for address in ("127.0.0.1:1", "nonsense::"):
            said = refusal(capsys, *words, "--cluster", address)
            assert f"no Dask scheduler answers at {address}" in said


def boxes(folder: Path) -> Path:
    """Four meshes."""
    folder.mkdir()
    for n in range(3, 7):
        mesh = pv.ImageData(dimensions=(n, 3, 1)).cast_to_unstructured_grid()
        x, y, _ = np.asarray(mesh.points).T
        mesh.point_data["a"], mesh.point_data["p"] = x + y, x * y
        mesh.save(folder / f"box_{n}.vtu")
    return folder


def test_a_cluster_imports_the_same_file_and_tells_of_the_same_faults(
    cluster: LocalCluster, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "data",
        "import",
        boxes(home / "boxes").name,
        "--inputs",
        "a",
        "--targets",
        "p",
        "--derive",
        "sdf",
    )
    there = ("--cluster", cluster.scheduler_address)
    say(capsys, *words, "--out", "my.h5", "--workers", 1)
    here = (home / "my.h5").read_bytes()
    (home / "my.h5").unlink()
    say(capsys, *words, "--out", "my.h5", *there)
    assert (home / "my.h5").read_bytes() == here
    (home / "boxes" / "box_4.vtu").write_text("<VTKFile")
    assert main([*words, "--out", "other.h5", *there]) == 2
    line, kept = capsys.readouterr().err.splitlines()
    assert "boxes/box_4.vtu is not readable" in line
    assert "cases are built and kept in" in kept
    assert not (home / "other.h5").exists()


SMALL = {"width": 8, "depth": 1, "heads": 2, "rank": 4, "local": "pointwise"}


@pytest.mark.slow
def test_a_sweep_of_six_trainings_on_two_workers_gives_the_same_cells(
    cluster: LocalCluster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every error to the bit. One worker is killed on the way: its training goes on elsewhere."""
    problem = get("darcy")
    scale = problem.scale("demo")
    make_dataset(problem, scale.samples, scale.test, scale.fidelity, workers=2)
    table = Table(
        name="sweep",
        title="A sweep",
        about="six trainings",
        rows=lambda work: [
            Row(f"{model} {seed}", model, SMALL, {"epochs": 2, "steps": 8, "seed": seed, "symmetry": ""})
            for model in ("lrsa", "backbone-transolver")
            for seed in range(3)
        ],
        columns=lambda study: [Column("Darcy", "darcy")],
    )
    found = {}
    for name, address in (("here", None), ("there", cluster.scheduler_address)):
        folder = home / name
        work = Work(Study("demo"), folder / "cells", folder / "runs", folder / "out", cluster=address)
        killer = threading.Thread(target=kill_one, args=(cluster, folder / "runs"))
        if address is not None:
            killer.start()
        run([table], work)
        if address is not None:
            killer.join()
        tasks = table.tasks(work)
        found[name] = [cell.relative_l2 for task in tasks if (cell := recorded(task.job, work.cells))]
        assert len(found[name]) == 6
    assert found["here"] == found["there"]


def kill_one(cluster: LocalCluster, runs: Path) -> None:
    """Kill a worker that has begun to train."""
    while not any(runs.glob("*/metrics.jsonl")):
        time.sleep(0.02)
    worker = next(iter(cluster.workers.values()))
    os.kill(worker.pid, signal.SIGKILL)
