"""A pool for calls that do not depend on each other: processes of this machine, or a Dask cluster.

On a cluster a call travels to a worker and its result comes back: workers need this package, and no disk in
common with this machine. A call whose worker dies is done again by another.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, TypeVar

from lrsa.errors import LrsaError

if TYPE_CHECKING:
    from dask.distributed import Client

PATIENCE = 20
"""Seconds to find the scheduler of a cluster."""
T = TypeVar("T")


def results(
    calls: Sequence[Callable[[], T]], workers: int | None = None, cluster: str | None = None
) -> Iterator[tuple[int, T]]:
    """(index of the call, its result), as they come, of so many local processes or of the cluster there."""
    if cluster is None:
        yield from _of_processes(calls, workers or os.cpu_count() or 1)
        return
    for index, result in cluster_results(calls, cluster):
        if isinstance(result, Died):
            raise result
        yield index, result


class Died(LrsaError):
    """Every worker of a cluster that took a call has died of it."""


def _of_processes(calls: Sequence[Callable[[], T]], workers: int) -> Iterator[tuple[int, T]]:
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _end_with_parent)
    try:
        futures = {pool.submit(call): i for i, call in enumerate(calls)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise LrsaError(
            "a worker process died (out of memory?). Run the command again: it goes on where it stopped"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def cluster_results(calls: Sequence[Callable[[], T]], address: str) -> Iterator[tuple[int, T | Died]]:
    """The same of a cluster, of which a call that kills its workers is a result, too."""
    client = _client(address)
    from dask.distributed import KilledWorker
    from dask.distributed import as_completed as as_they_come

    try:
        # Not pure: two calls that look alike are two calls.
        futures = {client.submit(_call, call, pure=False): i for i, call in enumerate(calls)}
        for future in as_they_come(list(futures), loop=client.loop):
            index = futures.pop(future)  # and with it what the worker still holds
            try:
                yield index, future.result()
            except KilledWorker:
                yield (
                    index,
                    Died(
                        f"workers of the cluster {address} died of one call again and again (out of memory?)."
                        " Run the command again: it goes on where it stopped"
                    ),
                )
    finally:
        client.close()


def check_cluster(address: str) -> None:
    """Refuse a cluster that does not answer, before something else takes long."""
    _client(address).close()


def _client(address: str) -> "Client":
    try:
        from dask.distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise LrsaError('--cluster needs Dask: pip install "lrsa[cluster]"') from None
    try:
        get_address_host_port(address)  # a client of what is no address would end with a traceback
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise LrsaError(
            f"no Dask scheduler answers at {address}. Start one with `dask scheduler`, and give its address"
        ) from error


def _call(call: Callable[[], T]) -> T:
    return call()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next call forever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
