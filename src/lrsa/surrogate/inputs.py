"""The user's files as cases of a run: arrays in the roles of the training data."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.context import needs_of
from lrsa.errors import LrsaError
from lrsa.mesh.arrays import case_of, read_npz
from lrsa.mesh.building import build_case, check_case, components, field_of
from lrsa.mesh.finding import case_names, labels_of
from lrsa.mesh.input_points import inputs_file, joined_case
from lrsa.mesh.reading import open_mesh, read_raw, read_raw_safely, times_of
from lrsa.mesh.roles import RawCase
from lrsa.mesh.tables import TABLES, Parameters, hdf5_part, read_globals
from lrsa.mesh.writing import is_table
from lrsa.pointset import PointSet
from lrsa.surrogate.roles import numbered, roles_of
from lrsa.surrogate.surrogate import Surrogate

FLAT = 1e-5
"""A mesh is flat along an axis on which it extends less than this share of its longest side."""

Elsewhere = Callable[[Callable[[Path], Any], Path], Any]
"""(function, path) -> what the function says of the path."""


@dataclass(frozen=True)
class Loaded:
    """A file, read and found to fit."""

    path: Path
    case: PointSet
    truth: Mapping[str, np.ndarray]
    """The target arrays that the file has, (T, n, k); T = 1 where they do not change."""
    times: np.ndarray | None
    """(T,) those of the file, which need not be those that are predicted."""
    asked: int
    """Points of the file: the case may have others, which only give inputs."""

    @property
    def nbytes(self) -> int:
        arrays = [*self.case.arrays().values(), *self.truth.values()]
        return sum(array.nbytes for array in arrays)


class Inputs:
    """Reads files as the training data was read.

    Args:
        run: What errors call the run.
        surrogate: The trained surrogate.
        paths: All files that will be read.
        inputs: The arrays that are the inputs, in the order of training (default: the same).
        globals_table: The table of per-case parameters, where the run was trained with some.
        times: Of a time-conditioned run, the times to predict (default: those of the file).
        parameters: (g,) those of every file, instead of a table.
        elsewhere: Calls a function on a path in another process. With it, this one opens no file itself.
    """

    def __init__(
        self,
        run: Path,
        surrogate: Surrogate,
        paths: Sequence[Path],
        inputs: Sequence[str] = (),
        globals_table: Path | None = None,
        times: Sequence[float] = (),
        parameters: np.ndarray | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.run, self.surrogate, self.inputs = run, surrogate, inputs
        self.given, self.elsewhere = parameters, elsewhere
        self.roles, self.imported = roles_of(surrogate, inputs, run)
        self.conditioned = surrogate.schema.protocol == "time-conditioned"
        self.times = np.array(times, np.float32)
        if len(times) and not self.conditioned:
            raise LrsaError(f"{run} knows no time: leave out --time")
        if surrogate.schema.protocol == "autoregressive":
            raise LrsaError(
                f"{run} predicts frame after frame: give it a data set (.h5) with the first frames"
            )
        self.names = dict(zip(paths, case_names(paths), strict=True))
        self.parameters = self._table(globals_table)

    @property
    def dropped(self) -> dict[int, float]:
        """Axes that the surrogate does not see, and where the training points lay on them."""
        normaliser = self.surrogate.normaliser
        seen = set(normaliser.x_axes.tolist())
        return {i: float(v) for i, v in enumerate(normaliser.x_shift) if i not in seen}

    @property
    def channels(self) -> tuple[str, ...]:
        """One name for each column of the prediction."""
        names, count = self.surrogate.schema.names.targets, self.surrogate.normaliser.u_shift.shape[-1]
        return names if len(names) == count else numbered("u", count)

    def load(self, path: Path) -> Loaded:
        """The case in a file, refused with the file's name where it does not fit."""
        try:
            loaded = self._load(path)
            case = replace(loaded.case, names=replace(self.surrogate.schema.names))
            loaded = replace(loaded, case=self._with_times(self._with_axes(case, path), loaded, path))
            loaded.case.check_finite(str(path))
            self._check_features(loaded.case, path)
            self._check_grid(loaded.case, path)
        except LrsaError as error:
            if path.name in str(error):
                raise
            raise LrsaError(f"{path}: {error}") from error
        return loaded

    def fields(self, u: np.ndarray, loaded: Loaded, frame: int | None = None) -> dict[str, np.ndarray]:
        """The prediction (n, o) or (T, n, o) as arrays named after the targets, and the errors.

        `frame` says which of the predicted times it is, where it is one of several.
        """
        made: dict[str, np.ndarray] = {}
        for name, values in self._arrays(u):
            made[f"{name}_predicted"] = values
            truth = self._truth(loaded, name, frame)
            if truth is not None and truth.size == values.size:
                made[f"{name}_error"] = (values - truth.reshape(values.shape)).astype(np.float32)
        return made

    def doubts(self, values: np.ndarray, what: str) -> dict[str, np.ndarray]:
        """Something else of the predicted channels (..., n, o) as arrays: their spread, say."""
        return {f"{name}_{what}": array.astype(np.float32) for name, array in self._arrays(values)}

    def _arrays(self, u: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Channels (..., n, o) -> the arrays of the targets; a vector has several channels."""
        start = 0
        for name in self.roles.targets:
            width = self.roles.channels.get(name, 1)
            values = u[..., start] if width == 1 else u[..., start : start + width]
            start += width
            yield name, np.ascontiguousarray(values)

    def mesh_at(self, loaded: Loaded, time: float | None = None) -> Any:
        """The mesh of the file, at this time where it has it, else at its first."""
        theirs = (
            []
            if loaded.times is None
            else [t for t in loaded.times if time is not None and np.isclose(t, time)]
        )
        mesh = open_mesh(loaded.path, float(theirs[0]) if theirs else None, self.roles.patches)
        # A collection wraps even a single mesh into blocks.
        return mesh[0] if loaded.path.suffix.lower() == ".pvd" and mesh.n_blocks == 1 else mesh

    def _truth(self, loaded: Loaded, name: str, frame: int | None) -> np.ndarray | None:
        """The true values at the predicted times, where the file has all of them."""
        truth, asked = loaded.truth.get(name), loaded.case.times
        if truth is None or asked is None:
            return None if truth is None else truth[0]
        if loaded.times is None:
            return None
        asked = asked if frame is None else asked[frame : frame + 1]
        at = np.abs(np.subtract.outer(asked, loaded.times)).argmin(1)
        if not np.allclose(loaded.times[at], asked):
            return None
        frames = np.broadcast_to(truth, (len(loaded.times), *truth.shape[1:]))[at]
        return frames if frame is None else frames[0]

    def _load(self, path: Path) -> Loaded:
        if path.suffix.lower() == ".npz" and not self.imported:
            return self._load_npz(path)
        raw = (
            read_raw_safely(path, patches=self.roles.patches)
            if self.elsewhere is None
            else self.elsewhere(read_raw, path)
        )
        if raw.times is not None and not self.conditioned:
            raise LrsaError(
                f"{path} has {len(raw.times)} times, and {self.run} knows no time: give it one of them"
            )
        if not self.roles.input_points:
            self._check_components(raw)
        # Only the inputs: whatever is the matter with a target, it can be predicted.
        blind = replace(self.roles, targets=())
        second = inputs_file(self.roles.input_points, path, self.names[path])
        if second is None:
            case = build_case(raw, blind, self._parameters_of(path), targets=False)
        else:
            given = read_raw_safely(second)
            case = joined_case(raw, given, blind, self._parameters_of(path), targets=False)
        known = [replace(self.roles, inputs=(), targets=(name,)) for name in self.roles.targets]
        truth = {
            one.targets[0]: field_of(raw, one.targets[0], one) for one in known if not check_case(raw, one)
        }
        times = raw.times
        if times is None and self.conditioned and not is_table(hdf5_part(path)[0]):
            found = self._read(times_of, path)
            times = np.array(found) if found else None
        asked = len(raw.points) if self.roles.location == "point" else len(case)
        return Loaded(path, case, truth, times, asked)

    def _read(self, read: Callable[[Path], Any], path: Path) -> Any:
        return read(path) if self.elsewhere is None else self.elsewhere(read, path)

    def _check_components(self, raw: RawCase) -> None:
        data = {**raw.cell_data, **raw.point_data} if self.roles.location == "point" else raw.cell_data
        for name in self.roles.inputs:
            wanted = self.roles.channels.get(name, 1)
            count = (
                len(raw.points) if name in raw.point_data else len(raw.cells if raw.cells is not None else ())
            )
            if name in data and (found := components(raw, data[name], count)) != wanted:
                raise LrsaError(
                    f'{raw.path} has "{name}" with {found} components,'
                    f" but {self.run} was trained with {wanted}"
                )

    def _load_npz(self, path: Path) -> Loaded:
        """NPZ for a run whose data was not imported from files: x, and the features by name."""
        arrays = self._read(read_npz, path)
        if self.given is not None:
            arrays["globals"] = self.given
        features = self.surrogate.normaliser.f_shift.shape[-1]
        case = case_of(path, arrays, self.surrogate.schema.names, features, self.inputs, str(self.run))
        there = [name for name in self.roles.targets if np.size(arrays.get(name, ())) == len(case)]
        truth = {name: arrays[name].reshape(1, len(case), 1) for name in there}
        return Loaded(path, case, truth, None, len(case))

    def _with_times(self, case: PointSet, loaded: Loaded, path: Path) -> PointSet:
        """The case at the times that are asked for: --time, else those of the file."""
        if not self.conditioned:
            return replace(case, u=None, u_mask=None, times=None)
        known = (self.times if len(self.times) else None, loaded.times, case.times, case.time)
        times = next((given for given in known if given is not None), None)
        if times is None:
            raise LrsaError(f"{self.run} predicts at a time, and {path.name} has none: give it with --time")
        times = np.atleast_1d(np.asarray(times, np.float32))
        if len(times) > 1 and hdf5_part(path)[0].suffix.lower() in TABLES:
            raise LrsaError(f"{path} holds one time, and {len(times)} are asked for: give one with --time")
        return replace(case, u=None, u_mask=None, times=times, time=None)

    def _with_axes(self, case: PointSet, path: Path) -> PointSet:
        """The case with as many axes as in training, where those that differ are constant."""
        wanted, given = len(self.surrogate.normaliser.x_shift), case.x.shape[1]
        x = case.x
        if given > wanted and not np.ptp(x[:, wanted:], axis=0).any():
            x = x[:, :wanted]
        elif given < wanted and all(axis in self.dropped for axis in range(given, wanted)):
            fill = [np.full((len(x), 1), self.dropped[axis], x.dtype) for axis in range(given, wanted)]
            x = np.concatenate([x, *fill], axis=1)
        if x.shape[1] != wanted:
            raise LrsaError(f"{self.run} was trained in {wanted} dimensions, but {path.name} has {given}")
        extent = np.ptp(x, axis=0)
        for axis in self.dropped:
            if extent[axis] > FLAT * extent.max():
                name = (self.surrogate.schema.names.coords or "xyz")[axis]
                raise LrsaError(
                    f"{self.run} was trained on points of one {name}, but those of {path.name} reach from"
                    f" {x[:, axis].min():.4g} to {x[:, axis].max():.4g}"
                )
        return replace(case, x=x)

    def _check_features(self, case: PointSet, path: Path) -> None:
        wanted, given = self.surrogate.normaliser.f_shift.shape[-1], 0 if case.f is None else case.f.shape[1]
        if wanted != given:
            names = ", ".join(self.surrogate.schema.names.inputs)
            raise LrsaError(
                f"{self.run} was trained with {wanted} input channels{f' ({names})' if names else ''},"
                f" but {path.name} gives {given}"
            )
        wanted, given = (
            len(self.surrogate.normaliser.g_shift),
            0 if case.globals is None else len(case.globals),
        )
        if wanted != given:
            names = ", ".join(self.surrogate.schema.names.globals) or f"{wanted} parameters"
            raise LrsaError(
                f"{self.run} was trained with {names} for every case, and {path.name} comes with {given}:"
                " give them in a table with --globals"
                if wanted
                else f"{self.run} takes no parameters of the case, and {path.name} comes with {given}"
            )

    def _check_grid(self, case: PointSet, path: Path) -> None:
        if needs_of(self.surrogate.model).grid and case.grid is None:
            raise LrsaError(
                f"{self.run} needs a structured grid, and {path.name} has none: give a structured VTK file,"
                " or its points along each axis as the array `grid` of an NPZ file"
            )

    def _table(self, path: Path | None) -> Parameters | None:
        if path is None:
            if self.imported and self.roles.globals and self.given is None:
                names = ", ".join(self.roles.globals)
                raise LrsaError(
                    f"{self.run} was trained with {names} for every case: give them with --globals TABLE"
                )
            return None
        table = read_globals(path)
        missing = [name for name in self.roles.globals if name not in table.names]
        if missing or not self.roles.globals:
            wanted = f"no column {', '.join(missing)}" if missing else "parameters, and the run takes none"
            raise LrsaError(f"{path} has {wanted} (it has: {', '.join(table.names)})")
        return table

    def _parameters_of(self, path: Path) -> np.ndarray | None:
        if self.parameters is None:
            return self.given
        row = self.parameters.of(labels_of(path, self.names[path]))
        if row is None:
            some = ", ".join(list(self.parameters.rows)[:5])
            raise LrsaError(f"{self.parameters.path} has no row for {path} (it has: {some}, ...)")
        return row[[self.parameters.names.index(name) for name in self.roles.globals]]
