"""Several processes that meet on this machine, as torchrun would start them.

They are forked from one that has imported what they need: importing takes seconds of each process otherwise.
"""

import multiprocessing as python_processes
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import multiprocessing


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def together(size: int, work: Callable[..., None], *given: Any, port: int | None = None) -> None:
    """`work(*given)` in so many processes, each of which can call `joined`; they meet at the port."""
    python_processes.set_forkserver_preload(["torch._dynamo", "lrsa.training.fit"])
    told = {"WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port or free_port()}
    environment = {**os.environ, **{name: str(value) for name, value in told.items()}}
    multiprocessing.start_processes(  # pyright: ignore[reportPrivateImportUsage]
        _one, (environment, Path.cwd(), work, given), nprocs=size, start_method="forkserver"
    )


def _one(
    rank: int, environment: dict[str, str], folder: Path, work: Callable[..., None], given: tuple[Any, ...]
) -> None:
    # What they are forked from has the environment and the folder of the first test that used it.
    os.environ.clear()
    os.environ.update({**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)})
    os.chdir(folder)
    torch.set_num_threads(1)
    work(*given)
