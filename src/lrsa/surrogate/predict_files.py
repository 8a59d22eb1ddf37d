"""Predictions into files: what came in, with the predicted fields beside it.

`<target>_predicted` are the fields, `<target>_error` = predicted - true where the file knows the truth (NaN
where it does not). All inputs are read and checked before anything is written.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from lrsa.console import Advance
from lrsa.data.store import is_dataset
from lrsa.errors import Failure, LrsaError
from lrsa.mesh.finding import find_cases
from lrsa.mesh.tables import hdf5_part
from lrsa.mesh.writing import (
    SUFFIXES,
    check_table,
    is_table,
    mesh_file,
    write_mesh,
    write_series,
    write_table,
)
from lrsa.pointset import PointSet
from lrsa.surrogate.datasets import predict_dataset
from lrsa.surrogate.doubts import Doubts
from lrsa.surrogate.ensemble import mean_of
from lrsa.surrogate.inputs import Inputs, Loaded
from lrsa.surrogate.query import Query, predict_at
from lrsa.surrogate.record import unfinished
from lrsa.surrogate.shipped import located
from lrsa.surrogate.surrogate import Surrogate, load

VTK_SUFFIXES = {suffix for known in SUFFIXES.values() for suffix in known}
HELD = 10**9
"""Bytes of checked cases that are kept for the prediction; what is beyond is read again."""


@dataclass
class Predicted:
    """What a prediction did."""

    cases: int = 0
    written: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What came out otherwise than it came in, and what was left to a default."""
    warnings: list[str] = field(default_factory=list)
    """Cases outside the training range."""
    quantities: list[dict[str, str | float]] = field(default_factory=list)
    """One row for each case: the quantities that the run names, with half their intervals."""


def predict_path(
    run: Path,
    source: str | Path,
    out: Path,
    inputs: Sequence[str] = (),
    globals_table: Path | None = None,
    at: Path | None = None,
    times: Sequence[float] = (),
    progress: Advance | None = None,
) -> Predicted:
    """Predict every case of `source` into `out`.

    Args:
        run: The run folder.
        source: A mesh, table, array file or data set of ours; or a folder or glob of meshes and tables.
        out: A file for one case, a folder for a folder or glob.
        inputs: The arrays of the files that are the inputs, in the order of training (default: the same).
        globals_table: The table of per-case parameters, where the run was trained with some.
        at: A CSV file of query points: the prediction is made there, and `out` is a CSV file.
        times: Of a time-conditioned run, the times to predict (default: those of the file).
        progress: Called with (done, total, words).
    """
    run = located(run)
    surrogate = load(run)
    summary, path = Predicted(notes=unfinished(run)), Path(source)
    if surrogate.ranges is None:
        summary.notes.append(f"{run} keeps no training ranges: nothing is said about cases outside them")
    if is_dataset(path):
        if at is not None:
            raise LrsaError(f"--at takes the points of a mesh or table, and {path} is a data set")
        if inputs:
            raise LrsaError(f"--inputs names the arrays of a mesh or table, and {path} is a data set")
        summary.cases, summary.warnings = predict_dataset(
            surrogate, path, out, str(run), Doubts.of(run, surrogate)
        )
        summary.written.append(out)
        return summary
    jobs = _jobs(str(source), out, at is not None)
    reader = Inputs(run, surrogate, [job.path for job in jobs], inputs, globals_table, times)
    query = None if at is None else Query.read(at)
    work = _Work(
        surrogate, reader, summary, progress or (lambda done, total, words: None), Doubts.of(run, surrogate)
    )
    held = work.check(jobs, {"--at": at, "--globals": globals_table})
    for i, job in enumerate(jobs):
        loaded = held.pop(job.path, None) or reader.load(job.path)
        try:
            work.write(loaded, job) if query is None else work.write_at(loaded, query, job.out)
        except Failure as error:
            raise Failure(f"{job.path}: {error}") from error
        summary.cases += 1
        work.progress(len(jobs) + i + 1, 2 * len(jobs), "predicted")
    return summary


