"""The HDF5 store, written: every case is checked, room is made for all arrays, then they are put there.

The layout is that of `store`. A file is written to a temporary name and renamed: there is never half of one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from lrsa.data.hdf5 import HDF5
from lrsa.data.store import (
    FORMAT,
    PER_CELL,
    PER_POINT,
    VERSION,
    Schema,
    Selection,
    is_dataset,
    misnamed,
)
from lrsa.errors import LrsaError
from lrsa.files import atomic, remove_left
from lrsa.pointset import Names, PointSet, check_digits

TEST_SHARE = 0.2
SHAREABLE = ("x", "f_mask", "u_mask", "weights", "surface", "parts", *PER_CELL, "times")
DTYPES = (
    {"cell_types": np.uint8}
    | dict.fromkeys(("f_mask", "u_mask", "surface", "parts"), np.bool_)
    | dict.fromkeys(("cells", "offsets", "cell_offsets", "grids", "redraws", "iterations"), np.int64)
)
"""Of the fields that are not float32."""
HEADERS = 65536
"""Bytes that are enough for all but the arrays."""


def write_dataset(
    path: str | Path,
    pointsets: Sequence[PointSet] | Mapping[str, Sequence[PointSet]],
    schema: Schema | None = None,
) -> None:
    """Write cases to an HDF5 file: by split, or as a list of which a fixed random fifth becomes `test`.

    Every case is checked (shapes, NaN) before anything is written. Sequences may read lazily.
    """
    splits = pointsets if isinstance(pointsets, Mapping) else split_by_case(pointsets)
    splits = {name: cases for name, cases in splits.items() if len(cases)}
    layouts = {name: _Layout.of(name, cases) for name, cases in splits.items()}
    if not layouts:
        raise LrsaError(f"no cases to write to {path}")
    if "shared" in layouts:
        raise LrsaError('a split cannot be called "shared". Name it train or test')
    _check_alike(layouts)
    first = next(iter(splits.values()))[0]
    schema = schema or Schema(name=Path(path).stem)
    schema = replace(schema, names=first.names) if schema.names == Names() else schema
    if wrong := misnamed(schema.names, next(iter(layouts.values())).fields):
        raise LrsaError(f"{wrong} has more names than channels. Give as many, or none")
    shared = {name: first.arrays()[name] for name in sorted(_shared_fields(splits))}
    grids = set[Any]().union(*(layout.grids for layout in layouts.values()))
    plan = {name: layout.shapes(set(shared), len(grids) > 1) for name, layout in layouts.items()}
    plan["shared"] = {name: value.shape for name, value in shared.items()}
    remove_left(Path(path))
    with atomic(Path(path), HEADERS + _size(plan)) as temporary:
        with h5py.File(temporary, "w") as file:
            file.attrs.update(format=FORMAT, version=VERSION, schema=schema.to_json())
            if grids == {first.grid} and first.grid is not None:
                file.attrs["grid"] = first.grid
            for name, layout in layouts.items():
                file.create_group(name).attrs["samples"] = len(layout.counts)
            places = {name: _reserve(file.require_group(name), shapes) for name, shapes in plan.items()}
        # Not by HDF5, which ends the process where the disk is full.
        with open(temporary, "r+b") as raw:
            for name, place in places["shared"].items():
                _put(raw, place, name, shared[name])
            for name, layout in layouts.items():
                layout.write(raw, places[name], splits[name])


def check_replaceable(out: Path) -> None:
    """Refuse to import into a file that is no data set: it may be the mesh or the table that is imported.

    An earlier import of ours is replaced: cases may have been added since.
    """
    if out.suffix.lower() not in HDF5:
        raise LrsaError(f"{out} is no name of an HDF5 file: end it in .h5, e.g. --out my.h5")
    if out.exists() and not is_dataset(out):
        raise LrsaError(f"{out} is there already, and no readable data set of ours: name another --out")


@dataclass
class _Layout:
    """The shape of a split: how many points each case has, and the channels of each field."""

    split: str
    counts: list[int]
    cell_counts: list[int]
    fields: dict[str, tuple[int, ...]]
    grids: list[tuple[int, ...] | None]

    @staticmethod
    def of(split: str, cases: Sequence[PointSet]) -> "_Layout":
        layout = _Layout(split, [], [], {}, [])
        for i, case in enumerate(cases):
            where = cases.label(i) if isinstance(cases, Selection) else f"case {i} of {split}"
            case.check_finite(where)
            check_digits(case.x, where, "coordinates")
            if case.times is not None:
                check_digits(case.times, where, "times")
            channels = _channels(case)
            if layout.fields and channels != layout.fields:
                raise LrsaError(f"{where} has {_brief(channels)}, but the first has {_brief(layout.fields)}")
            layout.fields = channels
            layout.counts.append(len(case))
            layout.cell_counts.append(0 if case.cells is None else len(case.cells))
            layout.grids.append(case.grid)
        return layout

    @property
    def ragged(self) -> bool:
        return len(set(self.counts)) > 1

    def shapes(self, shared: set[str], differing_grids: bool) -> dict[str, tuple[int, ...]]:
        """The arrays of the split in the file."""
        own = {name: self._shape(name) for name in self.fields if name not in shared and name != "grid"}
        if self.ragged:
            own["offsets"] = (len(self.counts) + 1,)
        if own.keys() & PER_CELL:
            own["cell_offsets"] = (len(self.counts) + 1,)
        if differing_grids:
            own["grids"] = (len(self.counts), *self.fields["grid"])
        return own

    def write(self, raw: BinaryIO, places: Mapping[str, int], cases: Sequence[PointSet]) -> None:
        starts, cell_starts = np.cumsum([0, *self.counts]), np.cumsum([0, *self.cell_counts])
        tables = {"offsets": starts, "cell_offsets": cell_starts, "grids": np.array(self.grids)}
        for name in tables.keys() & places.keys():
            _put(raw, places[name], name, tables[name])
        for i, case in enumerate(cases):
            for name, value in case.arrays().items():
                if name not in places:
                    continue
                value = value.astype(_dtype(name), copy=False)
                if name in PER_CELL:
                    _put(raw, places[name] + cell_starts[i] * value[:1].nbytes, name, value)
                elif name in PER_POINT and self.ragged:
                    for t, frame in enumerate(value if value.ndim == 3 else value[None]):
                        row = t * starts[-1] + starts[i]
                        _put(raw, places[name] + row * frame[:1].nbytes, name, frame)
                else:
                    _put(raw, places[name] + i * value.nbytes, name, value)

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = self.fields[name]
        if name in PER_CELL:
            return (sum(self.cell_counts), *shape)
        if name not in PER_POINT:
            return (len(self.counts), *shape)
        frames, channels = (shape[:1], shape[1:]) if len(shape) == 2 else ((), shape)
        if self.ragged:
            return (*frames, sum(self.counts), *channels)
        return (len(self.counts), *frames, self.counts[0], *channels)


def split_by_case(cases: Sequence[PointSet]) -> dict[str, Sequence[PointSet]]:
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


def _channels(case: PointSet) -> dict[str, tuple[int, ...]]:
    """The shape of every field but for the number of points or cells; the number of axes of the grid."""
    shapes = {name: value.shape for name, value in case.arrays().items()}
    for name in shapes.keys() & {*PER_POINT, *PER_CELL}:
        frames = shapes[name][:1] if name == "u" and case.times is not None else ()
        shapes[name] = (*frames, *shapes[name][len(frames) + 1 :])
    return shapes if case.grid is None else {**shapes, "grid": (len(case.grid),)}


def _brief(channels: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in sorted(channels.items()))


def _dtype(name: str) -> np.dtype:
    return np.dtype(DTYPES.get(name, np.float32))


def _size(plan: Mapping[str, Mapping[str, tuple[int, ...]]]) -> int:
    """Bytes of all arrays."""
    return sum(
        math.prod(shape) * _dtype(name).itemsize for part in plan.values() for name, shape in part.items()
    )


def _reserve(group: h5py.Group, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Room for arrays that are yet to be written: the place in the file of each that is not empty."""
    early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    made = {
        name: group.create_dataset(name, shape, _dtype(name), dcpl=early) for name, shape in shapes.items()
    }
    return {name: item.id.get_offset() for name, item in made.items() if item.size}


def _put(raw: BinaryIO, place: int, name: str, value: np.ndarray) -> None:
    raw.seek(place)
    raw.write(value.astype(_dtype(name), copy=False).tobytes())
