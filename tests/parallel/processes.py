"""Several processes that meet on this machine, as torchrun would start them.

They are forked from one that has imported what they need: importing takes seconds of each process otherwise.
"""

import multiprocessing as python_processes
import os
import socket
from collections.abc import Callable
from typing import Any

import torch
from torch import multiprocessing


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def together(size: int, work: Callable[..., None], *given: Any, port: int | None = None) -> None:
    """`work(*given)` in so many processes, each of which can call `joined`; they meet at the port."""
    python_processes.set_forkserver_preload(
        ["torch._dynamo", "lrsa.training.fit", "lrsa.surrogate.surrogate"]
    )
    given = (size, port or free_port(), work, given)
    multiprocessing.start_processes(_one, given, nprocs=size, start_method="forkserver")  # pyright: ignore[reportPrivateImportUsage]


def _one(rank: int, size: int, port: int, work: Callable[..., None], given: tuple[Any, ...]) -> None:
    told = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": size,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    os.environ.update({name: str(value) for name, value in told.items()})
    torch.set_num_threads(1)
    work(*given)
