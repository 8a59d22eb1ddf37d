"""A Dask cluster makes the same data as processes of this machine, and loses no case with a worker."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dask.distributed import Client, LocalCluster
from small import refusal

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
    words = ("data", "make", "darcy", "--fidelity", "fast", "--samples", 2, "--out", "a.h5")
    assert "no Dask scheduler answers at 127.0.0.1:1" in refusal(capsys, *words, "--cluster", "127.0.0.1:1")
