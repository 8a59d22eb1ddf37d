"""Whatever is sent, the answer is 4xx: never 5xx, never the end of the service."""

import io
import multiprocessing
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serving import Running, body_of, cloud, plate, plates, recorded, running

from lrsa.studio.service_bodies import Limits
from lrsa.surrogate.inputs import Inputs

PATH, FILES = "/v1/models/lrsa-mesh/predict", "/v1/models/plates/predict"
GOOD = body_of(cloud(0, 12))
SECRET = "do-not-read-this"
HEAD = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n".encode()
HEAD += b"Content-Length: 1000\r\n\r\n"
Sent = tuple[str, bytes, dict[str, str]]
"""Path, body, headers."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("runs")
    # Seconds enough for a reader to start on a busy machine.
    with running([recorded("lrsa-mesh"), plates(folder)], Limits(megabytes=2, points=5000)) as made:
        yield made


def as_json(text: str | bytes) -> Sent:
    return PATH, text if isinstance(text, bytes) else text.encode(), {"content-type": "application/json"}


def as_file(content: bytes, name: str, fields: dict[str, Any] | None = None, path: str = FILES) -> Sent:
    form = httpx.Request(
        "POST", "http://a", files={"file": (name, content)}, data={"globals": "1", **(fields or {})}
    )
    return path, form.read(), {"content-type": form.headers["content-type"]}


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Evil:
    """Unpickling this makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.mark,)


def wrong_json(rng: np.random.Generator) -> Sent:
    """A body that was right, spoilt at one place."""
    text = httpx.Request("POST", "http://a", json=GOOD).read().decode()
    place = int(rng.integers(1, len(text)))
    how = int(rng.integers(6))
    odd = ["NaN", "Infinity", "-Infinity", "1e999", '"1"', "null", "true", "{}", "[]", "[[[]]]", "1" * 5000]
    if how == 0:
        return as_json(text[:place])
    if how == 1:
        return as_json(
            text[:place].encode() + bytes(rng.integers(128, 256, 3, np.uint8)) + text[place:].encode()
        )
    wrong = dict(GOOD)
    name = str(rng.choice(list(wrong)))
    if how == 2:
        del wrong[name]
        return as_json(httpx.Request("POST", "http://a", json=wrong).read())
    if how == 3:
        wrong[f"{name}\ud800" if place % 2 else "../../x"] = 1
        return as_json(repr(wrong).replace("'", '"'))
    if how == 4:
        rows = wrong["x"]
        wrong["x"] = rows[: place % len(rows)] if place % 2 else [*rows[:-1], rows[-1] * 2]
        return as_json(httpx.Request("POST", "http://a", json=wrong).read())
    return as_json(text.replace(f'"{name}":', f'"{name}":{rng.choice(odd)},"was":', 1))


