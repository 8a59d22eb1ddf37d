"""What this machine has."""

import ctypes
import os
import sys
import time
from contextlib import suppress

from lrsa.errors import LrsaError

MOST_THREADS = 1024


def memory() -> int:
    """Bytes of main memory. AttributeError or ValueError where the system does not say (Windows)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def processor_seconds(process: int) -> float | None:
    """What another process has worked so far; None where the system does not say."""
    if sys.platform != "linux":
        return None
    try:
        return time.clock_gettime((~process << 3) | 2)  # clock_getcpuclockid of the C library
    except OSError:
        return None


def check_fits(size: int, what: str) -> None:
    """Refuse what takes more bytes than there is main memory; nothing where the system does not say."""
    try:
        there = memory()
    except (AttributeError, ValueError):
        return
    if size > there:
        raise LrsaError(
            f"{what} takes {size / 1e9:.4g} GB, and the memory of this machine is {there / 1e9:.3g} GB"
        )


def check_threads(threads: int | None) -> None:
    """Refuse what no machine has: the libraries end the process where they cannot start them all."""
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        limit = "at least 1" if threads < 1 else f"at most {MOST_THREADS}"
        raise LrsaError(f"--threads must be {limit}, not {threads}")


def keep_memory() -> None:
    """What is freed stays with the process, where the C library is glibc.

    The tensors of a training step are freed at its end and asked for again in the next. By default their
    memory goes back to the system in between, and comes anew page by page.
    """
    trim_threshold, mmap_threshold = -1, -3  # as <malloc.h> has them
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018 - others may have a mallopt of another kind
        libc.mallopt(trim_threshold, 2**31 - 1)
        libc.mallopt(mmap_threshold, 2**25)  # the most that it takes


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    import torch  # slow, and those who read meshes do without it

    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        raise LrsaError(
            f'the device "{device}" is not to be had here: {str(error).splitlines()[0]}'
        ) from error
