"""The HTTP service under load: throughput with and without batching, beside one-by-one calls; its memory.

    python studies/service.py [--seconds 60] [--clients 64] [--sizes 100 500 2000] [--out results]

`lrsa serve` runs in a process of its own with one thread for torch, once with batches and once with
`--together 1`; the clients are tasks of this process, which send JSON and wait for the answer. Both share
the cores. Beside them stand one client that calls one by one, and `Surrogate.predict` in a loop, without
HTTP. The weights are those after one epoch: speed does not depend on them.
"""

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

import lrsa

MODEL = {"width": 64, "depth": 4, "heads": 4, "rank": 32}
EVERY = 1.0
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Load:
    """What clients saw."""

    answers: int
    refused: int
    errors: int
    seconds: float
    waits: list[float]
    memory: list[float]
    """MB of the service, second by second."""
    cases_per_batch: float
    processor: float
    """Seconds of the service on the processor, which other programs of the machine do not change much."""

    @property
    def cost(self) -> float:
        """Milliseconds of the processor for an answer."""
        return 1e3 * self.processor / max(self.answers, 1)

    @property
    def rate(self) -> float:
        return self.answers / self.seconds

    def wait(self, share: float) -> float:
        """Milliseconds within which this share of the answers came."""
        return 1e3 * sorted(self.waits)[min(int(share * len(self.waits)), len(self.waits) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 2000])
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder))
        rows = [row for points in options.sizes for row in measured(run, points, options)]
    text = page(rows, options)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "service.md").write_text(text)
    print(text)


def make_run(folder: Path) -> Path:
    """A run of the usual size on random cases of two coordinates, one input and one target."""
    rng = np.random.default_rng(0)
    cases = [
        lrsa.PointSet(rng.random((200, 2)), rng.random((200, 1)), u=rng.random((200, 1))) for _ in range(8)
    ]
    lrsa.write_dataset(folder / "random.h5", cases)
    lrsa.fit(folder / "random.h5", epochs=1, out=folder / "run", threads=1, options=MODEL)
    return folder / "run"


