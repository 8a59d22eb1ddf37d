"""The cases of an import while it runs: built one by one by workers, left in a folder, made alike."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.mesh.building import build_case, dimension, names_of
from lrsa.mesh.finding import fingerprint
from lrsa.mesh.input_points import joined_case
from lrsa.mesh.pool import unreadable
from lrsa.mesh.reading import read_raw
from lrsa.mesh.roles import Roles
from lrsa.pointset import PointSet, check_digits
from lrsa.version import __version__


@dataclass(frozen=True)
class Outcome:
    """What a worker has to say about a case that it has built."""

    points: int
    dims: int
    width: int
    """Points of its largest cell, 0 without cells."""
    partly: tuple[str, ...]
    """Targets that are known at some of the points only."""
    frames: int
    """0 where the case does not change in time."""
    duplicates: int
    """Points that coincide with another."""
    varying: tuple[str, ...]
    """Inputs that change in time."""
    spans: tuple[tuple[str, float, float], ...] = ()
    """Least and largest value of every input and target."""
    grid: tuple[int, ...] = ()
    """Index shape of a structured mesh."""
    dimension: int = 0
    """Of its cells, 0 without cells, -1 where it is not known."""


@dataclass(frozen=True)
class Job:
    """One case to build."""

    path: Path
    roles: Roles
    parameters: np.ndarray | None
    part: Path
    """Where the built case is left."""
    inputs: Path | None = None
    """The second file, where the inputs are not at the points of the mesh."""

    @staticmethod
    def of(
        path: Path, roles: Roles, parameters: np.ndarray | None, folder: Path, inputs: Path | None = None
    ) -> "Job":
        about = json.dumps(roles.to_dict(), sort_keys=True)
        row = "" if parameters is None else repr(parameters.tolist())
        second = "" if inputs is None or not inputs.exists() else fingerprint(inputs)
        part = folder / f"{fingerprint(path, __version__, about, row, second)}.npz"
        return Job(path, roles, parameters, part, inputs)

    def make(self) -> Outcome:
        """Read, check and build the case, and leave it in the folder."""
        outcome, arrays = self.built()
        self.leave(outcome, arrays)
        return outcome

    def built(self) -> tuple[Outcome, dict[str, np.ndarray]]:
        """Read, check and build the case."""
        raw = read_raw(self.path, self.roles.patches)
        if self.inputs is None:
            case = build_case(raw, self.roles, self.parameters)
        else:
            case = joined_case(raw, read_raw(self.inputs), self.roles, self.parameters)
        case.check_finite(str(self.path))
        check_digits(raw.points, str(self.path), "coordinates")
        if raw.times is not None:
            check_digits(raw.times, str(self.path), "times")
        frames = 0 if raw.times is None else len(raw.times)
        named = {**raw.cell_data, **raw.point_data}
        varying = [
            n
            for n in self.roles.inputs
            if frames and n in named and np.shape(named[n])[0] == frames != len(raw.points)
        ]
        outcome = Outcome(
            len(case),
            case.x.shape[1],
            0 if case.cells is None else case.cells.shape[1],
            _partly(case, self.roles),
            frames,
            _duplicates(case.x),
            tuple(varying),
            _spans(case),
            case.grid or (),
            dimension(raw),
        )
        return outcome, case.arrays()

    def leave(self, outcome: Outcome, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep it in the folder."""
        said = np.frombuffer(json.dumps(asdict(outcome)).encode(), np.uint8)
        with atomic(self.part) as temporary, open(temporary, "wb") as file:
            np.savez(file, outcome=said, **arrays)  # pyright: ignore[reportArgumentType]

    def elsewhere(self) -> tuple[Outcome, dict[str, np.ndarray]] | LrsaError:
        """`built` by a worker that sees the same files under the same names; what is wrong comes back."""
        try:
            return self.built()
        except LrsaError as error:
            return error
        except Exception as error:
            return unreadable(self.path, error)


@dataclass(frozen=True)
class Parts(Sequence[PointSet]):
    """The built cases, made alike: cells of one width, a mask in all where one has it, grids if all have."""

    jobs: Sequence[Job]
    outcomes: Sequence[Outcome]
    roles: Roles

    def __len__(self) -> int:
        return len(self.jobs)

    def __getitem__(self, index: int) -> PointSet:  # pyright: ignore[reportIncompatibleMethodOverride]
        with np.load(self.jobs[index].part) as part:
            arrays = {name: part[name] for name in part.files if name != "outcome"}
        case = PointSet(**arrays, names=names_of(self.roles, self.outcomes[index].dims))
        widths = [outcome.width for outcome in self.outcomes]
        cells, types = (case.cells, case.cell_types) if min(widths) else (None, None)
        if cells is not None:
            missing = max(widths) - cells.shape[1]
            cells = np.pad(cells, ((0, 0), (0, missing)), constant_values=-1)
        mask = case.u_mask
        if mask is None and case.u is not None and any(outcome.partly for outcome in self.outcomes):
            mask = np.ones(case.u.shape[-2:], bool)
        axes = {len(outcome.grid) for outcome in self.outcomes}
        grid = self.outcomes[index].grid if len(axes) == 1 and 0 not in axes else None
        return replace(case, cells=cells, cell_types=types, u_mask=mask, grid=grid)


def found(job: Job) -> Outcome | None:
    """The outcome that an interrupted import has left."""
    try:
        return _outcome_in(job.part)
    except Exception:  # whatever is wrong with a left part: it is made again
        return None


def _outcome_in(part: Path) -> Outcome:
    with np.load(part) as file:
        values = json.loads(bytes(file["outcome"]))
    spans = tuple((str(name), float(low), float(high)) for name, low, high in values["spans"])
    settled = {name: tuple(values[name]) for name in ("partly", "varying", "grid")} | {"spans": spans}
    return Outcome(**{**values, **settled})


def _partly(case: PointSet, roles: Roles) -> tuple[str, ...]:
    """Arrays among the targets whose channels are not known at all points."""
    if case.u_mask is None:
        return ()
    ends = np.cumsum([roles.channels.get(name, 1) for name in roles.targets])
    known = np.split(np.all(case.u_mask, axis=0), ends[:-1])
    return tuple(name for name, channels in zip(roles.targets, known, strict=True) if not channels.all())


def _spans(case: PointSet) -> tuple[tuple[str, float, float], ...]:
    rows = []
    for values, labels, mask in (
        (case.f, case.names.inputs, None),
        (case.u, case.names.targets, case.u_mask),
    ):
        for i, label in enumerate(labels if values is not None else ()):
            assert values is not None
            column = values[..., i] if mask is None else values[..., mask[:, i], i]
            if column.size:
                rows.append((label, float(column.min()), float(column.max())))
    return tuple(rows)


def _duplicates(x: np.ndarray) -> int:
    """Points that coincide with an earlier one. That there are none, hashes mostly tell at once."""
    bits = np.ascontiguousarray(x + np.float32(0)).view(np.uint32).astype(np.uint64)
    factors = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
    hashes = (bits * factors[: x.shape[1]]).sum(1, dtype=np.uint64)
    return 0 if len(np.unique(hashes)) == len(x) else len(x) - len(np.unique(x, axis=0))
