"""The HDF5 store, read: many `PointSet`s in one file, memory-mapped. `writing` writes it.

    /                   attributes: format, version, schema (JSON)
    /shared/<field>     what is the same in every case (the points of a fixed mesh, say)
    /<split>/<field>    cases one after the other: (S, N, ·) where all have N points, (ΣN, ·) where not
    /<split>/offsets    (S + 1,) first row of every case, for ragged fields
    /<split>/cell_offsets
    /<split>/grids      (S, k) index shape of every case, where they differ

Arrays are contiguous and uncompressed, so a case is read as a slice of a memory map, without a lock and
without a copy.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from mmap import mmap
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from lrsa.data.hdf5 import HDF5, item_of, items_of
from lrsa.errors import LrsaError
from lrsa.machine import check_fits
from lrsa.pointset import Names, PointSet, Stride
from lrsa.typed import conforms

FORMAT, VERSION = "lrsa-pointsets", 1
PER_POINT = ("x", "f", "f_mask", "u", "u_mask", "weights", "surface", "parts")
PER_CELL = ("cells", "cell_types")
TABLES = ("offsets", "cell_offsets", "grids")
KINDS: dict[str, str] = {
    **dict.fromkeys(("f_mask", "u_mask", "surface", "parts"), "b"),
    **dict.fromkeys((*PER_CELL, *TABLES, "redraws", "iterations"), "iu"),
}
"""Kinds of numbers, of the arrays that are not floating-point."""


@dataclass(frozen=True)
class Schema:
    """What a file holds, beyond its arrays."""

    name: str = "data"
    source: str = "imported"
    """generated (by our solver), official (the published files) or imported (the user's)."""
    protocol: str = "static"
    """static, autoregressive or time-conditioned."""
    names: Names = field(default_factory=Names)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Generator, version, fidelity, parameters and seed, or where the files came from."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def origin(self) -> "Schema":
        """What decides the cases of a generated set: problem, version, parameters and seed.

        Not where the code of the generator lies, which files of before 0.2 name too.
        """
        kept = {key: value for key, value in self.provenance.items() if key != "generator"}
        return Schema.from_json(replace(self, provenance=kept).to_json())

    @staticmethod
    def from_json(text: str) -> "Schema":
        values = json.loads(text.encode())  # damaged letters are refused here, and not where they are shown
        named: dict[str, Any] = values.pop("names")
        names: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in named.items()}
        made = Schema(names=Names(**names), **values)
        if not conforms(made, Schema):
            raise TypeError("an entry is of another type")
        made.to_json()  # what is nested too deep for Python is found here
        return made


class Dataset(Sequence[PointSet]):
    """The cases of one split of a file, read when asked for."""

    def __init__(self, path: Path, split: str) -> None:
        self.path, self.split = path, split
        with _open(path) as file:
            self.schema = Schema.from_json(str(file.attrs["schema"]))
            if split not in list(file):
                there = ", ".join(str(k) for k in file if k != "shared")
                raise LrsaError(f'{path} has no split "{split}" (it has: {there})')
            group, shared = item_of(file, split), item_of(file, "shared")
            self._length = int(group.attrs["samples"])
            self._shared, self._own = _arrays(path, shared), _arrays(path, group)
            grid: Any = file.attrs.get("grid")
            self._grid = None if grid is None else tuple(int(n) for n in grid)
            self._offsets, self._cell_offsets, self._grids = (self._own.pop(name, None) for name in TABLES)
            self._check_layout()
        bases: list[Any] = [array.base for array in (*self._own.values(), *self._shared.values())]
        self._mapped: mmap | None = next((base for base in bases if isinstance(base, mmap)), None)
        self._size = self._mapped.size() if self._mapped else 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not -len(self) <= index < len(self):
            raise IndexError(f"case {index} of {len(self)}")
        index %= len(self)
        self._check_whole()
        own = {name: self._case(name, array, index) for name, array in self._own.items()}
        grid = self._grid if self._grids is None else tuple(self._grids[index])
        try:
            return PointSet(**self._shared, **own, grid=grid, names=self.schema.names)
        except (LrsaError, IndexError) as error:
            raise LrsaError(f"case {index} of {self.split} in {self.path} is damaged: {error}") from error

    @property
    def fixed_points(self) -> bool:
        """Whether every case has the same points in the same order."""
        return "x" in self._shared

    @property
    def sizes(self) -> np.ndarray:
        """(S,) the points of every case; none of them is read."""
        if self._offsets is not None:
            return np.diff(self._offsets)
        points = len(self._shared["x"]) if self.fixed_points else self._own["x"].shape[1]
        return np.full(len(self), points)

    @property
    def grid(self) -> tuple[int, ...] | None:
        """The index shape that all cases have, if they have one."""
        return self._grid

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._shared

    def _check_layout(self) -> None:
        """Refuse arrays that do not have all the cases, and tables that lead beside the arrays."""
        lengths = {name: len(array) for name, array in self._own.items()}
        for offsets, names in ((self._offsets, PER_POINT), (self._cell_offsets, PER_CELL)):
            if offsets is None:
                continue
            if offsets.shape != (len(self) + 1,) or offsets[0] or (np.diff(offsets) < 0).any():
                raise ValueError("offsets that are none")
            for name in self._own.keys() & set(names):
                rows = self._own[name].shape[1 if name == "u" and "times" in self else 0]
                lengths[name] = len(self) if rows == offsets[-1] else -1
        if self._grids is not None:
            lengths["grids"] = len(self._grids)
        if (
            "x" not in self
            or self._own.keys() & self._shared.keys()
            or {*lengths.values(), len(self)} != {len(self)}
        ):
            raise ValueError("arrays of other numbers of cases")
        if misnamed(self.schema.names, {k: v.shape for k, v in (self._own | self._shared).items()}):
            raise ValueError("more names than channels")

    def _check_whole(self) -> None:
        """Refuse a file that has become shorter: what is mapped beyond its end kills the process (SIGBUS).

        A file cut off between this look and the copy of the case still does, which is a matter of
        microseconds in a training of hours. To read instead of to map would close that gap, but takes all
        frames of a case where one is asked for (4 times as long for 20 of them; this look takes 1 µs).
        """
        if self._mapped and self._mapped.size() < self._size:
            raise LrsaError(
                f"{self.path} was cut off while it was read: make or import it again. A training goes on with"
                " `lrsa resume`"
            )

    def _case(self, name: str, array: np.ndarray, index: int) -> np.ndarray:
        offsets = self._cell_offsets if name in PER_CELL else self._offsets if name in PER_POINT else None
        if offsets is None:
            return array[index]
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        return array[:, rows] if name == "u" and "times" in self else array[rows]


