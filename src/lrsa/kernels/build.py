"""Compile `block.cpp` for this processor at the first use, once, and load it.

The library lies in `$LRSA_HOME/kernels`, named after the source, the processor and the compiler: what was
made for others is never loaded, and several processes may ask at once. Without a compiler nothing is lost but
time.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

import torch

from lrsa.errors import LrsaError
from lrsa.files import alone, atomic, data_home

SOURCE = Path(__file__).with_name("block.cpp")
COMPILERS = ("g++", "clang++")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared")
PATIENCE = 300.0
"""Seconds that another process may take to compile the same."""

log = logging.getLogger(__name__)


class Unavailable(Exception):
    """There are no kernels here; says why."""


def library() -> ctypes.CDLL:
    """The kernels, or `Unavailable`."""
    if os.environ.get("LRSA_KERNELS") == "0":
        raise Unavailable("LRSA_KERNELS is 0")
    found = _found()
    if isinstance(found, str):
        raise Unavailable(found)
    return found


def why_none() -> str | None:
    """What is missing here to make them, as far as can be told without trying."""
    capability = torch.backends.cpu.get_cpu_capability()
    if platform.machine().lower() not in ("x86_64", "amd64") or capability not in ("AVX2", "AVX512"):
        return "the processor has neither AVX2 nor AVX512"
    if not _compilers():
        return f"there is no C++ compiler on the PATH ({' or '.join(COMPILERS)})"
    return None


@cache
def _found() -> ctypes.CDLL | str:
    """Of this process; or why there are none."""
    if (why := why_none()) is not None:
        return why
    for compiler in _compilers():
        try:
            return ctypes.CDLL(str(built(compiler, FLAGS)))
        except (OSError, LrsaError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or str(error)
            why = f"{compiler} did not make them: {' '.join(said.split())[:200]}"
            log.debug(why)
    assert why is not None
    return why


def _compilers() -> list[str]:
    return [path for name in COMPILERS if (path := shutil.which(name))]


def built(compiler: str, flags: tuple[str, ...]) -> Path:
    """The library that this compiler makes with these flags, made now if it is not there yet."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    key = hashlib.blake2b(digest_size=12)
    for part in (SOURCE.read_text(), _processor(), version, *flags):
        key.update(part.encode() + b"\0")
    path = data_home().parent / "kernels" / f"block-{key.hexdigest()}.so"
    if not path.exists():
        with alone(path, PATIENCE):
            if not path.exists():
                log.debug(f"compiling {SOURCE.name} with {compiler}, once")
                with atomic(path) as temporary:
                    command = [compiler, *flags, str(SOURCE), "-o", str(temporary)]
                    subprocess.run(command, capture_output=True, text=True, check=True)
    return path


def _processor() -> str:
    """What `-march=native` looks at."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text().split("\n\n")[0].splitlines() if about.exists() else [platform.processor()]
    return "\n".join(line for line in lines if line.startswith(("model", "flags", "vendor", "cpu family")))
