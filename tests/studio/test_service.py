"""The HTTP service: its answers are those of the surrogate, whoever asks at the same time, in every form."""

import io
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import pyvista as pv
from serving import Running, body_of, cases_of, cloud, plate, plates, recorded, running, surrogate
from small import grid_cases, quick, write

import lrsa
from lrsa.cli.program import main
from lrsa.evaluation.evaluate import evaluate
from lrsa.studio import batching
from lrsa.studio.service_bodies import Limits
from lrsa.studio.service_files import Files
from lrsa.studio.service_running import Address
from lrsa.surrogate.predict_files import predict_path
from lrsa.surrogate.surrogate import WHOLE

RUNS = {"lrsa": "grid", "lrsa-mesh": "mesh", "lrsa-times": "times", "mesh-graph-net": "mesh"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plates(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def service(run: Path) -> Iterator[Running]:
    with running([*map(recorded, RUNS), run, f"again={run}"]) as made:
        yield made


@pytest.fixture
def client(service: Running) -> Iterator[httpx.Client]:
    with service.client() as made:
        yield made


def predicted(answer: httpx.Response) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.array(answer.json()["u"], np.float32)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("name", RUNS)
def test_an_answer_to_one_client_has_the_bits_of_predict(name: str, client: httpx.Client) -> None:
    model = surrogate(name)
    for case in cases_of(RUNS[name])[:2]:
        answer = predicted(client.post(f"/v1/models/{name}/predict", json=body_of(case, "graph" in name)))
        assert np.array_equal(answer, model.predict(case))


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The service predicts nothing until this is set."""
    free, predict = threading.Event(), batching._predict

    def later(group: Any) -> None:
        free.wait(30)
        predict(group)

    monkeypatch.setattr(batching, "_predict", later)
    yield free
    free.set()


def test_answers_to_many_at_once_are_those_of_predict_to_rounding(
    service: Running, busy: threading.Event
) -> None:
    model = surrogate("lrsa-mesh")
    cases = [cloud(seed, 40 + 7 * (seed % 5)) for seed in range(24)]
    before = service.server.service.health

    def ask(case: lrsa.PointSet) -> np.ndarray:
        with service.client() as client:
            return predicted(client.post("/v1/models/lrsa-mesh/predict", json=body_of(case)))

    with ThreadPoolExecutor(len(cases)) as pool:
        batcher = service.server.service.batcher
        asked = [pool.submit(ask, cases[0])]
        wait_until(lambda: batcher.cases > before.cases)  # that one is predicted alone
        asked += [pool.submit(ask, case) for case in cases[1:]]
        wait_until(lambda: batcher.waiting == len(cases) - 1)
        busy.set()
        answers = [one.result() for one in asked]
    after = service.server.service.health
    assert after.cases - before.cases == len(cases)
    assert after.batches - before.batches == 2
    for case, answer in zip(cases, answers, strict=True):
        truth = model.predict(case)
        assert np.abs(answer - truth).max() <= 1e-5 * np.abs(truth).max()


def test_a_time_gives_one_frame_and_a_list_of_times_as_many(client: httpx.Client) -> None:
    (case, *_), model = cases_of("times"), surrogate("lrsa-times")
    frames = model.predict(case)
    for i, t in enumerate(np.asarray(case.times).tolist()):
        answer = predicted(client.post("/v1/models/lrsa-times/predict", json=body_of(case) | {"time": t}))
        assert np.array_equal(answer, frames[i])


def test_a_file_comes_back_as_lrsa_predict_writes_it(client: httpx.Client, run: Path, tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    table.write_text("case,Re\nnew,0.5\n")
    for suffix in (".vtu", ".vtk"):
        path = tmp_path / f"new{suffix}"
        plate().save(path)
        predict_path(run, path, tmp_path / f"out{suffix}", globals_table=table)
        files = {"file": (f"../../../etc/wing{suffix}", path.read_bytes())}
        answer = client.post("/v1/models/plates/predict", files=files, data={"globals": "0.5"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-disposition"].endswith(f'"predicted{suffix}"')
        (tmp_path / f"got{suffix}").write_bytes(answer.content)
        ours, theirs = (pv.read(tmp_path / f"{name}{suffix}") for name in ("got", "out"))
        assert set(ours.point_data.keys()) == {"a", "p_predicted"}
        assert np.array_equal(ours.point_data["p_predicted"], theirs.point_data["p_predicted"])
        assert np.array_equal(ours.cells, theirs.cells)


def test_npz_comes_back_as_npz_and_large_ones_are_streamed(client: httpx.Client) -> None:
    model = surrogate("lrsa-mesh")
    for points in (50, WHOLE + 1000):
        case = cloud(0, points)
        files = {"file": ("case.npz", npz(x=case.x, f=case.f, globals=case.globals))}
        answer = client.post("/v1/models/lrsa-mesh/predict", files=files)
        assert answer.status_code == 200, answer.text
        with np.load(io.BytesIO(answer.content)) as arrays:
            assert {*arrays} == {"x", "f", "globals", "u_predicted"}
            assert np.array_equal(arrays["u_predicted"][:, None], model.predict(case))


def test_a_long_answer_in_json_is_whole(client: httpx.Client) -> None:
    case = cloud(1, 10_000)
    answer = predicted(client.post("/v1/models/lrsa-mesh/predict", json=body_of(case)))
    assert np.array_equal(answer, surrogate("lrsa-mesh").predict(case))


def test_who_leaves_the_training_range_is_warned(client: httpx.Client) -> None:
    body = body_of(cloud(0, 20)) | {"globals": [100.0]}
    warnings = client.post("/v1/models/plates/predict", json=body).json()["warnings"]
    assert any("parameter" in line and "100" in line for line in warnings)


def test_a_model_says_what_it_takes(client: httpx.Client) -> None:
    names = [one["name"] for one in client.get("/v1/models").json()["models"]]
    assert names == [*RUNS, "plates", "again"]
    about = client.get("/v1/models/plates").json()
    assert about["targets"] == [{"name": "p", "unit": "Pa", "low": None, "high": None}]
    assert [one["name"] for one in about["globals"]] == ["Re"]
    assert about["coordinates"][0]["low"] < about["coordinates"][0]["high"]
    assert client.get("/v1/models/lrsa").json()["needs"]["grid"]
    assert client.get("/v1/models/lrsa-times").json()["time"] is not None
    unknown = client.get("/v1/models/plate")
    assert (unknown.status_code, "Did you mean plates?" in unknown.json()["detail"]) == (404, True)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluated ensemble that names two quantities, one of them of a surface, which a cloud lacks."""
    folder = tmp_path_factory.mktemp("pair")
    data = write(folder / "data.h5", grid_cases(12), grid_cases(4, seed=1))
    quick(data, folder / "pair", ensemble=2, quantities="peak=max:p;push=force:p,along=x")
    evaluate(folder / "pair").save(folder / "pair" / "evaluation.json")
    return folder / "pair"


def test_quantities_come_with_their_interval_and_errors_beside_the_null_baselines(pair: Path) -> None:
    case = grid_cases(1, seed=5)[0]
    case = replace(case, u=None, grid=None)
    every = lrsa.load(pair).answers([case])[0]
    assert case.f is not None
    with running([pair]) as service, service.client() as client:
        answer = client.post("/v1/models/pair/predict", json=body_of(case)).json()
        assert answer["quantities"].keys() == {"peak"}
        assert answer["quantities"]["peak"]["value"] == pytest.approx(every.mean(0).max(), rel=1e-6)
        assert answer["quantities"]["peak"]["interval"] > 0
        assert any("push is not computed" in line for line in answer["warnings"])
        files = {"file": ("case.npz", npz(x=case.x, a=case.f[:, 0]))}
        got = client.post("/v1/models/pair/predict", files=files)
        assert json.loads(got.headers["lrsa-quantities"])["peak"] == answer["quantities"]["peak"]
        with np.load(io.BytesIO(got.content)) as arrays:
            np.testing.assert_allclose(arrays["p_spread"], every.std(0)[:, 0], rtol=1e-3, atol=1e-6)
            assert (arrays["p_interval"] > 0).all()
        quality = client.get("/v1/models/pair").json()["quality"]
    found = evaluate(pair)
    assert quality["relative_l2"] == found.relative_l2
    assert quality["nulls"] == found.nulls
    assert quality["quantities"]["peak"]["mean_absolute"] == found.quantities["peak"].mean_absolute
    assert quality["quantities"]["peak"]["nulls"] == found.quantities["peak"].nulls
    assert quality["coverage"]["peak"]["inside"] == found.coverage["peak"].inside


def test_the_page_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in page.text
    assert not re.findall(r"<(?:script|img|iframe|link)|url\(|@import|https?://", page.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_limits_are_named(busy: threading.Event) -> None:
    limits = Limits(megabytes=0.01, points=50, seconds=1)
    with running([recorded("lrsa-mesh")], limits) as small, small.client() as client:
        path = "/v1/models/lrsa-mesh/predict"
        answers = {
            413: client.post(path, json=body_of(cloud(0, 1000))),
            422: client.post(path, json=body_of(cloud(0, 51))),
            415: client.post(path, content=b"x", headers={"content-type": "text/plain"}),
        }
        for status, answer in answers.items():
            assert answer.status_code == status
            assert answer.json()["detail"]
        chunks = (b"0" * 1000 for _ in range(20))
        assert (
            client.post(path, content=chunks, headers={"content-type": "application/json"}).status_code == 413
        )
        late = client.post(path, json=body_of(cloud(0, 20)))
        assert (late.status_code, "1 s" in late.json()["detail"]) == (503, True)
        busy.set()


def test_only_who_has_the_token_is_served() -> None:
    with running([recorded("lrsa-mesh")], token="a-secret") as closed, closed.client() as client:
        assert client.get("/health").status_code == 200
        for path in ("/v1/models", "/v1/models/lrsa-mesh", "/docs", "/openapi.json", "/nothing"):
            for said in ({}, {"authorization": "Bearer a-secre"}, {"authorization": "a-secret"}):
                answer = client.get(path, headers=said)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        known = {"authorization": "Bearer a-secret"}
        assert client.get("/v1/models", headers=known).status_code == 200
        assert client.get("/openapi.json", headers=known).json()["security"] == [{"token": []}]


def test_another_host_is_refused_where_there_is_no_token(client: httpx.Client) -> None:
    assert client.get("/v1/models", headers={"host": "example.org"}).status_code == 421
    assert client.get("/v1/models", headers={"host": "localhost:1"}).status_code == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "--token"),
        (["--host", "192.0.2.1"], "--token"),
        (["--token", " "], "--token"),
        (["--port", "99999"], "--port"),
        (["--points", "0"], "--points"),
        (["--seconds", "nan"], "--seconds"),
    ],
)
def test_bad_options_are_refused_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(recorded("lrsa-mesh")), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_runs_need_names_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(recorded("lrsa-mesh"))
    for words in ([run, run], [f"a b={run}"], [], [str(tmp_path)]):
        assert main(["serve", *words, "--port", "0"]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_without_the_extra_one_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['fastapi'] = None; sys.modules['uvicorn'] = None;"
        f"from lrsa.cli.program import main; sys.exit(main(['serve', {str(recorded('lrsa-mesh'))!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install lrsa[studio]" in done.stderr


def test_no_file_of_a_request_is_left(client: httpx.Client, service: Running) -> None:
    client.post("/v1/models/plates/predict", files={"file": ("a.vtu", b"<")}, data={"globals": "1"})
    assert not [*service.server.service.files.folder.iterdir()]


def test_graphs_of_earlier_cases_are_forgotten_when_they_are_many(tmp_path: Path) -> None:
    files = Files(Limits(megabytes=0.001), tmp_path)
    kept = tmp_path / "graphs" / "a.npy"
    kept.parent.mkdir()
    for size, there in ((1000, True), (9000, False)):
        kept.write_bytes(bytes(size))
        files.tidy()
        assert kept.exists() == there


def test_a_shape_of_which_the_model_makes_nothing_is_refused(client: httpx.Client) -> None:
    body = body_of(cases_of("times")[0])
    for grid in ([36], [1, 36], [6, 6, 1], [5, 5]):
        answer = client.post("/v1/models/lrsa-times/predict", json=body | {"grid": grid})
        assert answer.status_code in (200, 422), answer.text


def test_an_answer_does_not_wait_for_its_first_part_to_be_confirmed() -> None:
    """Else each of them takes 40 ms longer than it needs."""
    with Address(port=0).listen() as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
