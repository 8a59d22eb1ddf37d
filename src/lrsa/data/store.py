"""The HDF5 store: many `PointSet`s in one file, memory-mapped.

    /                   attributes: format, version, schema (JSON)
    /shared/<field>     what is the same in every case (the points of a fixed mesh, say)
    /<split>/<field>    cases one after the other: (S, N, ·) where all have N points, (ΣN, ·) where not
    /<split>/offsets    (S + 1,) first row of every case, for ragged fields
    /<split>/cell_offsets

Arrays are contiguous and uncompressed, so a case is read as a slice of a memory map, without a lock and
without a copy. Files are written to a temporary name and renamed: there is never half of one.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from lrsa.data.pointset import Names, PointSet
from lrsa.errors import LrsaError

FORMAT, VERSION = "lrsa-pointsets", 1
TEST_SHARE = 0.2
PER_POINT = ("x", "f", "u", "u_mask", "weights", "surface")
SHAREABLE = ("x", "u_mask", "weights", "surface", "cells", "times")


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

    @staticmethod
    def from_json(text: str) -> "Schema":
        values = json.loads(text)
        names = values.pop("names")
        units = names.pop("units")
        return Schema(names=Names(**{k: tuple(v) for k, v in names.items()}, units=units), **values)


class Dataset(Sequence[PointSet]):
    """The cases of one split of a file, read when asked for."""

    def __init__(self, path: Path, split: str) -> None:
        self.path, self.split = path, split
        with _open(path) as file:
            self.schema = Schema.from_json(str(file.attrs["schema"]))
            if split not in file:
                there = ", ".join(str(k) for k in file if k != "shared")
                raise LrsaError(f'{path} has no split "{split}" (it has: {there})')
            group: Any = file[split]
            shared: Any = file["shared"]
            self._length = int(group.attrs["samples"])
            self._shared = {name: _map(path, item) for name, item in shared.items()}
            self._own = {name: _map(path, item) for name, item in group.items()}
            grid: Any = file.attrs.get("grid")
            self._grid = None if grid is None else tuple(int(n) for n in grid)
        self._offsets, self._cell_offsets = (
            self._own.pop("offsets", None),
            self._own.pop("cell_offsets", None),
        )

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not -len(self) <= index < len(self):
            raise IndexError(f"case {index} of {len(self)}")
        index %= len(self)
        own = {name: self._case(name, array, index) for name, array in self._own.items()}
        return PointSet(**self._shared, **own, grid=self._grid, names=self.schema.names)

    @property
    def fixed_points(self) -> bool:
        """Whether every case has the same points in the same order."""
        return "x" in self._shared

    @property
    def grid(self) -> tuple[int, ...] | None:
        """The index shape that all cases have, if they have one."""
        return self._grid

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._shared

    def _case(self, name: str, array: np.ndarray, index: int) -> np.ndarray:
        offsets = self._cell_offsets if name == "cells" else self._offsets if name in PER_POINT else None
        if offsets is None:
            return array[index]
        rows = slice(int(offsets[index]), int(offsets[index + 1]))
        return array[:, rows] if name == "u" and "times" in self else array[rows]


class Selection(Sequence[PointSet]):
    """Some of the cases, in the order of `chosen`, and of each every `stride`-th point."""

    def __init__(
        self, cases: Sequence[PointSet], chosen: Sequence[int] | np.ndarray, stride: int = 1
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


def data_home() -> Path:
    """Where data sets live: $LRSA_HOME/data, by default ~/.cache/lrsa/data."""
    return Path(os.environ.get("LRSA_HOME", "~/.cache/lrsa")).expanduser() / "data"


def is_path(name: str) -> bool:
    """A value with a path separator or a file suffix is a path, anything else a catalogue name."""
    return os.sep in name or bool(Path(name).suffix)


def open_dataset(data: str | Path, split: str = "train") -> Dataset:
    """The cases of a split, from a file or, by catalogue name, from the benchmark's default data."""
    if isinstance(data, Path) or is_path(data):
        return Dataset(Path(data), split)
    from lrsa.data.catalogue import get

    path = get(data).path()
    if not path.exists():
        raise LrsaError(f"the data of {data} is not made yet. Make it with `lrsa data make {data}`")
    return Dataset(path, split)


def write_dataset(
    path: str | Path,
    pointsets: Sequence[PointSet] | Mapping[str, Sequence[PointSet]],
    schema: Schema | None = None,
) -> None:
    """Write cases to an HDF5 file: by split, or as a list of which a fixed random fifth becomes `test`.

    Every case is checked (shapes, NaN) before anything is written. Sequences may read lazily.
    """
    splits = pointsets if isinstance(pointsets, Mapping) else _split(pointsets)
    layouts = {name: _Layout.of(name, cases) for name, cases in splits.items() if len(cases)}
    if not layouts:
        raise LrsaError(f"no cases to write to {path}")
    first = next(iter(splits.values()))[0]
    schema = schema or Schema(name=Path(path).stem, names=first.names)
    shared = _shared_fields(splits)
    _check_alike(layouts)
    size = sum(layout.bytes for layout in layouts.values())
    with atomic(Path(path), size) as temporary, h5py.File(temporary, "w") as file:
        file.attrs.update(format=FORMAT, version=VERSION, schema=schema.to_json())
        if first.grid is not None and all(layout.same_grid(first.grid) for layout in layouts.values()):
            file.attrs["grid"] = first.grid
        group = file.create_group("shared")
        for name in sorted(shared):
            group.create_dataset(name, data=_compact(first.arrays()[name]))
        for name, layout in layouts.items():
            layout.write(file.create_group(name), splits[name], shared)


