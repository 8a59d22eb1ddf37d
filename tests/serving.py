"""A service on a free port of this machine, and runs for it, for the tests of the studio."""

import json
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyvista as pv

import lrsa
from lrsa.data.store import Dataset
from lrsa.pointset import PointSet
from lrsa.studio.service_bodies import Limits
from lrsa.studio.service_running import Address, Server, serve

RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True)
class Running:
    """A service in a thread of this process."""

    url: str
    server: Server

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, **more)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def running(
    runs: Sequence[Path | str], limits: Limits | None = None, token: str | None = None
) -> Iterator[Running]:
    """The service of these runs; it is asked to stop in the end."""
    started, found = threading.Event(), []

    def ready(url: str, server: Server) -> None:
        found.append(Running(url, server))
        started.set()

    words, address = [str(run) for run in runs], Address(port=0, token=token)
    work = threading.Thread(target=serve, args=(words, address, limits or Limits(), 1, "cpu", ready))
    work.start()
    assert started.wait(60)
    try:
        yield found[0]
    finally:
        found[0].server.handle_exit(signal.SIGTERM, None)
        work.join(60)
        assert not work.is_alive()


def recorded(run: str) -> Path:
    return RECORDED / "runs" / run


def cases_of(data: str) -> list[PointSet]:
    """The test cases of a recorded data set, without their answers."""
    test = Dataset(RECORDED / "data" / f"{data}.h5", "test")
    return [replace(test[i], u=None, u_mask=None, weights=None, surface=None) for i in range(len(test))]


def plates(folder: Path) -> Path:
    """A run as if it had been imported from meshes of an input a and a target p, with a parameter Re."""
    run = folder / "plates"
    shutil.copytree(recorded("lrsa-mesh"), run)
    config = json.loads((run / "config.json").read_text())
    roles = {"inputs": ["a"], "targets": ["p"], "derive": [], "globals": ["Re"], "location": "point"}
    names = {"coords": ["x", "y"], "inputs": ["a"], "targets": ["p"], "globals": ["Re"], "units": {"p": "Pa"}}
    config["schema"] |= {"names": names, "provenance": {"recipe": {**roles, "channels": {"a": 1, "p": 1}}}}
    (run / "config.json").write_text(json.dumps(config))
    spans = json.loads((run / "ranges.json").read_text())
    named = {"input 0": "input a", "parameter 0": "parameter Re"}
    (run / "ranges.json").write_text(
        json.dumps({named.get(name, name): span for name, span in spans.items()})
    )
    return run


def plate(points: int = 30, seed: int = 0) -> pv.UnstructuredGrid:
    """Triangles in the plane with the input a."""
    rng = np.random.default_rng(seed)
    cloud = pv.PolyData(np.c_[rng.random((points, 2)), np.zeros(points)])
    mesh = cloud.delaunay_2d().cast_to_unstructured_grid()
    mesh.clear_data()
    mesh.point_data["a"] = np.sin(np.asarray(mesh.points)[:, 0])
    return mesh


def body_of(case: PointSet, cells: bool = False) -> dict[str, Any]:
    """The case as JSON."""
    given = {"x": case.x, "f": case.f, "globals": case.globals, "time": case.times}
    given |= {"cells": case.cells, "cell_types": case.cell_types} if cells else {}
    body = {name: value.tolist() for name, value in given.items() if value is not None}
    return body | ({"grid": list(case.grid)} if case.grid else {})


def cloud(seed: int, points: int) -> PointSet:
    """A case for the run lrsa-mesh, of any number of points."""
    rng = np.random.default_rng(seed)
    x, f = rng.random((points, 2)), rng.standard_normal((points, 1))
    return PointSet(x.astype(np.float32), f.astype(np.float32), globals=rng.random(1).astype(np.float32))


def surrogate(run: str) -> lrsa.Surrogate:
    return lrsa.load(recorded(run))
