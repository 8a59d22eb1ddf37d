"""Arrays in the kinds of files that MATLAB writes."""

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import scipy.io

Arrays = dict[str, np.ndarray]
Save = Callable[[Path, Arrays], None]


def save_v5(path: Path, arrays: Arrays) -> None:
    scipy.io.savemat(path, arrays)


def save_v5_compressed(path: Path, arrays: Arrays) -> None:
    scipy.io.savemat(path, arrays, do_compression=True)


def save_v73(path: Path, arrays: Arrays) -> None:
    """As MATLAB does: its header in a user block of 512 bytes, the axes reversed, compressed chunks."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for key, array in arrays.items():
            item = file.create_dataset(key, data=array.T, chunks=True, compression="gzip")
            item.attrs["MATLAB_class"] = np.bytes_(b"single" if array.dtype == np.float32 else b"double")
        file.create_group("#refs#")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, HDF5 schema 1.00 ."
    with path.open("r+b") as raw:
        raw.write(header.ljust(116) + bytes(8) + b"\x00\x02IM")


SAVES = (save_v5, save_v5_compressed, save_v73)
