"""What this machine has."""

import os

from lrsa.errors import LrsaError

MOST_THREADS = 1024


def memory() -> int:
    """Bytes of main memory. AttributeError or ValueError where the system does not say (Windows)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


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


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    import torch  # slow, and those who read meshes do without it

    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        raise LrsaError(
            f'the device "{device}" is not to be had here: {str(error).splitlines()[0]}'
        ) from error
