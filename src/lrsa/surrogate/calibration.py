"""Intervals that hold: how wide the spread of an ensemble must be made, by cases that nobody trained on.

Split conformal prediction on the validation cases, which are exchangeable with new ones. Each gives a score,
and the interval takes the factor that the share `level` of them needs, with the finite-sample correction ⌈(n
+ 1) level⌉:

    field      ± factor σ(x),  σ(x) = (s(x) + s̄) / 2,  s the deviation of the members, s̄ its mean over the
               case score: what 90 % of the points of a case need; so that it is a promise about cases, not
               about points
    quantity   ± factor (s + floor),  s the deviation of the members, floor its mean over the validation cases
               score: |q̂ - q| / (s + floor); with a single model s = 0 and floor = 1

For a new case the interval holds with probability `level`, whatever the model. (The validation cases also
chose the best epoch, which makes them a little too easy: the test cases tell.) Fewer than nine cases promise
less than 90 %.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.objectives.named import Quantity
from lrsa.objectives.words import labels
from lrsa.pointset import PointSet
from lrsa.surrogate.ensemble import mean_of
from lrsa.surrogate.subsets import answers_of
from lrsa.surrogate.surrogate import Surrogate

FILE = "calibration.json"
LEVEL = 0.9
"""What the intervals promise, where there are cases enough."""
SHARE = 0.9
"""Of the points of a case, those that lie inside where its interval holds."""


@dataclass(frozen=True)
class Calibration:
    """The factors of a run."""

    level: float
    cases: int
    """On how many it rests."""
    fields: Mapping[str, float] = field(default_factory=dict)
    """Empty where there is one member only: it has no spread."""
    quantities: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By definition: factor and floor."""

    def field_widths(self, every: np.ndarray, targets: Sequence[str]) -> np.ndarray | None:
        """(..., N, o) half the interval, of the answers (K, ..., N, o) of the members."""
        if len(every) < 2 or any(name not in self.fields for name in targets):
            return None
        return scale_of(every) * np.array([self.fields[name] for name in targets])

    def quantity_width(self, key: str, values: Sequence[float]) -> float:
        """Half the interval of a quantity, of its values for all members; NaN where it was not calibrated."""
        if key not in self.quantities:
            return math.nan
        factor, floor = self.quantities[key]
        return factor * (deviation(values) + floor)

    def save(self, run: Path) -> None:
        with atomic(run / FILE) as temporary:
            temporary.write_text(json.dumps(asdict(self), indent=1))

    @staticmethod
    def load(run: Path) -> "Calibration | None":
        """That of a run; None where it has none."""
        path = run / FILE
        if not path.exists():
            return None
        try:
            values = json.loads(path.read_text())
            return Calibration(
                float(values["level"]),
                int(values["cases"]),
                {str(k): float(v) for k, v in values["fields"].items()},
                {str(k): (float(a), float(b)) for k, (a, b) in values["quantities"].items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LrsaError(f"{path} is damaged: delete it, and it is computed again") from error


def calibrate(
    surrogate: Surrogate,
    cases: Sequence[PointSet],
    quantities: Mapping[str, Quantity],
    subsets: int | None = None,
) -> Calibration | None:
    """Of these cases, which must not have been trained on; None where there are none.

    Asked for by `subsets` of so many points where an evaluation does so.
    """
    if not len(cases):
        return None
    fields: dict[str, list[float]] = {}
    rows: dict[str, list[tuple[float, float]]] = {key: [] for key in quantities}
    for case in cases:
        every = answers_of(surrogate, case, subsets)
        u = surrogate.protocol.target(case)
        names = labels(surrogate.schema.names.targets, u.shape[-1])
        if len(every) > 1:
            for name, score in zip(names, field_scores(every, u, case.u_mask), strict=True):
                fields.setdefault(name, []).append(score)
        for key, quantity in quantities.items():
            values = [quantity(case, answer) for answer in every]
            miss = abs(quantity(case, mean_of(every)) - quantity(case, u))
            rows[key].append((miss, deviation(values)))
    level, rank = promised(len(cases))
    return Calibration(
        level,
        len(cases),
        {name: float(np.sort(scores)[rank]) for name, scores in fields.items()},
        {key: _factor(found, rank) for key, found in rows.items()},
    )


def promised(cases: int) -> tuple[float, int]:
    """The level that so many cases can promise, and which of their sorted scores does."""
    rank = math.ceil((cases + 1) * LEVEL)
    return (LEVEL, rank - 1) if rank <= cases else (cases / (cases + 1), cases - 1)


def field_scores(every: np.ndarray, u: np.ndarray, known: np.ndarray | None) -> list[float]:
    """Of each field (K, ..., N, o): the factor that the share of its known points needs."""
    miss, scale = np.abs(mean_of(every).astype(float) - u), scale_of(every)
    counted = np.broadcast_to(True if known is None else known, u.shape)
    scores = []
    for channel in range(u.shape[-1]):
        mine = counted[..., channel]
        needed = miss[..., channel][mine] / np.maximum(scale[..., channel][mine], 1e-30)
        scores.append(float(np.quantile(needed, SHARE)) if needed.size else 0.0)
    return scores


def scale_of(every: np.ndarray) -> np.ndarray:
    """(K, ..., N, o) -> (..., N, o) σ: half the deviation of the members, half its mean over the case."""
    spread = every.std(0, dtype=np.float64)
    axes = tuple(range(spread.ndim - 1))
    return (spread + spread.mean(axes)) / 2


def deviation(values: Sequence[float]) -> float:
    """Of a quantity over the members."""
    return float(np.std(values))


def _factor(rows: Sequence[tuple[float, float]], rank: int) -> tuple[float, float]:
    misses, spreads = np.array(rows).T
    floor = float(spreads.mean()) or 1.0
    return float(np.sort(misses / (spreads + floor))[rank]), floor
