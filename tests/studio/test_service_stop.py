"""The service ends in order, bears many clients, and does as its description says."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
from serving import Running, body_of, cloud, plates, recorded, running, surrogate

PATH = "/v1/models/lrsa-mesh/predict"


@contextmanager
def process(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`lrsa serve` in a process of its own: its address."""
    command = [sys.executable, "-m", "lrsa", "serve", str(recorded("lrsa-mesh")), "--port", "0", *words]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        yield started.stdout.readline().split("/v1/")[0], started
    finally:
        started.kill()
        started.communicate()


def clients(url: str, count: int, seconds: float, seen: "Counter[str]") -> list[threading.Thread]:
    """Each asks again and again, until the time is over, or the service is stopping or gone."""
    model, end = surrogate("lrsa-mesh"), time.monotonic() + seconds
    cases = [cloud(i, 20 + 3 * i) for i in range(8)]
    truths = [model.predict(case) for case in cases]

    def work(index: int) -> None:
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
            turn = index
            while time.monotonic() < end:
                which = turn % len(cases)
                try:
                    answer = client.post(PATH, json=body_of(cases[which]))
                # Nobody listens, or an idle connection was closed before its next request was read: it was
                # not accepted. (One that is accepted and gets no answer ends in RemoteProtocolError.)
                except (httpx.ConnectError, httpx.ReadError):
                    seen["gone"] += 1
                    return
                except httpx.HTTPError as error:
                    seen[f"lost: {error!r}"] += 1
                    return
                if answer.status_code == 503:
                    seen["503"] += 1
                    return
                u, truth = np.array(answer.json()["u"]), truths[which]
                right = np.abs(u - truth).max() <= 1e-5 * np.abs(truth).max()
                seen["200" if answer.status_code == 200 and right else "wrong"] += 1
                turn += count

    made = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for one in made:
        one.start()
    return made


def test_a_kill_under_load_loses_no_request() -> None:
    seen: Counter[str] = Counter()
    with process() as (url, started):
        asking = clients(url, 16, 120, seen)
        while seen["200"] < 30:
            time.sleep(0.01)
        started.send_signal(signal.SIGTERM)
        for one in asking:
            one.join()
        assert started.wait(60) == 0
    assert {*seen} <= {"200", "503", "gone"}, seen
    assert seen["503"] + seen["gone"] == 16


def test_what_runs_ends_and_what_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from lrsa.studio import batching

    predict, free, entered = batching._predict, threading.Event(), threading.Event()

    def later(group: list[batching._Waiting]) -> None:
        entered.set()
        free.wait(60)
        predict(group)

    monkeypatch.setattr(batching, "_predict", later)
    answers: dict[str, int] = {}
    with running([recorded("lrsa-mesh")]) as service:

        def ask(who: str) -> None:
            with service.client() as client:
                answers[who] = client.post(PATH, json=body_of(cloud(0, 20))).status_code

        first = threading.Thread(target=ask, args=("running",))
        first.start()
        assert entered.wait(60)
        second = threading.Thread(target=ask, args=("waiting",))
        second.start()
        while not service.server.service.batcher.waiting:
            time.sleep(0.01)
        service.server.loop.call_soon_threadsafe(service.server.service.stop)
        second.join(60)
        assert answers == {"waiting": 503}
        with service.client() as client:
            assert client.post(PATH, json=body_of(cloud(0, 20))).status_code == 503
            assert client.get("/health").json()["status"] == "stopping"
        free.set()
        first.join(60)
    assert answers == {"waiting": 503, "running": 200}


@pytest.mark.slow
def test_64_clients_for_a_minute_see_no_error_and_the_memory_is_steady() -> None:
    seen: Counter[str] = Counter()
    with process("--threads", "1") as (url, started):

        def memory() -> float:
            pages = int(Path(f"/proc/{started.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

        asking, sizes = clients(url, 64, 60, seen), []
        while any(one.is_alive() for one in asking):
            time.sleep(1)
            sizes.append(memory())
    assert {*seen} == {"200"}, seen
    third = len(sizes) // 3
    assert max(sizes[2 * third :]) < 1.1 * max(sizes[:third]), sizes


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running([plates(tmp_path_factory.mktemp("runs")), recorded("lrsa-times")]) as made:
        yield made


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_it_does_as_its_description_says(service: Running, tmp_path: Path, examples: int) -> None:
    """By schemathesis, with all its checks.

    A schema cannot say that x and f are of one length, nor which bytes are a mesh: so a body that conforms to
    it may still be answered with 422.
    """
    (tmp_path / "schemathesis.toml").write_text(
        '[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", 422]\n'
    )
    command = [Path(sys.executable).with_name("schemathesis"), "run", f"{service.url}/openapi.json"]
    options = ["--max-examples", str(examples), "--seed", "1", "--no-color", "--generation-database", "none"]
    phases = ["--phases", "examples,fuzzing"] if examples < 10 else []
    done = subprocess.run(
        [*command, *options, *phases], cwd=tmp_path, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