def measured(run: Path, points: int, options: argparse.Namespace) -> Iterator[tuple[int, str, Load]]:
    """The rows of one size of case: sizes of a mixed load differ by a half."""
    rng = np.random.default_rng(points)
    cases = [
        (rng.random((n, 2)), rng.random((n, 1))) for n in rng.integers(points * 3 // 4, points * 5 // 4, 32)
    ]
    bodies = [request(x, f) for x, f in cases]
    yield points, "`Surrogate.predict` in a loop, no HTTP", direct(run, cases, options.seconds / 3)
    for clients, together, words in (
        (1, 64, "one client, one by one"),
        (options.clients, 1, f"{options.clients} clients, `--together 1`"),
        (options.clients, 64, f"{options.clients} clients, batched"),
    ):
        seconds = options.seconds if clients > 1 and together > 1 else options.seconds / 3
        with serving(run, together) as (port, process):
            asyncio.run(load(port, process, bodies, 4, 1.0))  # first calls are slower
            yield points, words, asyncio.run(load(port, process, bodies, clients, seconds))


def direct(run: Path, cases: list[tuple[np.ndarray, np.ndarray]], seconds: float) -> Load:
    surrogate, waits, start, before_all = lrsa.load(run), [], time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        before = time.perf_counter()
        surrogate.predict(*cases[len(waits) % len(cases)])
        waits.append(time.perf_counter() - before)
    return Load(
        len(waits), 0, 0, time.perf_counter() - start, waits, [], 1.0, time.process_time() - before_all
    )


@contextmanager
def serving(run: Path, together: int) -> Iterator[tuple[int, int]]:
    """The port of a service, and the id of its process."""
    words = ["serve", str(run), "--port", "0", "--together", str(together), "--threads", "1"]
    process = subprocess.Popen([sys.executable, "-m", "lrsa", *words], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().split("/v1/")[0].rpartition(":")[2]), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stdout.close()


def request(x: np.ndarray, f: np.ndarray) -> bytes:
    body = json.dumps({"x": x.astype(np.float32).tolist(), "f": f.astype(np.float32).tolist()})
    head = "POST /v1/models/run/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def load(port: int, process: int, bodies: list[bytes], clients: int, seconds: float) -> Load:
    """So many clients, each asking again as soon as it was answered."""
    counts, waits, memory = {"200": 0, "503": 0, "else": 0}, [], []
    before, used, start = await health(port), processor(process), time.perf_counter()
    end = start + seconds

    async def client(index: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = index
        while time.perf_counter() < end:
            asked = time.perf_counter()
            status, _ = await ask(reader, writer, bodies[turn % len(bodies)])
            counts[status if status in counts else "else"] += 1
            waits.append(time.perf_counter() - asked)
            turn += clients
        writer.close()

    async def watch() -> None:
        while time.perf_counter() < end:
            memory.append(resident(process))
            await asyncio.sleep(EVERY)

    results = await asyncio.gather(watch(), *map(client, range(clients)), return_exceptions=True)
    errors = counts["else"] + sum(isinstance(result, Exception) for result in results)
    took, after = time.perf_counter() - start, await health(port)
    batches = max(after["batches"] - before["batches"], 1)
    per_batch = (after["cases"] - before["cases"]) / batches
    used = processor(process) - used
    return Load(counts["200"], counts["503"], errors, took, waits, memory, per_batch, used)


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, content: bytes
) -> tuple[str, bytes]:
    """Status and body of the answer."""
    writer.write(content)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    return head.split()[1], await reader.readexactly(length)


async def health(port: int) -> dict[str, int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _, body = await ask(reader, writer, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    writer.close()
    return json.loads(body)


def resident(process: int) -> float:
    """MB that a process has in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor(process: int) -> float:
    """Seconds that a process has had on the processor."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def page(rows: list[tuple[int, str, Load]], options: argparse.Namespace) -> str:
    """The tables, with what they were made by."""
    sizes = " ".join(map(str, options.sizes))
    typed = f"--seconds {options.seconds:g} --clients {options.clients} --sizes {sizes}"
    lines = [
        "# The HTTP service under load",
        "",
        f"`python studies/service.py {typed}`: lrsa {version('lrsa')}, torch {version('torch')}, Python"
        f" {platform.python_version()}, {os.cpu_count()} shared cores for service and clients, load"
        f" {os.getloadavg()[0]:.1f}. The model is LRSA of width {MODEL['width']}, depth {MODEL['depth']} and"
        f" rank {MODEL['rank']}, on one thread; cases have the points give or take a quarter, as JSON.",
        "",
        "| points | who asks | answers | per second "
        "| processor ms each | median ms | 95 % ms | cases per batch | 503 | errors |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for points, words, seen in rows:
        waits = f"{seen.wait(0.5):.1f} | {seen.wait(0.95):.1f} | {seen.cases_per_batch:.1f}"
        counted = f"| {points} | {words} | {seen.answers} | {seen.rate:.1f} | {seen.cost:.1f} | {waits}"
        lines.append(f"{counted} | {seen.refused} | {seen.errors} |")
    lines += [
        "",
        "| points | gain by batches, answers | processor | memory after 10 s | at the end | largest |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    for points in options.sizes:
        _, _, alone, batched = (seen for size, _, seen in rows if size == points)
        memory = [batched.memory[min(int(10 / EVERY), len(batched.memory) - 1)], batched.memory[-1]]
        lines.append(
            f"| {points} | {batched.rate / alone.rate:.2f} | {alone.cost / batched.cost:.2f} |"
            f" {memory[0]:.0f} MB | {memory[1]:.0f} MB | {max(batched.memory):.0f} MB |"
        )
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