class Selection(Sequence[PointSet]):
    """Some of the cases, in the order of `chosen`, and of each every `stride`-th point."""

    def __init__(
        self, cases: Sequence[PointSet], chosen: Sequence[int] | np.ndarray, stride: Stride = 1
    ) -> None:
        self.cases, self.chosen, self.stride = cases, chosen, stride

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.cases[int(self.chosen[index])].strided(self.stride)

    def label(self, index: int) -> str:
        """How a case is called in messages."""
        case = f"case {int(self.chosen[index])}"
        return (
            f"{case} of {self.cases.split} in {self.cases.path}" if isinstance(self.cases, Dataset) else case
        )


def misnamed(names: Names, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    """An array that has more names than channels; `shapes` are those of arrays, or of rows."""
    labels = {"x": names.coords, "f": names.inputs, "u": names.targets, "globals": names.globals}
    counts = {name: shapes[name][-1] for name in labels.keys() & shapes.keys()}
    wrong = [name for name, count in counts.items() if 0 < count < len(labels[name])]
    return min(wrong, default=None)


def is_path(name: str) -> bool:
    """A value with a path separator or a file suffix is a path, anything else a catalogue name."""
    return os.sep in name or bool(Path(name).suffix)


def is_dataset(path: Path) -> bool:
    """Whether this is one of our own data sets, not just any HDF5 file."""
    if path.suffix.lower() not in HDF5 or not path.is_file():
        return False
    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") == FORMAT
    except (OSError, RuntimeError, LookupError, TypeError, ValueError):  # damaged: told of by its reader
        return False


def splits_of(path: Path) -> list[str]:
    """The splits that a file has."""
    with _open(path) as file:
        return [split for split in ("train", "test") if split in list(file)]


@contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    if not path.exists():
        raise LrsaError(f"{path} does not exist")
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise LrsaError(
                    f"{path} is an HDF5 file of another kind. Make one of ours of it with `lrsa data import`"
                )
            version = file.attrs.get("version")
            if version != VERSION:
                raise LrsaError(f"{path} has data format {version}; this lrsa reads {VERSION}. Make it again")
            yield file
    except PermissionError as error:
        raise LrsaError(f"{path} may not be read by you: ask its owner, or copy it from elsewhere") from error
    except (OSError, RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise LrsaError(
            f"{path} is not a readable HDF5 file (truncated, damaged or foreign): make or import it again"
        ) from error


def _arrays(path: Path, group: h5py.Group) -> dict[str, np.ndarray]:
    """The arrays of a group, each of the kind that its name asks for."""
    known = {*(f.name for f in fields(PointSet)), *TABLES} - {"grid", "names"}
    items = items_of(group)
    for name, item in items.items():
        if name not in known or item.dtype.kind not in KINDS.get(name, "f"):
            raise TypeError(f"{name} is no array of ours")
    return {name: _map(path, item) for name, item in items.items()}


def _map(path: Path, item: h5py.Dataset) -> np.ndarray:
    offset = item.id.get_offset()
    if offset is None or item.size == 0:  # empty, or compressed by somebody
        check_fits(item.nbytes, f"{item.name} of {path}")
        return np.asarray(item[...])
    return np.memmap(path, dtype=item.dtype, mode="r", offset=offset, shape=item.shape)
