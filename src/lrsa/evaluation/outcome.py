"""The outcome of an evaluation, and the files it is kept in."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lrsa.evaluation.quantities import CaseQuantity, QuantityErrors
from lrsa.evaluation.uncertainty import Coverage
from lrsa.files import atomic
from lrsa.pointset import Stride, stride_name
from lrsa.surrogate.surrogate import Epoch


@dataclass(frozen=True)
class CaseErrors:
    """What is known about one case; the numbers that need the truth are missing where there is none."""

    name: str
    points: int
    relative_l2: float = math.nan
    fields: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """field -> metric -> value."""
    nulls: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """baseline -> field, and "" for all fields together -> relative L2."""
    strides: Mapping[Stride, tuple[int, float, float]] = field(default_factory=dict)
    """stride -> (points, relative L2, self-consistency)."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """What this case contributes to each metric that was named."""
    quantities: Mapping[str, CaseQuantity] = field(default_factory=dict)
    """Those of interest, by name."""
    holds: Mapping[str, bool] = field(default_factory=dict)
    """Field -> whether its calibrated interval does."""
    novelty: float = math.nan
    """How far it lies from the training cases; NaN where nobody can tell."""


@dataclass(frozen=True)
class Sampling:
    """Means over cases at one stride."""

    stride: Stride
    points: str
    relative_l2: float
    self_consistency: float


@dataclass(frozen=True)
class Evaluation:
    """The errors of one surrogate on one set of cases."""

    data: str
    source: str
    path: str
    """The file of the cases."""
    stride: Stride
    """Every so-many-th point along each axis; the numbers below are at this sampling."""
    cases: int
    points: str
    epoch: Epoch
    """Of which the weights are: the best by validation, or the last."""
    relative_l2: float
    """Mean over cases; NaN where there is no truth."""
    nulls: dict[str, float]
    """The same for each null baseline."""
    per_case: list[float]
    fields: dict[str, dict[str, float]]
    """field -> metric -> mean over cases."""
    null_fields: dict[str, dict[str, float]]
    """field -> null baseline -> mean relative L2 over cases."""
    table: list[CaseErrors]
    samplings: list[Sampling]
    """At every stride that was asked for."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Those that the problem or the user named, over all cases."""
    subsets: int | None = None
    """Points of the random subsets over which predictions are averaged; None: of all points at once."""
    quantities: dict[str, QuantityErrors] = field(default_factory=dict)
    """Those of interest, by name."""
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """Of the intervals of fields and quantities."""
    members: int = 1
    """Of the ensemble."""

    @property
    def sampled(self) -> str:
        """How the points were asked for, to be put behind their number."""
        return "" if self.subsets is None else f" (means over random subsets of {self.subsets})"

    def worst(self, count: int) -> list[CaseErrors]:
        """The cases of the largest relative L2, worst first."""
        known = [row for row in self.table if not math.isnan(row.relative_l2)]
        return sorted(known, key=lambda row: -row.relative_l2)[:count]

    def save(self, path: Path) -> None:
        """The numbers as JSON, and beside it one row for each case as CSV."""
        with atomic(path) as temporary:
            temporary.write_text(json.dumps(_without_nan(asdict(self)), indent=1, allow_nan=False))
        rows = [_flat(row) for row in self.table]
        with atomic(path.with_suffix(".csv")) as temporary, open(temporary, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def point_range(values: Sequence[int]) -> str:
    """`484`, or `310 to 1204`."""
    return str(values[0]) if len(set(values)) == 1 else f"{min(values)} to {max(values)}"


def _flat(row: CaseErrors) -> dict[str, Any]:
    flat: dict[str, Any] = {"case": row.name, "points": row.points, "relative_l2": row.relative_l2}
    flat |= {f"{null}: relative_l2": values[""] for null, values in row.nulls.items()}
    flat |= {f"{name}: {k}": v for name, values in row.fields.items() for k, v in values.items()}
    flat |= row.metrics
    for name, found in row.quantities.items():
        flat |= {name: found.predicted, f"{name}, true": found.true, f"{name}, interval": found.width}
    flat |= {f"{name}: interval holds": int(held) for name, held in row.holds.items()}
    flat |= {} if math.isnan(row.novelty) else {"novelty": row.novelty}
    for each, (points, error, distance) in row.strides.items():
        stride = stride_name(each)
        flat |= {
            f"stride {stride}: points": points,
            f"stride {stride}: relative_l2": error,
            f"stride {stride}: self_consistency": distance,
        }
    return {k: "" if isinstance(v, float) and math.isnan(v) else v for k, v in flat.items()}


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: what is not defined is null."""
    if isinstance(value, dict):
        return {_key(k): _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _key(name: Any) -> str:
    return stride_name(name) if isinstance(name, tuple) else str(name)
