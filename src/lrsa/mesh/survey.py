"""What a folder holds, before anything is chosen: files, arrays and tables, and a command to start from."""

import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lrsa.console import Advance
from lrsa.errors import LrsaError
from lrsa.mesh.building import components, dimension
from lrsa.mesh.finding import case_names, find_cases, is_openfoam, labels_of, tables_in
from lrsa.mesh.pool import Call, shared_pool
from lrsa.mesh.reading import block_names, read_raw
from lrsa.mesh.roles import RawCase
from lrsa.mesh.splits import LEARNED
from lrsa.mesh.tables import Parameters, read_globals, read_table

HELPERS = ("vtkOriginalPointIds", "vtkOriginalCellIds", "vtkGhostType", "Normals", "TimeValue")
"""Arrays that programs leave behind."""


@dataclass(frozen=True)
class ArrayInfo:
    """One array of one file."""

    name: str
    location: Literal["point", "cell"]
    components: int
    low: float
    high: float
    partial: bool
    """Whether it is NaN somewhere."""
    whole: bool
    """Whether it holds integers: numbers of things rather than fields."""
    digest: str = ""
    """Differs where the values do."""


@dataclass(frozen=True)
class FileSummary:
    """One file."""

    points: int
    cells: int
    dimension: int
    """Of its cells, 0 where there are none, -1 where nothing can be derived from them."""
    frames: int
    arrays: tuple[ArrayInfo, ...]
    solid: bool = True
    """Whether its points extend along three axes."""


def summarise(path: Path, patches: Sequence[str] = ()) -> FileSummary:
    """Read a file, or the named blocks of it, and describe it."""
    raw = read_raw(path, patches)
    cells = 0 if raw.cells is None else len(raw.cells)
    arrays = [_info(raw, name, v, "point", len(raw.points)) for name, v in raw.point_data.items()]
    arrays += [_info(raw, name, v, "cell", cells) for name, v in raw.cell_data.items()]
    frames = 0 if raw.times is None else len(raw.times)
    solid = raw.points.shape[1] == 3 and bool(np.ptp(raw.points, axis=0).min(initial=np.inf) > 0)
    return FileSummary(len(raw.points), cells, dimension(raw), frames, tuple(arrays), solid)


def propose(
    source: str | Path,
    workers: int | None = None,
    progress: Advance = lambda done, total, words: None,
) -> str:
    """What was found, and a complete command."""
    paths = find_cases(source)
    pool = shared_pool(min(workers or os.cpu_count() or 1, len(paths)))
    found: dict[int, FileSummary | LrsaError] = {}
    progress(0, len(paths), "files")
    for i, summary in pool.run([Call(summarise, (path,), path) for path in paths]):
        found[i] = summary
        progress(len(found), len(paths), "files")
    results = [found[i] for i in range(len(paths))]
    read = [result for result in results if isinstance(result, FileSummary)]
    broken = [line for result in results if isinstance(result, LrsaError) for line in result.lines]
    if not read:
        raise LrsaError(f"none of the {len(paths)} files can be read; the first: {broken[0]}")
    tables = tables_in(source, paths)
    lines = [_files(paths), _sizes(read), "arrays:", *_arrays(read)]
    lines += ["tables:", *(f"  {table}" for table in tables)] if tables else []
    blocks = pool.one(Call(block_names, (paths[0],), paths[0])) if isinstance(results[0], FileSummary) else []
    if len(blocks) > 1:
        lines.append(f"blocks, of which --patches names those to read: {', '.join(blocks)}")
    lines += ["not readable:", *(f"  {line}" for line in broken)] if broken else []
    return (
        "\n".join([*lines, "", "A command to start from (move what the model is given to --inputs):"])
        + f"\n  {_command(source, paths, read, tables)}"
    )


def _info(
    raw: RawCase, name: str, values: np.ndarray, location: Literal["point", "cell"], count: int
) -> ArrayInfo:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (np.nan, np.nan)
    whole = values.dtype.kind in "biu"
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
    return ArrayInfo(
        name, location, components(raw, values, count), low, high, finite.size < values.size, whole, digest
    )


def _files(paths: Sequence[Path]) -> str:
    kinds = Counter("OpenFOAM" if is_openfoam(p) else p.suffix.lower() or "HDF5 group" for p in paths)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return f"{len(paths)} {'case' if len(paths) == 1 else 'cases'} ({counted})"


