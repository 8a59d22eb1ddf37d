"""One mesh, predicted by several processes: each holds a part of its points, and writes a part of a `.pvtu`.

The points meet in the latents, which are those of the whole mesh; so the fields are those of one process. Of
a `.pvtu` every process reads and writes some of the pieces, and none holds the whole. A single `.vtu` cannot
be read in parts: every process opens it, takes its share of the points, and writes its share of the cells.
"""

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.console import Advance
from lrsa.context import needs_of
from lrsa.errors import LrsaError
from lrsa.files import alone
from lrsa.mesh.pieces import Arrays, arrays_of, dealt, pieces_in, read_pieces, write_summary
from lrsa.mesh.pool import Call, shared_pool
from lrsa.mesh.reading import open_mesh, read_raw, read_raw_safely
from lrsa.mesh.roles import Roles
from lrsa.mesh.writing import Fields, Location, save_mesh
from lrsa.parallel.ranks import Ranks
from lrsa.pointset import PointSet
from lrsa.surrogate.doubts import Doubts
from lrsa.surrogate.ensemble import mean_of
from lrsa.surrogate.inputs import Inputs, Loaded
from lrsa.surrogate.predict_files import Predicted
from lrsa.surrogate.ranges import Ranges
from lrsa.surrogate.record import unfinished
from lrsa.surrogate.roles import roles_of
from lrsa.surrogate.shipped import located
from lrsa.surrogate.surrogate import Surrogate, load, streams

STEPS = ("read", "predicted", "written")


def predict_shared(
    run: Path,
    source: Path,
    out: Path,
    ranks: Ranks,
    inputs: Sequence[str] = (),
    globals_table: Path | None = None,
    times: Sequence[float] = (),
    progress: Advance = lambda done, total, words: None,
) -> Predicted:
    """Predict one mesh into the `.pvtu` file `out`; every process calls this, as one would `predict_path`."""
    run, size = located(run), 1 if ranks.everyone is None else ranks.everyone.size
    surrogate = check_shares(run, source, out, size)
    for member in (surrogate, *surrogate.others):
        member.sharing = ranks.shared
    share = _Pieces.of(source, ranks) if source.suffix.lower() == ".pvtu" else _Cells(source, ranks)
    reader = Inputs(run, surrogate, [source], inputs, globals_table, times, elsewhere=share.read)
    loaded = reader.load(source)
    progress(1, len(STEPS), STEPS[0])
    case, doubts = share.part(loaded, surrogate), Doubts.of(run, surrogate)
    summary = Predicted(1, [out], unfinished(run))
    if (times_asked := case.times) is not None and len(times_asked) > 1:
        raise LrsaError(f"processes share one time, and {len(times_asked)} are asked for: name it by --time")
    time = None if times_asked is None else float(times_asked[0])
    summary.warnings += _warnings(source.name, case, surrogate, ranks) + doubts.warnings(source.name, case)
    every = share.joined(surrogate.answers([case])[0])
    progress(2, len(STEPS), STEPS[1])
    if doubts.named and share.whole:
        row, refused = doubts.quantities(loaded.case, every)
        summary.quantities += [{"case": source.name, **row}] if row else []
        summary.notes += refused
    elif doubts.named:
        summary.notes.append(f"{', '.join(doubts.named)}: not computed of a mesh in pieces")
    fields = _fields(every[..., : loaded.asked, :], loaded, reader, doubts)
    with _staged(out, ranks) as staged:
        share.write(staged, fields, reader.roles.location, time)
    progress(3, len(STEPS), STEPS[2])
    return summary


def _warnings(name: str, case: PointSet, surrogate: Surrogate, ranks: Ranks) -> list[str]:
    """What of the whole case lies outside the training range."""
    if surrogate.ranges is None:
        return []
    whole = reduce(Ranges.joined, ranks.heard(Ranges.of([case])))
    return [f"{name}: {line}" for line in surrogate.ranges.warnings_of(whole)]


def _fields(every: np.ndarray, loaded: Loaded, reader: Inputs, doubts: Doubts) -> dict[str, np.ndarray]:
    """Answers (K, n, o), or (K, 1, n, o) at one time, as arrays of the file."""
    timed = loaded.case.times is not None
    every = every[:, 0] if timed else every
    made = reader.fields(mean_of(every), loaded, 0 if timed else None)
    for what, values in doubts.fields(every, reader.channels).items():
        made |= reader.doubts(values, what)
    return made


def check_shares(run: Path, source: Path, out: Path, size: int) -> Surrogate:
    """The surrogate of a run, if so many processes can share this prediction."""
    kind = source.suffix.lower()
    if kind not in (".vtu", ".pvtu"):
        raise LrsaError(
            f"several processes share one mesh, a .vtu or .pvtu file, not {source}. Leave out --nproc"
        )
    if not source.is_file():
        raise LrsaError(f"{source} does not exist")
    if out.suffix.lower() != ".pvtu":
        raise LrsaError(f"several processes write pieces: name it --out {out.with_suffix('.pvtu')}")
    if out.exists() and out.resolve() == source.resolve():
        raise LrsaError(f"{out} is the input itself: name another --out")
    surrogate = load(run)
    needs = needs_of(surrogate.model)
    if not streams(surrogate.model) or needs.geometry or needs.sensors or needs.domains:
        name = type(surrogate.model).__name__
        raise LrsaError(f"the points of a case cannot be shared with {name}, which needs all of them at once")
    roles, _ = roles_of(surrogate, (), run)
    if roles.patches:
        raise LrsaError(f"{run} was trained with --patches, which a {kind} does not have. Leave out --nproc")
    if kind == ".pvtu":
        _check_pieces(run, roles, source, size)
    return surrogate


