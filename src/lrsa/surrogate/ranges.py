"""The ranges of the training cases, and how far a new case lies outside them.

distance of a channel = max(low - smallest, largest - high, 0) / (high - low)

where [low, high] is what the training cases span, and smallest and largest are those of the new case: 0
inside, 0.5 half a range beyond. A channel that was constant in training is measured in units of its value (of
1 where that is 0). The distance says nothing about gaps inside the range; it is there to catch a parameter in
other units, a mesh in millimetres and an angle of attack that nobody trained on.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.pointset import PointSet

FILE = "ranges.json"
TOLERANCE = 0.01
"""The distance up to which nobody is warned: meshes of one family differ by as much at their rims."""

Span = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """Smallest and largest value of every channel over the training cases."""

    spans: Mapping[str, Span]
    """`coordinate x`, `input a`, `parameter Re`, `time` -> (low, high)."""

    @staticmethod
    def of(cases: Iterable[PointSet]) -> "Ranges":
        """The ranges of these cases."""
        return reduce(Ranges.widened, cases, Ranges({}))

    def widened(self, case: PointSet) -> "Ranges":
        """The ranges of these cases and one more."""
        return self.joined(Ranges(_spans(case)))

    def joined(self, other: "Ranges") -> "Ranges":
        """The ranges of all cases of both."""
        spans = dict(self.spans)
        for name, (low, high) in other.spans.items():
            before = spans.get(name, (low, high))
            spans[name] = (min(low, before[0]), max(high, before[1]))
        return Ranges(spans)

    def save(self, run: Path) -> None:
        """Keep them in the run folder."""
        with atomic(run / FILE) as temporary:
            temporary.write_text(json.dumps(self.spans, indent=1))

    @staticmethod
    def load(run: Path) -> "Ranges | None":
        """Those of a run; None where it keeps none."""
        path = run / FILE
        if not path.exists():
            return None
        try:
            return Ranges(
                {
                    name: (float(low), float(high))
                    for name, (low, high) in json.loads(path.read_text()).items()
                }
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise LrsaError(f"{path} is damaged: delete it to predict without range warnings") from error

    def distances(self, case: PointSet) -> dict[str, float]:
        """How far beyond the training range every channel of the case goes, in units of that range."""
        return self._distances(_spans(case))

    def _distances(self, spans: Mapping[str, Span]) -> dict[str, float]:
        return {name: _distance(span, self.spans[name]) for name, span in spans.items() if name in self.spans}

    def warnings(self, case: PointSet) -> list[str]:
        """One line for every channel that goes beyond its range, the worst first."""
        return self.warnings_of(Ranges.of([case]))

    def warnings_of(self, case: "Ranges") -> list[str]:
        """The same of a case whose points are in several places, by its ranges."""
        far = {name: d for name, d in self._distances(case.spans).items() if d > TOLERANCE}
        return [self._line(name, case.spans[name], far[name]) for name in sorted(far, key=lambda n: -far[n])]

    def _line(self, name: str, span: Span, distance: float) -> str:
        low, high = self.spans[name]
        here = f"{span[0]:.4g}" if span[0] == span[1] else f"{span[0]:.4g} to {span[1]:.4g}"
        return f"{name} is {here}, trained on {low:.4g} to {high:.4g}: {distance:.2g} ranges outside"


def _distance(span: Span, trained: Span) -> float:
    low, high = trained
    unit = high - low or abs(high) or 1.0
    return max(low - span[0], span[1] - high, 0.0) / unit


def _spans(case: PointSet) -> dict[str, Span]:
    """(smallest, largest) of every channel of one case."""
    spans: dict[str, Span] = {}
    names = case.names
    for kind, values, known, labels in (
        ("coordinate", case.x, None, names.coords or "xyz"),
        ("input", case.f, case.f_mask, names.inputs),
        ("parameter", None if case.globals is None else case.globals[None], None, names.globals),
    ):
        if values is None:
            continue
        for i, column in enumerate(values.T):
            seen = column if known is None else column[known[:, i]]
            if len(seen):
                label = _label(labels, i, len(values.T))
                spans[f"{kind} {label}"] = (float(seen.min()), float(seen.max()))
    times = case.times if case.times is not None else case.time
    if times is not None:
        spans["time"] = (float(np.min(times)), float(np.max(times)))
    return spans


def _label(labels: Sequence[str], index: int, count: int) -> str:
    return labels[index] if len(labels) >= count else str(index)
