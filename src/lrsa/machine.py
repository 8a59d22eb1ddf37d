"""What this machine has."""

import os


def memory() -> int:
    """Bytes of main memory. AttributeError or ValueError where the system does not say (Windows)."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