@dataclass(frozen=True)
class _Job:
    path: Path
    """The case: a file, an OpenFOAM folder, or `file.h5/group`."""
    out: Path
    last: bool = True
    """Whether no further case of the same file follows."""
    named: bool = False
    """Whether the user named this very file: then it is written under that name, or not at all."""

    @property
    def file(self) -> Path:
        return hdf5_part(self.path)[0]

    def check(self, at: bool) -> None:
        if at and self.out.suffix.lower() != ".csv":
            raise LrsaError(
                f"predictions at query points are a CSV file: name it --out {self.out.with_suffix('.csv')}"
            )
        if is_table(self.file) and not at:
            check_table(self.file, self.out)


@dataclass
class _Work:
    """The predictions of the cases, and their way into files."""

    surrogate: Surrogate
    reader: Inputs
    summary: Predicted
    progress: Advance
    doubts: Doubts
    pending: dict[str, np.ndarray] = field(default_factory=dict)
    """Predictions for the groups of an HDF5 file that is not complete yet."""

    def check(self, jobs: Sequence[_Job], tables: Mapping[str, Path | None]) -> dict[Path, Loaded]:
        """Read every input, refuse what does not fit, and warn; as many cases as are small are kept.

        `tables` are the other files that are read, by the options that name them.
        """
        read = {path.resolve(): f"the file of {option}" for option, path in tables.items() if path}
        read |= {job.file.resolve(): "the input itself" for job in jobs}
        for job in jobs:
            _check_free(job.out, read)
        held: dict[Path, Loaded] = {}
        size = 0
        for i, job in enumerate(jobs):
            loaded = self.reader.load(job.path)
            self._warn(job.path.name, loaded.case)
            self.summary.warnings += self.doubts.warnings(job.path.name, loaded.case)
            if job.named and not is_table(job.file):
                _check_free(self._written_name(loaded, job.out), read)
            size += loaded.nbytes
            if size <= HELD:
                held[job.path] = loaded
            self.progress(i + 1, 2 * len(jobs), "checked")
        return held

    def _written_name(self, loaded: Loaded, out: Path) -> Path:
        """The file that this mesh becomes; refused is a name under which it cannot be written with fields."""
        times = loaded.case.times
        if times is not None and len(times) > 1:
            possible = out.with_suffix(".pvd")
        elif out.suffix == loaded.path.suffix and out.suffix.lower() in VTK_SUFFIXES:
            return out
        else:
            possible = mesh_file(self.reader.mesh_at(loaded), out)
        if out.suffix and possible.suffix.lower() != out.suffix.lower():
            raise LrsaError(
                f"{loaded.path.name} with predicted fields cannot be written as {out.suffix}: name it"
                f" --out {possible}"
            )
        return possible

    def write(self, loaded: Loaded, job: _Job) -> None:
        (every,) = self.surrogate.answers([loaded.case])
        row, refused = self.doubts.quantities(loaded.case, every)
        if row:
            self.summary.quantities.append({"case": job.path.name, **row})
        self.summary.notes += [line for line in refused if line not in self.summary.notes]
        every = every[..., : loaded.asked, :]
        u, doubts = mean_of(every), self.doubts.fields(every, self.reader.channels)
        if not is_table(job.file):
            self._write_mesh(loaded, u, doubts, job.out)
            return
        one = loaded.case.times is not None and len(loaded.case.times) == 1
        u, doubts = (u[0], {k: v[0] for k, v in doubts.items()}) if one else (u, doubts)
        group = hdf5_part(job.path)[1]
        fields = self._fields(u, doubts, loaded, 0 if u.ndim == 2 else None)
        self.pending |= {f"{group}/{name}" if group else name: v for name, v in fields.items()}
        if job.last:
            self.summary.written.append(write_table(job.file, job.out, self.pending))
            self.pending = {}

    def _fields(
        self, u: np.ndarray, doubts: Mapping[str, np.ndarray], loaded: Loaded, frame: int | None = None
    ) -> dict[str, np.ndarray]:
        made = self.reader.fields(u, loaded, frame)
        for what, values in doubts.items():
            made |= self.reader.doubts(values, what)
        return made

    def _write_mesh(self, loaded: Loaded, u: np.ndarray, doubts: Mapping[str, np.ndarray], out: Path) -> None:
        reader, location, times = self.reader, self.reader.roles.location, loaded.case.times
        if times is None:
            written = write_mesh(reader.mesh_at(loaded), out, self._fields(u, doubts, loaded), location)
        elif len(times) == 1:
            time = float(times[0])
            fields = self._fields(u[0], {k: v[0] for k, v in doubts.items()}, loaded, 0)
            written = write_mesh(reader.mesh_at(loaded, time), out, fields, location, time)
        else:
            frames = (
                (
                    float(time),
                    reader.mesh_at(loaded, float(time)),
                    self._fields(u[i], {k: v[i] for k, v in doubts.items()}, loaded, i),
                )
                for i, time in enumerate(times)
            )
            written = write_series(frames, out, location)
        self.summary.written.append(written)
        suffix = loaded.path.suffix.lower()
        if written.suffix.lower() != suffix and (written != out or suffix not in VTK_SUFFIXES):
            kind = f"{suffix} files" if loaded.path.is_file() else "OpenFOAM folders"
            self.summary.notes.append(
                f"{loaded.path.name}: no fields can be written to {kind}, see {written}"
            )

    def write_at(self, loaded: Loaded, query: Query, out: Path) -> None:
        case = loaded.case
        points, taken = query.points(case, self.surrogate.schema.names, self.reader.dropped)
        self._warn(query.path.name, points)
        if taken:
            self.summary.notes.append(
                f"{query.path.name} has no {', '.join(taken)}:"
                f" taken from the nearest point of {loaded.path.name}"
            )
        u = predict_at(self.surrogate, case, points)
        query.write(
            out, {f"{name}_predicted": u[..., i] for i, name in enumerate(self.reader.channels)}, case.times
        )
        self.summary.written.append(out)

    def _warn(self, name: str, case: PointSet) -> None:
        if self.surrogate.ranges is not None:
            self.summary.warnings += [f"{name}: {line}" for line in self.surrogate.ranges.warnings(case)]