def _check_pieces(run: Path, roles: Roles, source: Path, size: int) -> None:
    """Refuse what needs more than the pieces of a process."""
    whole = [f"--derive {name}" for name in roles.derive if name != "measure"]
    whole += ["--input-points"] if roles.input_points else []
    if whole:
        raise LrsaError(
            f"{run} was trained with {', '.join(whole)}, which needs the whole mesh, not pieces of it. Join"
            " them to a .vtu, or leave out --nproc"
        )
    if (count := len(pieces_in(source))) < size:
        raise LrsaError(f"{size} processes cannot share the {count} pieces of {source}. Use --nproc {count}")


class _Share(ABC):
    """What of a mesh is this process's."""

    whole = False
    """Whether every process has opened the whole mesh."""

    @abstractmethod
    def read(self, function: Any, path: Path) -> Any:
        """What `Inputs` asks of a file."""

    @abstractmethod
    def part(self, loaded: Loaded, surrogate: Surrogate) -> PointSet:
        """The points that this process predicts."""

    @abstractmethod
    def joined(self, every: np.ndarray) -> np.ndarray:
        """Of answers (K, ..., n, o) at those points, the answers at the points of `loaded`."""

    @abstractmethod
    def write(self, staged: "_Staged", fields: Fields, location: Location, time: float | None) -> None:
        """Leave the pieces of this process."""


@dataclass(frozen=True)
class _Pieces(_Share):
    """Some of the pieces of a `.pvtu`."""

    path: Path
    mine: Sequence[tuple[int, Path]]

    @staticmethod
    def of(path: Path, ranks: Ranks) -> "_Pieces":
        pieces = pieces_in(path)
        rank, size = (0, 1) if ranks.points is None else (ranks.points.rank, ranks.points.size)
        return _Pieces(path, list(enumerate(pieces))[dealt(pieces, size)[rank]])

    def read(self, function: Any, path: Path) -> Any:
        if function is not read_raw:
            return function(path)
        return shared_pool().one(Call(read_pieces, (path, [piece for _, piece in self.mine]), path))

    def part(self, loaded: Loaded, surrogate: Surrogate) -> PointSet:
        return loaded.case

    def joined(self, every: np.ndarray) -> np.ndarray:
        return every

    def write(self, staged: "_Staged", fields: Fields, location: Location, time: float | None) -> None:
        start = 0
        for number, path in self.mine:
            mesh = open_mesh(path)
            stop = start + (mesh.n_points if location == "point" else mesh.n_cells)
            if stop > start:
                here = {name: values[start:stop] for name, values in fields.items()}
                staged.add(number, mesh, here, location, time)
            start = stop


@dataclass(frozen=True)
class _Cells(_Share):
    """A share of the points of a `.vtu`, and of its cells."""

    path: Path
    ranks: Ranks
    whole = True

    def read(self, function: Any, path: Path) -> Any:
        if function is not read_raw:
            return function(path)
        raw = read_raw_safely(path)
        there = np.zeros(len(raw.points), bool)
        if raw.cells is not None:
            there[raw.cells[raw.cells >= 0]] = True
        if loose := int((~there).sum()):
            raise LrsaError(
                f"{path} has {loose} points in no cell, and pieces are made of cells. Leave out --nproc"
            )
        return raw

    def part(self, loaded: Loaded, surrogate: Surrogate) -> PointSet:
        case = surrogate.measured(loaded.case)
        return case.subset(np.arange(len(case))[self.ranks.part(len(case))])

    def joined(self, every: np.ndarray) -> np.ndarray:
        return np.concatenate(self.ranks.heard(every), axis=-2)

    def write(self, staged: "_Staged", fields: Fields, location: Location, time: float | None) -> None:
        mesh = open_mesh(self.path)
        data = mesh.point_data if location == "point" else mesh.cell_data
        for name, values in fields.items():
            data.set_array(np.ascontiguousarray(values), name)
        cells = np.arange(mesh.n_cells)[self.ranks.part(mesh.n_cells)]
        piece = mesh.extract_cells(cells, pass_cell_ids=False, pass_point_ids=False)
        staged.add(0 if self.ranks.points is None else self.ranks.points.rank, piece, {}, location, time)


@dataclass(frozen=True)
class _Staged:
    """A folder for the pieces of all processes."""

    folder: Path
    stem: str
    told: dict[str, Arrays]
    """The pieces of this process, and their arrays."""

    def add(self, number: int, mesh: Any, fields: Fields, location: Location, time: float | None) -> None:
        """Write a piece."""
        name = f"{self.stem}_{number:04d}.vtu"
        save_mesh(mesh, self.folder / name, fields, location, time)
        self.told[name] = arrays_of(mesh)


@contextmanager
def _staged(out: Path, ranks: Ranks) -> Iterator[_Staged]:
    """When the pieces of all are there, they move to their places, and `out` comes last."""
    staged = _Staged(out.with_name(f".{out.name}.pieces"), out.stem, {})
    with alone(out) if ranks.first else nullcontext():
        if ranks.first:
            shutil.rmtree(staged.folder, ignore_errors=True)  # of a killed prediction
            staged.folder.mkdir(parents=True)
        ranks.wait()
        yield staged
        told = {name: arrays for one in ranks.heard(staged.told) for name, arrays in one.items()}
        if ranks.first:
            home = out.with_suffix("")
            home.mkdir(exist_ok=True)
            for name in told:
                (staged.folder / name).replace(home / name)
            write_summary(
                staged.folder / out.name, [f"{home.name}/{name}" for name in told], list(told.values())
            )
            (staged.folder / out.name).replace(out)
            staged.folder.rmdir()
        ranks.wait()
