"""A folder of simulations as one data set: every file checked in one pass, in parallel, resumable.

Each worker reads a file, builds its case and leaves it in a folder beside the data set, under a name that
depends on the file, the roles and the parameters; an interrupted import finds it again. When all are
there, they become the data set in one rename. With problems nothing is written, and all of them are told.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from lrsa.console import Advance
from lrsa.data.store import Schema, Selection
from lrsa.data.writing import check_replaceable, split_by_case, write_dataset
from lrsa.errors import LrsaError, nearest
from lrsa.files import alone
from lrsa.mesh.building import Problems, names_of
from lrsa.mesh.finding import case_names, find_cases, labels_of
from lrsa.mesh.input_points import check_pattern, inputs_file, without_inputs
from lrsa.mesh.parts import Job, Outcome, Parts, found
from lrsa.mesh.pool import Call, ReaderPool, crashed, shared_pool
from lrsa.mesh.problems import counted
from lrsa.mesh.remarks import kept, remarks, unlike, untested
from lrsa.mesh.roles import Derived, Roles
from lrsa.mesh.splits import split_cases, split_columns
from lrsa.mesh.survey import FileSummary, propose, summarise
from lrsa.mesh.tables import Parameters, read_globals
from lrsa.parallel.pool import Died, cluster_results

__all__ = ["Imported", "Problems", "import_meshes", "propose"]

"""Called with (cases done, cases in all)."""
LOOKED_AT = 5
"""Files in which a named array is looked for before its shape is taken to be unknown."""


@dataclass(frozen=True)
class Imported:
    """What an import has made."""

    path: Path
    counts: Mapping[str, int]
    """Cases of each split."""
    roles: Roles
    notes: tuple[str, ...]
    """What the user should know, one line each."""


def import_meshes(
    source: str | Path,
    out: Path,
    inputs: Sequence[str] = (),
    targets: Sequence[str] = (),
    globals_table: Path | None = None,
    derive: Sequence[Derived] = (),
    workers: int | None = None,
    progress: Advance = lambda done, total, words: None,
    split: str = "",
    patches: Sequence[str] = (),
    input_points: str = "",
    cluster: str | None = None,
) -> Imported:
    """Import every case of a file, a folder or a glob into `out`.

    Args:
        source: Where the files are.
        out: The HDF5 file to write.
        inputs: Arrays that the model is given.
        targets: Arrays that it is to predict.
        globals_table: A table of parameters: the case in the first column, numbers in the others.
        derive: Features that follow from the cells.
        workers: Processes (default: one for each core).
        progress: Told of each case.
        split: Which cases are the test, as `splits` spells it (default: a random fifth).
        patches: Blocks of the meshes that are read, and become their named parts.
        input_points: Pattern of the files whose points give the inputs, as `input_points` spells it.
        cluster: Address of a Dask scheduler, whose workers build the cases; they see the files as we do.

    Raises:
        Problems: All that is wrong with the files, one line each.
    """
    _check_request(source, inputs, targets, derive, workers)
    check_replaceable(out)
    if input_points:
        check_pattern(input_points, derive, inputs)
    paths = find_cases(source, [p for p in (out, globals_table) if p is not None])
    paths = without_inputs(paths, case_names(paths), input_points)
    names = case_names(paths)
    chosen = split_cases(split, source, paths, names, globals_table)
    table = None if globals_table is None else read_globals(globals_table, split_columns(split))
    rows, problems = _parameters(paths, names, table)
    pool = shared_pool(min(workers or os.cpu_count() or 1, len(paths)))
    roles, notes = _settle(
        pool, paths, () if input_points else inputs, targets, derive, table, tuple(patches)
    )
    seconds = [inputs_file(input_points, path, name) for path, name in zip(paths, names, strict=True)]
    if input_points:
        given, more = _settle(pool, [p for p in seconds if p is not None], inputs, (), (), None, ())
        channels = {**roles.channels, **given.channels}
        roles = replace(roles, inputs=tuple(inputs), channels=channels, input_points=input_points)
        notes += more
    folder = out.with_name(out.name + ".parts")
    rest = zip(paths, rows, seconds, strict=True)
    jobs = [Job.of(path, roles, row, folder, second) for path, row, second in rest]
    with alone(out):
        outcomes = _run(pool, jobs, progress, cluster)
        problems += [line for o in outcomes if isinstance(o, LrsaError) for line in o.lines]
        made = [outcome for outcome in outcomes if isinstance(outcome, Outcome)]
        problems += unlike(paths, outcomes)
        if problems:
            raise Problems([*counted(problems, paths, names), *kept(made, paths, folder)])
        parts = Parts(jobs, made, roles)
        splits: dict[str, Any] = (
            dict(split_by_case(parts))
            if chosen is None
            else {name: Selection(parts, which) for name, which in chosen.items() if which}
        )
        stored = {split: [names[int(i)] for i in part.chosen] for split, part in splits.items()}
        write_dataset(out, splits, _schema(source, out, roles, made, stored))
        shutil.rmtree(folder, ignore_errors=True)
    counts = {split: len(part) for split, part in splits.items()}
    return Imported(out, counts, roles, (*notes, *remarks(names, made), *untested(counts)))


def _check_request(
    source: str | Path,
    inputs: Sequence[str],
    targets: Sequence[str],
    derive: Sequence[str],
    workers: int | None,
) -> None:
    if workers is not None and workers < 1:
        raise LrsaError(f"cannot import with {workers} workers: from 1 on")
    if not targets:
        raise LrsaError(
            f"no target named. Add --targets, e.g. p,U; `lrsa data import {source}` lists the arrays"
        )
    for role, names in (("inputs", inputs), ("targets", targets)):
        if twice := [name for name in names if names.count(name) > 1]:
            raise LrsaError(f'--{role} names "{twice[0]}" twice. Once is enough')
    known = get_args(Derived)
    for name in derive:
        if name not in known:
            raise LrsaError(
                f'no derived feature "{name}".{nearest(name, known)} Known are {", ".join(known)}'
            )


def _parameters(
    paths: Sequence[Path], names: Sequence[str], table: Parameters | None
) -> tuple[list[np.ndarray | None], list[str]]:
    """The row of every case in the table, and what is wrong with them."""
    if table is None:
        return [None] * len(paths), []
    rows: list[np.ndarray | None] = []
    problems = []
    for path, name in zip(paths, names, strict=True):
        row = table.of(labels_of(path, name))
        if row is None:
            problems.append(f'{table.path} has no row for "{name}" ({path}). Add it, or leave the file out')
        elif not np.isfinite(row).all():
            column = table.names[int((~np.isfinite(row)).argmax())]
            problems.append(f'{table.path} has no number in column "{column}" for "{name}"')
            row = None  # told of once is enough: the file itself may be fine
        rows.append(row)
    return rows, problems


def _settle(
    pool: ReaderPool,
    paths: Sequence[Path],
    inputs: Sequence[str],
    targets: Sequence[str],
    derive: Sequence[Derived],
    table: Parameters | None,
    patches: tuple[str, ...],
) -> tuple[Roles, list[str]]:
    """Where the cases live and how many channels the arrays have, from the first files that tell."""
    wanted = list(dict.fromkeys([*inputs, *targets]))
    on_points: dict[str, int] = {}
    on_cells: dict[str, int] = {}
    for summary in _first(pool, paths, patches):
        if not summary.frames and (both := [name for name in targets if name in inputs]):
            raise LrsaError(
                f'"{both[0]}" is an input and a target: nothing is left to learn. Take it out of one of them'
            )
        for array in summary.arrays:
            where = on_points if array.location == "point" else on_cells
            where.setdefault(array.name, array.components)
        if all(name in on_points or name in on_cells for name in wanted):
            break
    there = [name for name in wanted if name in on_points or name in on_cells]
    all_on_points = all(name in on_points for name in there)
    location = "cell" if not all_on_points and all(name in on_cells for name in there) else "point"
    first, second = (on_cells, on_points) if location == "cell" else (on_points, on_cells)
    channels = {name: first.get(name) or second[name] for name in there}
    averaged = [name for name in there if location == "point" and name not in on_points]
    notes = []
    if averaged:
        notes.append(
            f"{', '.join(averaged)}: cell arrays, averaged to the points, where the other arrays are"
        )
    if location == "cell":
        notes.append("all named arrays are those of cells: the cases live at the centres of their cells")
    columns = () if table is None else table.names
    made = Roles(tuple(inputs), tuple(targets), tuple(derive), columns, location, channels, patches=patches)
    return made, notes


def _first(pool: ReaderPool, paths: Sequence[Path], patches: tuple[str, ...]) -> Iterator[FileSummary]:
    """What is in the first files, but those that cannot be read: they are told of when all are read."""
    for path in paths[:LOOKED_AT]:
        with suppress(LrsaError):
            yield pool.one(Call(summarise, (path, patches), path))


def _run(
    pool: ReaderPool, jobs: Sequence[Job], progress: Advance, cluster: str | None
) -> list[Outcome | LrsaError]:
    outcomes: list[Any] = [None] * len(jobs)
    for i, job in enumerate(jobs):
        outcomes[i] = found(job)
    missing = [i for i, outcome in enumerate(outcomes) if outcome is None]
    done = len(jobs) - len(missing)
    progress(done, len(jobs), "cases")
    calls = [jobs[i] for i in missing]
    made = (
        pool.run([Call(Job.make, (job,), job.path) for job in calls])
        if cluster is None
        else _on_cluster(calls, cluster)
    )
    for k, outcome in made:
        outcomes[missing[k]] = outcome
        done += 1
        progress(done, len(jobs), "cases")
    return outcomes


def _on_cluster(jobs: Sequence[Job], address: str) -> Iterator[tuple[int, Outcome | LrsaError]]:
    """The files are read there; the built cases come back by the network."""
    there = [
        replace(job, path=job.path.absolute(), inputs=job.inputs and job.inputs.absolute()) for job in jobs
    ]
    for k, made in cluster_results([job.elsewhere for job in there], address):
        if isinstance(made, Died):
            yield k, crashed(jobs[k].path)
        elif isinstance(made, LrsaError):
            yield k, made
        else:
            jobs[k].leave(*made)
            yield k, made[0]


def _schema(
    source: str | Path, out: Path, roles: Roles, made: Sequence[Outcome], stored: Mapping[str, list[str]]
) -> Schema:
    return Schema(
        out.stem,
        "imported",
        "time-conditioned" if made[0].frames else "static",
        names_of(roles, made[0].dims),
        {"recipe": roles.to_dict(), "source": str(source), "files": len(made), "cases": stored},
    )