def wrong_file(rng: np.random.Generator, originals: dict[str, bytes]) -> Sent:
    """A file that was right, cut off or with bytes changed, under a name with a path in it."""
    suffix = str(rng.choice(list(originals)))
    content = bytearray(originals[suffix])
    if rng.integers(2):
        content = content[: int(rng.integers(0, len(content) // 2))]
    else:  # the head of all formats says what they are
        content[: max(len(content) // 4, 8)] = rng.integers(
            0, 256, max(len(content) // 4, 8), np.uint8
        ).tobytes()
    names = ("case", "../../../etc/passwd", "/etc/shadow", "..\\..\\x", "a\x00b", "%2e%2e%2fx", "con", "")
    return as_file(bytes(content), f"{rng.choice(names)}{suffix}")


def originals(folder: Path) -> dict[str, bytes]:
    mesh = plate(12)
    found = {}
    for suffix in (".vtu", ".vtk", ".vtp", ".stl"):
        path = folder / f"a{suffix}"
        (mesh if suffix in (".vtu", ".vtk") else mesh.extract_surface(algorithm=None)).save(path)
        found[suffix] = path.read_bytes()
    x = np.asarray(mesh.points)[:, :2]
    found[".npz"] = npz(x=x, a=x[:, 0])
    return found


def bomb(size: int = 10**8) -> bytes:
    """An NPZ that unpacks to a thousand times as many zeros."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (size // 8, 1)}
    )
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("x.npy", "w") as entry,
    ):
        entry.write(head.getvalue())
        for _ in range(size // 10**7):
            entry.write(bytes(10**7))
    return file.getvalue()


def lying(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """An NPZ whose array says that it is large."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", head.getvalue() + bytes(64))
    return file.getvalue()


def collection(secret: Path) -> bytes:
    """A file that names another one of the machine."""
    return (
        f'<VTKFile type="vtkMultiBlockDataSet"><vtkMultiBlockDataSet><DataSet index="0" file="{secret}"/>'
        "</vtkMultiBlockDataSet></VTKFile>"
    ).encode()


def tricks(folder: Path) -> list[Sent]:
    """What people do on purpose."""
    mark, secret = folder / "touched", folder / "secret.vtu"
    plate(12).save(secret)
    pickled = np.array([Evil(mark)], object)
    entity = (
        f'<!DOCTYPE a [<!ENTITY b SYSTEM "file://{secret}">]><VTKFile type="UnstructuredGrid">&b;</VTKFile>'
    )
    laughs = "<!DOCTYPE a [<!ENTITY a0 'ha'>" + "".join(
        f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 12)
    )
    laughs += "]><VTKFile type='UnstructuredGrid'>&a11;</VTKFile>"
    files = [
        (npz(x=pickled), "a.npz"),
        (npz(x=np.zeros((5, 2)), a=pickled), "a.npz"),
        (pickle.dumps(Evil(mark)), "a.npz"),
        (pickle.dumps(Evil(mark)), "a.pkl"),
        (lying((10**12, 2)), "a.npz"),
        (lying((-1, 2)), "a.npz"),
        (lying((2**62, 2**62)), "a.npz"),
        (lying((2, 2), "|O"), "a.npz"),
        (npz(x=np.full((5, 2), np.nan), a=np.zeros(5)), "a.npz"),
        (npz(x=np.full((5, 2), 1e300), a=np.zeros(5)), "a.npz"),
        (npz(x=np.array(["a", "b"]), a=np.zeros(5)), "a.npz"),
        (npz(x=np.zeros((0, 2)), a=np.zeros(0)), "a.npz"),
        (npz(x=np.zeros((6000, 2)), a=np.zeros(6000)), "a.npz"),
        (npz(x=np.zeros((5, 2)), a=np.zeros(5), cells=np.full((3, 3), 10**9)), "a.npz"),
        (npz(**{"../../x": np.zeros((5, 2)), "/etc/passwd": np.zeros(5)}), "a.npz"),
        (bomb(), "a.npz"),
        (collection(secret), "a.vtm"),
        (collection(secret), "a.pvd"),
        (collection(secret), "a.vtu"),
        (entity.encode(), "a.vtu"),
        (laughs.encode(), "a.vtu"),
        (b"x,y,a\n1,2\n", "a.csv"),
        (b"x,y,a\n1,2,=cmd|' /C calc'!A0\n", "a.csv"),
        (b"", "a.vtu"),
        (b"x", ""),
        (b"x", "a"),
    ]
    good = npz(x=np.zeros((5, 2)), a=np.zeros(5))
    fields = [{"globals": word} for word in ("nan", "1,2", "x", "", "1e999", "9" * 20_000, "\x00")]
    fields += [{"inputs": "../../etc/passwd"}, {"time": "1"}, {"inputs": "a,a"}]
    deep, kind = "[" * 100_000, {"content-type": "application/json"}
    form = as_file(good, "a.npz")
    return [
        *(as_file(content, name) for content, name in files),
        *(as_file(content, name, path=PATH) for content, name in files),
        *(as_file(good, "a.npz", more) for more in fields),
        *map(
            as_json, ("", "{", deep, f'{{"x":{deep}', "null", "[]", '"x"', "\x00", "﻿{}", '{"x":1,"x":[[1]]}')
        ),
        as_json(b"\xff\xfe" + b"{}"),
        (PATH, b"{}", {}),
        (PATH, b"{}", {"content-type": "application/x-python-pickle"}),
        (PATH, b"{}", {**kind, "content-encoding": "gzip"}),
        (PATH, b"0" * 3_000_000, kind),
        (FILES, form[1][:-40], form[2]),
        (FILES, form[1], {"content-type": "multipart/form-data"}),
        (FILES, form[1], {"content-type": "multipart/form-data; boundary=other"}),
        (FILES, form[1], {"content-type": f"multipart/form-data; boundary={'b' * 5000}"}),
        (FILES, b"--b\r\n" * 10_000, {"content-type": "multipart/form-data; boundary=b"}),
        *(
            (f"/v1/models/{name}/predict", b"{}", kind)
            for name in ("..%2f..%2fetc", "%00", "%ff", "a" * 5000, "plates%20")
        ),
    ]


def check(client: httpx.Client, sent: Sent) -> None:
    path, body, headers = sent
    answer = client.post(path, content=body, headers=headers)
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text, body[:200], headers)
    assert answer.json()["detail"]
    assert SECRET not in answer.text
    assert "/tmp" not in answer.text


def check_well(service: Running) -> None:
    with service.client() as client:
        assert client.post(PATH, json=GOOD).status_code == 200
        assert client.get("/health").json()["running"] == 1


def test_what_people_do_on_purpose_is_refused(service: Running, tmp_path: Path) -> None:
    with service.client() as client:
        for sent in tricks(tmp_path):
            check(client, sent)
    assert not (tmp_path / "touched").exists()
    check_well(service)


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_spoilt_bodies_are_refused(service: Running, tmp_path: Path, count: int) -> None:
    files = originals(tmp_path)
    with service.client() as client:
        for seed in range(count):
            rng = np.random.default_rng(seed)
            check(client, wrong_json(rng) if seed % 3 else wrong_file(rng, files))
    check_well(service)


def test_what_nobody_foresaw_in_a_file_is_refused(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(inputs: Inputs, path: Path) -> None:
        raise ValueError(f"nothing was foreseen for {path}")

    with monkeypatch.context() as patched, service.client() as client:
        patched.setattr(Inputs, "load", fail)
        path, body, headers = as_file(npz(x=np.zeros((5, 2)), a=np.zeros(5)), "a.npz")
        answer = client.post(path, content=body, headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "the file makes no case (ValueError: nothing was foreseen for case.npz)",
    )


def test_a_reader_that_was_killed_is_replaced(service: Running, tmp_path: Path) -> None:
    """While it waits, and while it reads: neither the file that comes next nor the service suffers."""
    path, body, headers = as_file(originals(tmp_path)[".vtu"], "a.vtu")
    with service.client() as client:
        for _ in range(3):
            for reader in multiprocessing.active_children():
                reader.kill()
            assert client.post(path, content=body, headers=headers).status_code in (200, 422)
    check_well(service)


def raw(service: Running, content: bytes) -> bytes:
    """What comes back for these bytes, after which nothing is sent."""
    received = b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        # The service may have hung up before it got all.
        with suppress(OSError):
            connection.sendall(content)
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while part := connection.recv(65536):
                received += part
    return received


@pytest.mark.parametrize(
    "content",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: a\r\n" * 50_000 + b"\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"POST "
        + PATH.encode()
        + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST "
        + PATH.encode()
        + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /../../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\n\r\n",
        struct.pack("<1000I", *range(1000)),
    ],
)
def test_what_is_no_http_ends_with_4xx_or_the_connection(service: Running, content: bytes) -> None:
    answer = raw(service, content)
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:100]
    check_well(service)


def test_a_body_that_breaks_off_harms_nobody(service: Running) -> None:
    for _ in range(20):
        raw(service, HEAD + b'{"x": [[')
    check_well(service)


def test_a_client_that_sends_slowly_blocks_nobody(service: Running) -> None:
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(30)]
    try:
        for connection in slow[:20]:
            connection.sendall(HEAD + b'{"x": [[')
        for connection in slow[20:]:  # not even the headers
            connection.sendall(b"GET /health HTT")
        with service.client() as client:
            for i in range(20):
                slow[i].sendall(b"0")
                assert client.post(PATH, json=GOOD).status_code == 200
    finally:
        for connection in slow:
            connection.close()


def test_who_does_not_send_in_time_is_told() -> None:
    with (
        running([recorded("lrsa-mesh")], Limits(seconds=0.5)) as service,
        socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection,
    ):
        connection.sendall(HEAD + b"{")
        assert connection.recv(1000).startswith(b"HTTP/1.1 408")
