"""The service at work: its address, its threads and processes, and how it stops."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from lrsa.errors import LrsaError
from lrsa.files import scratch
from lrsa.studio.service import Service
from lrsa.studio.service_bodies import Limits
from lrsa.studio.service_gate import is_loopback
from lrsa.studio.service_models import load_all

CONNECTIONS = 1024
"""Beyond, a connection hears at once that there are too many."""
GRACE = 0.5
"""Seconds in which a service that is stopping still says so to those who call."""


@dataclass(frozen=True)
class Address:
    """Where the service listens."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

    def check(self) -> None:
        """Refuse what would let everybody in."""
        if self.token is not None and (
            not self.token.isascii() or not self.token.isprintable() or not self.token.strip()
        ):
            raise LrsaError("--token must be printable ASCII, and not empty")
        if self.token is None and not is_loopback(self.host):
            raise LrsaError(
                f"on {self.host} everybody in the network could call the service. Give it a --token,"
                " or leave out --host to listen on this machine only"
            )

    def listen(self) -> socket.socket:
        """A socket that accepts connections."""
        self.check()
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            made = socket.create_server(found[0][4][:2], family=found[0][0], backlog=CONNECTIONS)
            # An answer in two parts would wait 40 ms for the caller to confirm the first. asyncio sees to it
            # only for sockets of its own; those that are accepted here have it from this one.
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise LrsaError(
                f"cannot listen on {self.host}:{self.port} ({reason}). Name another --port"
            ) from error


def serve(
    runs: Sequence[str],
    address: Address,
    limits: Limits,
    threads: int | None = None,
    device: str = "cpu",
    ready: Callable[[str, "Server"], Any] | None = None,
) -> None:
    """Answer until a signal to end; `ready` is called with the address and the server."""
    address.check()
    served = load_all(runs, device)
    with scratch("serve") as folder, address.listen() as listening:
        # Graphs and eigenfunctions of the cases of strangers do not stay on the disk.
        kept, os.environ["LRSA_HOME"] = os.environ.get("LRSA_HOME"), str(folder)
        try:
            asyncio.run(_run(served, folder, listening, address, limits, threads, ready))
        finally:
            os.environ.pop("LRSA_HOME") if kept is None else os.environ.update(LRSA_HOME=kept)


async def _run(
    served: Any,
    folder: Path,
    listening: socket.socket,
    address: Address,
    limits: Limits,
    threads: int | None,
    ready: Callable[[str, "Server"], Any] | None,
) -> None:
    service = Service(served, folder, limits, address.token, threads)
    host, port = listening.getsockname()[:2]
    server = Server(service)
    if ready is not None:
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}", server)
    try:
        await server.serve(sockets=[listening])
    finally:
        if not server.force_exit:
            await asyncio.to_thread(service.close)


class Server(uvicorn.Server):
    """Uvicorn, but a signal first lets everybody know."""

    def __init__(self, service: Service) -> None:
        super().__init__(
            uvicorn.Config(
                service.gate,
                http="h11",
                ws="none",
                lifespan="off",
                log_level="warning",
                access_log=False,
                server_header=False,
                limit_concurrency=CONNECTIONS,
                backlog=CONNECTIONS,
            )
        )
        self.service = service
        self.loop = asyncio.get_running_loop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.service.gate.stopping:  # asked a second time: at once
            self.should_exit = self.force_exit = True
            return
        self.loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self.stop()))

    async def stop(self) -> None:
        """Refuse what comes, wait for the answers to what is here, then close."""
        self.service.stop()
        await asyncio.sleep(GRACE)
        while self.service.gate.running and not self.should_exit:
            await asyncio.sleep(0.02)
        self.should_exit = True
