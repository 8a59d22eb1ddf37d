"""Several processes of this machine at one command, by torchrun's agent."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from lrsa.errors import Failure

RESTARTS = 3
"""How often all processes are started again after one of them died."""
LAUNCHED = "LRSA_LAUNCHED"
"""Set for processes that a command of ours has started: that command speaks for them when they are done."""


def launch(processes: int, words: Sequence[str], restarts: int = RESTARTS) -> None:
    """`lrsa WORDS` in so many processes that know each other, until all have ended well."""
    agent = ["--standalone", "--nproc-per-node", str(processes), "--max-restarts", str(restarts)]
    command = [sys.executable, "-m", "torch.distributed.run", *agent, "-m", "lrsa", *words]
    # Without a number of its own torchrun says at length that it has chosen one thread for each process.
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    ended = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": threads, LAUNCHED: "1"})
    if ended.returncode:
        again = "goes on" if restarts else "tries again"
        cure = f"What they said is above; `lrsa {shlex.join(words)} --nproc {processes}` {again}"
        raise Failure(f"the {processes} processes of `lrsa {words[0]}` did not end well. {cure}")


def launched() -> bool:
    """Whether a command of ours has started this process."""
    return LAUNCHED in os.environ
