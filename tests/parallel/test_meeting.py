"""Processes that are started again find each other, not those whom torchrun's store still knows."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import pytest
from processes import together
from torch.distributed import TCPStore

from lrsa.errors import Failure
from lrsa.parallel.meeting import agreed
from lrsa.parallel.ranks import joined


@pytest.fixture
def store() -> TCPStore:
    """As torchrun keeps one, for all starts."""
    return TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def test_every_start_has_a_name_that_all_of_it_know(store: TCPStore) -> None:
    """In whatever order they come, and when some of an earlier start died before they met."""
    delays = np.random.default_rng(0).uniform(0, 0.1, (5, 4))

    def name(rank: int, delay: float) -> str:
        time.sleep(delay)
        here = TCPStore("127.0.0.1", store.port, is_master=False)
        return agreed(here, rank, 4, timedelta(seconds=30))

    starts = []
    for late in delays:
        for rank in range(0, 4, 2):
            store.set(f"lrsa/{rank}", f"dead {late[rank]}")
        with ThreadPoolExecutor(4) as threads:
            (found,) = set(threads.map(name, range(4), late))  # one name
        starts.append(found)
    assert len(set(starts)) == len(delays)


def meet_late(late: int) -> None:
    """One comes when the other looks for it already; both end without a farewell, as if they were killed."""
    rank = int(os.environ["RANK"])
    if rank == late:
        time.sleep(1)
    with joined() as ranks:
        heard = ranks.heard(os.getpid())
        ranks.wait()
        os._exit(heard[rank] != os.getpid())


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 1])
def test_processes_that_are_started_again_do_not_look_for_the_dead(
    late: int, store: TCPStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    for _ in range(2):
        together(2, meet_late, late, port=store.port)


def test_who_waits_in_vain_says_so(store: TCPStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one has been there, and has died since."""
    store.set("lrsa/1", "dead")
    told = {
        "RANK": 0,
        "LOCAL_RANK": 0,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": store.port,
    }
    told |= {"TORCHELASTIC_USE_AGENT_STORE": "True", "LRSA_PATIENCE": 1}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))
    with pytest.raises(Failure, match="not all of 2 processes came in 1 s"), joined():
        pass