def _sizes(read: Sequence[FileSummary]) -> str:
    parts = [f"points: {_span([s.points for s in read])}"]
    if any(s.cells for s in read):
        parts.append(f"cells: {_span([s.cells for s in read])}")
    if any(s.frames for s in read):
        parts.append(f"times: {_span([s.frames for s in read])}")
    return "   ".join(parts)


def _span(values: Sequence[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)} to {max(values)}"


def _arrays(read: Sequence[FileSummary]) -> list[str]:
    lines = []
    for name, location in dict.fromkeys((a.name, a.location) for s in read for a in s.arrays):
        mine = _of(read, name, location)
        low = min((a.low for a in mine if a.low == a.low), default=np.nan)
        high = max((a.high for a in mine if a.high == a.high), default=np.nan)
        count = _span([a.components for a in mine])
        where = "" if len(mine) == len(read) else f", in {len(mine)} of {len(read)} files"
        partly = ", not everywhere" if any(a.partial for a in mine) else ""
        partly += _variation(mine, len(read))
        plural = "component" if count == "1" else "components"
        lines.append(f"  {name}: {location} array, {count} {plural}, {low:.4g} to {high:.4g}{partly}{where}")
    return lines or ["  none"]


def _of(read: Sequence[FileSummary], name: str, location: str) -> list[ArrayInfo]:
    return [a for s in read for a in s.arrays if (a.name, a.location) == (name, location)]


def _variation(mine: Sequence[ArrayInfo], files: int) -> str:
    """What can be said of an array by how it varies between the cases."""
    if files < 2 or len(mine) < files:
        return ""
    if len({a.digest for a in mine}) == 1 or len({v for a in mine for v in (a.low, a.high)}) == 1:
        return ", the same in all cases"
    if all(a.low == a.high for a in mine):
        return ", one value in each case"
    return ""


def _command(
    source: str | Path, paths: Sequence[Path], read: Sequence[FileSummary], tables: Sequence[Path]
) -> str:
    fields = [a for a in read[0].arrays if a.name not in HELPERS and not a.whole and _everywhere(read, a)]
    where = {a.name: a.location for a in reversed(fields)}  # at the points, where a name is at both
    here = list(dict.fromkeys(a.name for a in fields))
    says = {name: _variation(_of(read, name, where[name]), len(read)) for name in here}
    # One value in each case is a parameter of it. What is the same in all cases is nothing to predict.
    inputs = [name for name in here if "one value" in says[name]]
    targets = [name for name in here if not says[name]] or [name for name in here if name not in inputs]
    words = ["lrsa", "data", "import", str(source), "--out", "my.h5"]
    words += ["--inputs", ",".join(inputs)] if inputs else []
    words += ["--targets", ",".join(targets or ["NAME"])]
    splits = {table: split for table in tables if (split := _split_of(table, paths)) is not None}
    for table, split in list(splits.items())[:1]:
        words += ["--globals", str(table), *(["--split", split] if split else [])]
    if all(s.dimension > 0 for s in read):
        surface = all(s.dimension == 2 and s.solid for s in read)
        words += ["--derive", "normals,measure" if surface else "measure"]
    return shlex.join(words)


def _everywhere(read: Sequence[FileSummary], array: ArrayInfo) -> bool:
    """Whether all files have it, with as many components: otherwise an import of it is refused."""
    mine = _of(read, array.name, array.location)
    return len(mine) == len(read) and len({a.components for a in mine}) == 1


def _split_of(table: Path, paths: Sequence[Path]) -> str | None:
    """The --split that a table of all cases proposes, "" for the usual one; None where cases miss in it.

    Words are no parameters: a column of them says which cases are the test, or which belong together.
    """
    try:
        columns = read_table(table)
        spoken = [name for name in list(columns)[1:] if columns[name].dtype.kind not in "biuf"]
        parameters: Parameters = read_globals(table, spoken[:1])
    except LrsaError:
        return None
    if any(parameters.of(labels_of(p, n)) is None for p, n in zip(paths, case_names(paths), strict=True)):
        return None
    if not spoken:
        return ""
    says = {str(word).strip().lower() for word in columns[spoken[0]]}
    return f"{'column' if says <= {*LEARNED, 'test'} else 'group'}={spoken[0]}"
