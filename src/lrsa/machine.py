"""What this machine has."""

import os

from lrsa.errors import LrsaError


def memory() -> int:
    """Bytes of main memory. AttributeError or ValueError where the system does not say (Windows)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_device(device: str) -> None:
    """Refuse a device that is not there."""
    import torch  # slow, and those who read meshes do without it

    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:
        raise LrsaError(
            f'the device "{device}" is not to be had here: {str(error).splitlines()[0]}'
        ) from error
