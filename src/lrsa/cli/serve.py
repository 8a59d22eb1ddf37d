"""`lrsa serve`: trained surrogates over HTTP."""

from lrsa.cli.checking import at_least
from lrsa.errors import LrsaError


def serve(
    runs: tuple[str, ...],
    /,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    megabytes: float = 64.0,
    points: int = 1_000_000,
    seconds: float = 60.0,
    waiting: int = 256,
    together: int = 64,
    threads: int | None = None,
    device: str = "cpu",
) -> None:
    """Let other programs call trained surrogates: JSON or a file in, the fields in the same form out.

    GET /v1/models says what there is, /docs is a page on how to call it. Requests that wait are predicted
    together. Ctrl-C or TERM ends it: what runs is finished, what waits is told.

    Args:
        runs: The run folders, each served under the name of its folder, or of NAME in NAME=RUN.
        host: Where to listen. Anything but this machine needs a token.
        port: The port; 0 takes a free one.
        token: What callers must send as `Authorization: Bearer TOKEN`.
        megabytes: Largest body of a request.
        points: Most points of a case, times the number of times.
        seconds: Until a body has come, and again until its answer is there.
        waiting: Cases that may wait for their prediction.
        together: Cases that may be predicted in one batch; with 1, answers do not depend on who else asks.
        threads: Of torch (default: its own choice).
        device: cpu, cuda, ...
    """
    from lrsa.console import console
    from lrsa.machine import check_device, check_threads

    if not runs:
        raise LrsaError("lrsa serve needs a run folder. `lrsa serve --help` explains")
    if not 0 <= port <= 65535:
        raise LrsaError(f"--port must be from 0 to 65535, not {port}")
    at_least(1, points=points, waiting=waiting, together=together)
    for name, value in (("megabytes", megabytes), ("seconds", seconds)):
        if not 0 < value < 1e6:
            raise LrsaError(f"--{name} must be more than 0 and less than a million, not {value:g}")
    check_threads(threads)
    try:
        from lrsa.studio.service_bodies import Limits
        from lrsa.studio.service_running import Address, Server, serve
    except ImportError as error:
        raise LrsaError(
            f"lrsa serve needs {error.name}. Install it with `pip install lrsa[studio]`"
        ) from error
    check_device(device)

    def ready(address: str, server: Server) -> None:
        console.print(f"{address}/v1/models: {', '.join(server.service.served)}")
        console.print(f"{address}/docs says how to call them. Ctrl-C stops")

    serve(
        runs,
        Address(host, port, token),
        Limits(megabytes, points, seconds, waiting, together),
        threads,
        device,
        ready,
    )
