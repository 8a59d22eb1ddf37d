"""One trained run, tried out: a test case or a file of the user's, its parameters, its prediction."""

import csv
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lrsa.data.store import Dataset, Selection
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import case_names, truth
from lrsa.mesh.arrays import read_npz, write_npz
from lrsa.pointset import PointSet
from lrsa.report.pictures import moves
from lrsa.studio.shapes import Shape
from lrsa.surrogate.inputs import Inputs, Loaded
from lrsa.surrogate.ranges import Ranges
from lrsa.surrogate.surrogate import Surrogate, load
from lrsa.training.config import RunConfig

LARGEST = 1000
"""Test cases that are listed."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the whole case, with what the training cases span."""

    name: str
    unit: str
    low: float
    high: float

    def outside(self, value: float) -> bool:
        slack = 1e-6 * (self.high - self.low or abs(self.high) or 1.0)
        return not self.low - slack <= value <= self.high + slack


@dataclass
class Opened:
    """A case that is looked at."""

    name: str
    case: PointSet
    loaded: Loaded | None = None
    """The file it came from."""
    reader: Inputs | None = None
    shape: Shape = field(init=False)
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The values seen so far of every field: the scale only grows while a parameter moves."""

    def __post_init__(self) -> None:
        self.shape = Shape(self.case)

    def widened(self, name: str, values: Sequence[np.ndarray]) -> tuple[float, float]:
        """The scale of a field that has taken these values, too."""
        seen = [v[np.isfinite(v)] for v in values]
        ends = [float(end) for v in seen if v.size for end in (v.min(), v.max())]
        ends += self.spans.get(name, ())
        self.spans[name] = (min(ends), max(ends)) if ends else (0.0, 1.0)
        return self.spans[name]


@dataclass(frozen=True)
class Prediction:
    """One frame, as far as it is known."""

    u: np.ndarray
    """(N, o)."""
    truth: np.ndarray | None
    """(N, o), NaN where it is not known."""
    milliseconds: float
    """Of the surrogate; 0 where it was predicted before."""


class Exploration:
    """A run and the case that is looked at; numbers only."""

    def __init__(self, run: Path) -> None:
        self.run, self.config = run, RunConfig.load(run)
        self.surrogate: Surrogate = load(run)
        self.protocol = self.surrogate.protocol
        names = self.config.schema.names
        count = self.surrogate.normaliser.u_shift.shape[-1]
        self.fields = names.targets if len(names.targets) == count else tuple(f"u{i}" for i in range(count))
        self.units: Mapping[str, str] = {k: v for k, v in names.units.items() if v not in ("", "1")}
        self.cases, self.missing = self._test_cases()
        self.parameters = self._parameters()
        self.opened: Opened | None = None
        self._made: dict[tuple[tuple[float, ...], int], np.ndarray] = {}

    @property
    def names(self) -> list[str]:
        """What the test cases are called."""
        if self.cases is None:
            return []
        data = self.cases.cases
        assert isinstance(data, Dataset)
        return case_names(data, len(self.cases))

    def choose(self, index: int) -> Opened:
        """Look at a test case."""
        if self.cases is None:
            raise LrsaError(self.missing)
        case = self.cases[index]
        case.check_finite(self.cases.label(index))
        opened = Opened(self.names[index], case)
        if case.u is not None and case.times is not None:  # one scale for all frames, from the first on
            known = truth(self.protocol, case)
            for i, name in enumerate(self.fields):
                opened.widened(name, [known[..., i]])
        return self._open(opened)

    def first_field(self) -> str:
        """The first that is not the same all over what is drawn first: a flow stands still on its body."""
        shape, known = self._case().shape, self._known(0)
        seen = shape.index(shape.has_body)
        if known is None:
            return self.fields[0]
        for i, name in enumerate(self.fields):
            values = known[seen, i]
            if np.isfinite(values).any() and np.nanmax(values) > np.nanmin(values):
                return name
        return self.fields[0]

    def drop(self, path: Path) -> Opened:
        """Look at a file of the user's; parameters start in the middle of the training range."""
        start = [(p.low + p.high) / 2 for p in self.parameters]
        table = None
        if self.config.schema.names.globals:
            table = self._table(path, start)
            _add_globals(path, start)
        times = ()
        if self.config.schema.protocol == "time-conditioned" and self.cases is not None:
            known = self.cases[0].times
            times = () if known is None else tuple(float(t) for t in known)
        reader = Inputs(self.run, self.surrogate, [path], globals_table=table, times=times)
        loaded = reader.load(path)
        return self._open(Opened(path.name, loaded.case, loaded, reader))

    def frames(self) -> list[float]:
        """The times that are predicted; one where there are none."""
        case = self._case().case
        return [0.0] if case.times is None else [float(t) for t in case.times[self.protocol.history :]]

    def start(self) -> list[float]:
        """The parameters that the case came with."""
        case = self._case().case
        return [] if case.globals is None else [float(v) for v in case.globals]

    def predict(self, values: Sequence[float], frame: int = 0) -> Prediction:
        """The frame at these parameters; what is known of the truth holds at those of the case only."""
        begun = time.perf_counter()
        u, new = self._predicted(tuple(values), frame)
        milliseconds = 1000 * (time.perf_counter() - begun) if new else 0.0
        return Prediction(u, self._truth(u, frame) if self.at_home(values) else None, milliseconds)

    def at_home(self, values: Sequence[float]) -> bool:
        """Whether these parameters are those that the case came with."""
        return bool(np.allclose(np.asarray(values), self.start(), rtol=1e-6, atol=0))

    def warnings(self, values: Sequence[float]) -> list[str]:
        """How far the case lies outside the training range."""
        if self.surrogate.ranges is None:
            return ["this run keeps no training ranges: nothing is said about cases outside them"]
        return self.surrogate.ranges.warnings(self.asked(values))

    def asked(self, values: Sequence[float], frame: int | None = None) -> PointSet:
        """The case at these parameters, and of times that are asked one by one only that of the frame."""
        case = self._case().case
        if case.globals is not None:
            case = replace(case, globals=np.asarray(values, np.float32))
        if frame is not None and self.config.schema.protocol == "time-conditioned" and case.times is not None:
            u = None if case.u is None else case.u[frame : frame + 1]
            case = replace(case, times=case.times[frame : frame + 1], u=u)
        return case

    def _predicted(self, values: tuple[float, ...], frame: int) -> tuple[np.ndarray, bool]:
        """(N, o), and whether it was not known before. All frames of a roll-out are made at once."""
        if (values, frame) in self._made:
            return self._made[values, frame], False
        if self._made and next(iter(self._made))[0] != values:
            self._made.clear()
        u = self.surrogate.predict(self.asked(values, frame))
        one = self.config.schema.protocol == "time-conditioned" and u.ndim == 3
        frames = {frame: u[0]} if one else dict(enumerate(u)) if u.ndim == 3 else {0: u}
        self._made |= {(values, i): values_of for i, values_of in frames.items()}
        return self._made[values, frame], True

    def _truth(self, u: np.ndarray, frame: int) -> np.ndarray | None:
        opened = self._case()
        if opened.loaded is not None and opened.reader is not None:
            return _truth_of_file(opened.reader, opened.loaded, u, frame)
        return self._known(frame)

    def _known(self, frame: int) -> np.ndarray | None:
        """(N, o) what the data has, NaN where it has nothing."""
        case = self._case().case
        if case.u is None:
            return None
        known = truth(self.protocol, case)
        known = known[frame] if known.ndim == 3 else known
        return known if case.u_mask is None else np.where(case.u_mask, known, np.nan)

    def place(self, u: np.ndarray) -> np.ndarray | None:
        """(N, p) where the points are by these fields, of runs that predict places; else None."""
        return u[:, : self._case().case.x.shape[1]] if moves(self.config.schema.names) else None

    def _open(self, opened: Opened) -> Opened:
        self.opened = opened
        self._made.clear()
        return opened

    def _case(self) -> Opened:
        if self.opened is None:
            raise LrsaError("no case is chosen yet")
        return self.opened

    def _test_cases(self) -> tuple[Selection | None, str]:
        data = self.config.data
        try:
            tests = self.config.dataset("test")
        except LrsaError as error:
            return None, str(error)
        count = min(len(tests), LARGEST, data.test or len(tests))
        if not count:
            return None, f"{data.path} has no test cases"
        return Selection(tests, range(count), data.stride), ""

    def _parameters(self) -> list[Parameter]:
        """One for each global; where the run keeps no ranges, those of the test cases."""
        count = len(self.surrogate.normaliser.g_shift)
        names = self.config.schema.names.globals
        names = names if len(names) == count else tuple(str(i) for i in range(count))
        ranges = self.surrogate.ranges
        if ranges is None and self.cases is not None and count:
            ranges = Ranges.of(self.cases)
        spans = {} if ranges is None else ranges.spans
        made = [(name, *spans.get(f"parameter {name}", (0.0, 1.0))) for name in names]
        return [Parameter(name, self.units.get(name, ""), low, high) for name, low, high in made]

    def _table(self, path: Path, values: Sequence[float]) -> Path:
        """The parameters of a dropped file, as `lrsa predict --globals` takes them."""
        table = path.with_name("parameters.csv")
        with open(table, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["case", *(p.name for p in self.parameters)], [path.name, *values]])
        return table


def _add_globals(path: Path, values: Sequence[float]) -> None:
    """NPZ files of single cases carry their parameters themselves."""
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        if "x" in arrays and "globals" not in arrays:
            write_npz(path, {**arrays, "globals": np.asarray(values, np.float32)})


def _truth_of_file(reader: Inputs, loaded: Loaded, u: np.ndarray, frame: int) -> np.ndarray | None:
    """(N, o) what the file itself knows of the targets."""
    several = loaded.case.times is not None
    fields = reader.fields(u, loaded, frame if several else None)
    columns = []
    for name in reader.roles.targets:
        values = fields[f"{name}_predicted"]
        error = fields.get(f"{name}_error")
        columns.append(
            (np.full(values.shape, np.nan) if error is None else values - error).reshape(len(u), -1)
        )
    found = np.concatenate(columns, axis=1).astype(np.float32)
    return None if np.isnan(found).all() else found
