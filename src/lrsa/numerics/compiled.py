"""Loops as machine code, kept on disk (numba): one thread, no sum reordered, the same bits every time."""

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

from lrsa.errors import LrsaError
from lrsa.files import data_home

try:
    import numba
except ImportError as error:
    raise LrsaError("this solver needs numba. Install it with `pip install lrsa[solvers]`") from error


def compiled(function: Any, fused: bool = False, inline: bool = False) -> Any:
    """To machine code. Divisions as in numpy: what is not finite shows in the end.

    numba looks only at the file of a function to see whether its code on disk is old, but that may hold code
    and constants of other files: the folder is named after all that are beside it.

    Args:
        function: In the part of Python that numba knows.
        fused: A product and a sum may be rounded once instead of twice.
        inline: Into whatever calls it: a loop with a call in it cannot become vector instructions.
    """
    settings: Any = numba.config  # pyright: ignore[reportPrivateImportUsage] - it is in numba's manual
    folder = code_folder(Path(function.__code__.co_filename).parent)
    before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
    fast = {"contract"} if fused else False
    try:
        return numba.njit(function, cache=True, error_model="numpy", forceinline=inline, fastmath=fast)
    finally:
        settings.CACHE_DIR = before


@cache
def code_folder(sources: Path) -> Path:
    """For the machine code of that folder's sources as they are; beside them where that can be written."""
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted({*sources.glob("*.py"), *Path(__file__).parent.glob("*.py")}):
        digest.update(source.read_bytes())
    home = sources / "__pycache__" if os.access(sources, os.W_OK) else data_home().parent
    return home / f"{sources.name}-{digest.hexdigest()}"