@contextmanager
def atomic(path: Path, size: int = 0) -> Iterator[Path]:
    """A temporary name that becomes `path` when all went well, and vanishes otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise LrsaError(
            f"no space for {path}: it needs {size / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free"
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@dataclass
class _Layout:
    """The shape of a split: how many points each case has, and the channels of each field."""

    split: str
    counts: list[int]
    cell_counts: list[int]
    fields: dict[str, tuple[tuple[int, ...], np.dtype]]
    grids: set[tuple[int, ...] | None]

    @staticmethod
    def of(split: str, cases: Sequence[PointSet]) -> "_Layout":
        layout = _Layout(split, [], [], {}, set())
        for i, case in enumerate(cases):
            case.check_finite(f"case {i} of {split}")
            channels = {
                name: (
                    (*value.shape[:-2], value.shape[-1]) if value.ndim > 1 else value.shape[1:],
                    _dtype(value),
                )
                if name in (*PER_POINT, "cells")
                else (value.shape, _dtype(value))
                for name, value in case.arrays().items()
            }
            if layout.fields and channels != layout.fields:
                raise LrsaError(
                    f"case {i} of {split} has {_brief(channels)}, but case 0 has {_brief(layout.fields)}"
                )
            layout.fields = channels
            layout.counts.append(len(case))
            layout.cell_counts.append(0 if case.cells is None else len(case.cells))
            layout.grids.add(case.grid)
        return layout

    @property
    def bytes(self) -> int:
        per_point = sum(
            int(np.prod(shape)) * dtype.itemsize
            for name, (shape, dtype) in self.fields.items()
            if name in PER_POINT
        )
        return sum(self.counts) * per_point

    def same_grid(self, grid: tuple[int, ...]) -> bool:
        return self.grids == {grid}

    def write(self, group: Any, cases: Sequence[PointSet], shared: set[str]) -> None:
        group.attrs["samples"] = len(cases)
        own = [name for name in self.fields if name not in shared]
        ragged = len(set(self.counts)) > 1
        if ragged:
            group["offsets"] = np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)
        if "cells" in own:
            group["cell_offsets"] = np.concatenate([[0], np.cumsum(self.cell_counts)]).astype(np.int64)
        for name in own:
            group.create_dataset(name, shape=self._shape(name, ragged), dtype=self.fields[name][1])
        starts, cell_starts = np.cumsum([0, *self.counts]), np.cumsum([0, *self.cell_counts])
        for i, case in enumerate(cases):
            for name in own:
                value = case.arrays()[name]
                if name == "cells":
                    group[name][cell_starts[i] : cell_starts[i + 1]] = value
                elif name in PER_POINT and ragged:
                    rows = slice(starts[i], starts[i + 1])
                    group[name][(slice(None), rows) if value.ndim == 3 else rows] = value
                else:
                    group[name][i] = value

    def _shape(self, name: str, ragged: bool) -> tuple[int, ...]:
        shape, _ = self.fields[name]
        if name == "cells":
            return (sum(self.cell_counts), *shape)
        if name not in PER_POINT:
            return (len(self.counts), *shape)
        frames, channels = (shape[:1], shape[1:]) if len(shape) == 2 else ((), shape)
        if ragged:
            return (*frames, sum(self.counts), *channels)
        return (len(self.counts), *frames, self.counts[0], *channels)


def _split(cases: Sequence[PointSet]) -> dict[str, Sequence[PointSet]]:
    """A fixed random fifth for testing (one case at least, where there are two)."""
    order = np.random.default_rng(0).permutation(len(cases))
    tests = max(1, round(TEST_SHARE * len(cases))) if len(cases) > 1 else 0
    return {"train": Selection(cases, sorted(order[tests:])), "test": Selection(cases, sorted(order[:tests]))}


def _shared_fields(splits: Mapping[str, Sequence[PointSet]]) -> set[str]:
    """The fields that are the same in every case of every split."""
    cases = (case for part in splits.values() for case in part)
    first = next(cases).arrays()
    same = {name for name in SHAREABLE if name in first}
    for case in cases:
        arrays = case.arrays()
        same = {name for name in same if name in arrays and np.array_equal(first[name], arrays[name])}
        if not same:
            break
    return same


def _check_alike(layouts: Mapping[str, _Layout]) -> None:
    (name, first), *others = layouts.items()
    for other, layout in others:
        if layout.fields != first.fields:
            raise LrsaError(f"{other} has {_brief(layout.fields)}, but {name} has {_brief(first.fields)}")


def _brief(channels: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> str:
    return ", ".join(f"{name} {shape}" for name, (shape, _) in sorted(channels.items()))


def _dtype(value: np.ndarray) -> np.dtype:
    kind = value.dtype.kind
    return np.dtype({"b": "bool", "i": "int64", "u": "int64"}.get(kind, "float32"))


def _compact(value: np.ndarray) -> np.ndarray:
    return value.astype(_dtype(value))


@contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    if not path.exists():
        raise LrsaError(f"{path} does not exist")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise LrsaError(
            f"{path} is not a readable HDF5 file (truncated or foreign): make or import it again"
        ) from error
    with file:
        if file.attrs.get("format") != FORMAT:
            raise LrsaError(
                f"{path} is an HDF5 file of another kind. Turn it into one of ours with `lrsa data import`"
            )
        if file.attrs.get("version") != VERSION:
            raise LrsaError(
                f"{path} has data format {file.attrs['version']}; this lrsa reads {VERSION}. Make it again"
            )
        yield file


def _map(path: Path, item: h5py.Dataset) -> np.ndarray:
    offset = item.id.get_offset()
    if offset is None or item.size == 0:
        return np.empty(item.shape, item.dtype)
    return np.memmap(path, dtype=item.dtype, mode="r", offset=offset, shape=item.shape)
