"""Readers of the published files: one module per benchmark, one row each in `OFFICIAL`.

A reader takes the folder that holds the files and returns the splits of the published protocol, in the
schema of the generated set (same points, grid and names).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lrsa.data.store import Schema
from lrsa.data.writing import write_dataset
from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.problems.airfoil.official import AIRFOIL, read_airfoil
from lrsa.problems.catalogue import get
from lrsa.problems.darcy.official import DARCY, read_darcy
from lrsa.problems.elasticity.official import read_elasticity
from lrsa.problems.navier_stokes.official import NAVIER_STOKES, read_navier_stokes
from lrsa.problems.pipe.official import PIPE, read_pipe
from lrsa.problems.plasticity.official import PLASTICITY, read_plasticity


class Official(NamedTuple):
    """The published files of a benchmark, relative to one folder, and their reader."""

    files: tuple[str, ...]
    read: Callable[..., Mapping[str, Sequence[PointSet]]]
    """(folder, stride) -> splits; the published stride where none is given."""


OFFICIAL: dict[str, Official] = {
    "darcy": Official(tuple(file for file, _ in DARCY.values()), read_darcy),
    "airfoil": Official(tuple(AIRFOIL.values()), read_airfoil),
    "elasticity": Official(("Random_UnitCell_XY_10.npy", "Random_UnitCell_sigma_10.npy"), read_elasticity),
    "pipe": Official(tuple(PIPE.values()), read_pipe),
    "navier-stokes": Official((NAVIER_STOKES,), read_navier_stokes),
    "plasticity": Official((PLASTICITY,), read_plasticity),
}


def recognise(source: Path) -> str | None:
    """The benchmark one of whose files `source` is, or holds; None if there is none.

    One file is enough: the reader then says which one is missing.
    """
    if source.is_dir():
        found = [name for name, (files, _) in OFFICIAL.items() if any((source / f).is_file() for f in files)]
    else:
        found = [
            name for name, (files, _) in OFFICIAL.items() if source.name in {Path(f).name for f in files}
        ]
    if len(found) > 1:
        raise LrsaError(
            f"{source} holds the files of {' and '.join(found)}. Give one benchmark a folder of its own"
        )
    return found[0] if found else None


def import_official(source: Path, out: Path, stride: int | None = None) -> tuple[str, dict[str, int]]:
    """Write the official files in (or at) `source` to a data set; the benchmark, and its cases by split."""
    if not source.exists():
        raise LrsaError(f"{source} does not exist")
    name = recognise(source)
    if name is None:
        files = "; ".join(f"{name}: {', '.join(row.files)}" for name, row in OFFICIAL.items())
        raise LrsaError(f"{source} holds no official files that are known here ({files})")
    row = OFFICIAL[name]
    splits = row.read(source) if stride is None else row.read(source, stride)
    first = next(iter(splits.values()))[0]
    provenance = {"files": row.files, "stride": stride or "published"}
    schema = Schema(name, "official", get(name).protocol, first.names, provenance)
    write_dataset(out, splits, schema)
    return name, {split: len(cases) for split, cases in splits.items()}
