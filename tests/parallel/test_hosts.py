"""Two hosts: torchrun over TCP between two network namespaces, and a link that is cut.

Namespaces need root; without them two loopback addresses stand for the hosts, whose link cannot be cut.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import free_port
from safetensors.torch import load_file
from small import WORDS, assert_bit_equal, grid_cases, write

from lrsa.cli.program import main

pytest_plugins = ["small_runs"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]

TRAIN = ["--train.epochs", "20", "--train.validation", "0.2", "--threads", "1", *WORDS]


@dataclass(frozen=True)
class Host:
    name: str
    address: str
    device: str
    """Of its network."""
    inside: Sequence[str] = ()
    """What runs a command there."""

    def start(self, log: Path, first: str, port: int, *words: str) -> "subprocess.Popen[bytes]":
        """`torchrun -m lrsa WORDS` with one process here, which meets that of the other host at the first."""
        meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first}:{port}", "--rdzv-id", "hosts"]
        # Both have the name of this machine, so torchrun cannot tell by it which one is the first.
        meeting += ["--rdzv-conf", f"is_host={int(self.address == first)}"]
        here = ["--nnodes", "2", "--nproc-per-node", "1", "--local-addr", self.address]
        torchrun = [sys.executable, "-m", "torch.distributed.run", *here, *meeting]
        told = {
            **os.environ,
            "GLOO_SOCKET_IFNAME": self.device,
            "LRSA_PATIENCE": "60",
            "OMP_NUM_THREADS": "1",
        }
        with open(log, "wb") as file:
            command = [*self.inside, *torchrun, "-m", "lrsa", *words]
            return subprocess.Popen(command, env=told, stdout=file, stderr=file)


def ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True).returncode == 0


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    names = [f"lrsa{os.getpid()}{end}" for end in "ab"]
    ends = [f"l{os.getpid()}{end}" for end in "ab"]
    made = shutil.which("ip") is not None and all(ip("netns", "add", name) for name in names)
    if not made or not ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1]):
        yield [Host(name, f"127.0.0.{2 + i}", "lo") for i, name in enumerate(names)]
        return
    try:
        found = []
        for i, (name, end) in enumerate(zip(names, ends, strict=True)):
            address, inside = f"10.213.7.{1 + i}", ("ip", "netns", "exec", name)
            assert ip("link", "set", end, "netns", name)
            assert ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            assert ip("-n", name, "link", "set", end, "up")
            assert ip("-n", name, "link", "set", "lo", "up")
            found.append(Host(name, address, end, inside))
        yield found
    finally:
        for name in names:
            ip("netns", "del", name)


def together(hosts: list[Host], folder: Path, *words: str) -> list["subprocess.Popen[bytes]"]:
    port = free_port()
    return [host.start(folder / f"{host.name}.log", hosts[0].address, port, *words) for host in hosts]


def logs(hosts: list[Host], folder: Path) -> list[str]:
    return [(folder / f"{host.name}.log").read_text() for host in hosts]


def test_two_hosts_train_as_two_processes_and_go_on_when_their_link_was_cut(
    hosts: list[Host], home: Path
) -> None:
    write(home / "small.h5", grid_cases(40), grid_cases(2, seed=1))
    shared = ["--shard-points", "2"]
    assert main(["train", "small.h5", "--out", "here", *TRAIN, *shared, "--nproc", "2"]) == 0
    started = together(hosts, home, "train", "small.h5", "--out", "apart", *TRAIN, *shared)
    assert [one.wait(300) for one in started] == [0, 0], logs(hosts, home)
    assert_same(home / "apart", home / "here")
    if not hosts[0].inside:
        return
    started = together(hosts, home, "train", "small.h5", "--out", "cut", *TRAIN, *shared)
    metrics = home / "cut" / "metrics.jsonl"
    until(lambda: metrics.exists() and len(metrics.read_text().splitlines()) > 2)
    assert ip("-n", hosts[1].name, "link", "set", hosts[1].device, "down")
    until(lambda: all("another process has ended or does not answer" in said for said in logs(hosts, home)))
    assert started[0].wait(120) != 0
    started[1].kill()  # its training has ended; torchrun itself asks for the first host for minutes
    started[1].wait()
    assert len(metrics.read_text().splitlines()) < 20
    assert ip("-n", hosts[1].name, "link", "set", hosts[1].device, "up")
    started = together(hosts, home, "resume", "cut", *shared)
    assert [one.wait(300) for one in started] == [0, 0], logs(hosts, home)
    assert_same(home / "cut", home / "here")


def until(there: Callable[[], bool], patience: float = 300) -> None:
    start = time.monotonic()
    while not there():
        assert time.monotonic() < start + patience
        time.sleep(0.02)


def assert_same(run: Path, other: Path) -> None:
    for name in ("last.safetensors", "model.safetensors"):
        assert_bit_equal(load_file(run / name), load_file(other / name))
