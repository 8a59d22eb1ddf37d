"""Where the processes of one start find each other.

torchrun keeps one store for all starts. What the dead have left in it looks like the word of the living: a
process that is started again may read the address of one that was killed, and try in vain to reach it. torch
tells a process nothing that all of its start have in common and no other start has (machines count restarts
each for itself), so they agree on it.
"""

import time
from datetime import timedelta
from hashlib import sha256
from uuid import uuid4

import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

PAUSE = 0.02
"""Seconds between two looks at who is there."""


def meet(backend: str, patience: timedelta) -> None:
    """Make the group of all processes of this start, as torchrun's environment tells of them."""
    store, rank, size = next(rendezvous("env://", timeout=patience))
    store.set_timeout(patience)
    own = dist.PrefixStore(agreed(store, rank, size, patience), store)
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=patience)


def agreed(store: dist.Store, rank: int, size: int, patience: timedelta) -> str:
    """A name for this start that all of its processes know, and none had before.

    Each makes up a name for itself, and says which names it sees. When all have said the same, it is those of
    the living, for each of them sees its own.
    """
    end = time.monotonic() + patience.total_seconds()
    store.set(f"lrsa/{rank}", uuid4().hex)
    while time.monotonic() < end:
        names = store.multi_get([f"lrsa/{k}" for k in range(size)])  # waits for those who never came before
        start = f"lrsa/{sha256(b''.join(names)).hexdigest()}"
        store.set(f"{start}/{rank}", "seen")
        if store.check([f"{start}/{k}" for k in range(size)]):
            return start
        time.sleep(PAUSE)
    raise RuntimeError(f"not all of {size} processes came in {patience.total_seconds():.0f} s")