def _check_free(out: Path, read: Mapping[Path, str]) -> None:
    """Refuse to write over what the prediction reads."""
    if what := read.get(out.resolve()):
        raise LrsaError(f"{out} is {what}: name another --out")


def _jobs(source: str, out: Path, at: bool) -> list[_Job]:
    """Every case and the file its prediction goes to."""
    base, cases = Path(source), find_cases(source)
    files = [hdf5_part(case)[0] for case in cases]
    single = len({*files}) == 1 and files[0] == hdf5_part(base)[0] and not out.is_dir()
    if single and (len(cases) == 1 or not at):
        outs = [out] * len(cases)
    else:
        if out.suffix and not out.is_dir():
            raise LrsaError(f"{source} has {len(cases)} cases: name a folder with --out, not {out.name}")
        common = (
            base
            if base.is_dir() and base not in cases
            else Path(os.path.commonpath([f.parent for f in files]))
        )
        names = [(case if at else file).relative_to(common) for case, file in zip(cases, files, strict=True)]
        ends = [".csv" if at else ".vtm" if file.is_dir() else "" for file in files]
        outs = [
            out / f"{name.with_suffix('') if at else name}{end}"
            for name, end in zip(names, ends, strict=True)
        ]
    lasts = [i + 1 == len(files) or files[i + 1] != file for i, file in enumerate(files)]
    exact = single and len(cases) == 1 and not at
    jobs = [_Job(*row, exact) for row in zip(cases, outs, lasts, strict=True)]
    for job in jobs:
        job.check(at)
    return jobs
