"""The errors of the quantities of interest: per case beside the truth, the null baselines and the
interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from lrsa.objectives.metrics import mean_of
from lrsa.objectives.named import OF_QUANTITIES, Metric, Quantity, spearman
from lrsa.objectives.quantities import definitions
from lrsa.pointset import PointSet
from lrsa.surrogate.calibration import Calibration
from lrsa.surrogate.ensemble import mean_of as mean_over_members
from lrsa.surrogate.quantities import keyed_quantities, user_quantities
from lrsa.surrogate.surrogate import Surrogate
from lrsa.training.config import RunConfig
from lrsa.training.finish import calibrated

DEFINITIONS = {
    "mean absolute error": "mean of |q̂ - q| over the test cases, in the unit of the quantity",
    "relative error": "Σ |q̂ - q| / Σ |q| over the test cases, for quantities that change their sign, too",
    "rank correlation": "Spearman's, of q̂ and q over the test cases: 1 where all are in the right order",
    "best null baseline": "the smallest mean absolute error that a null baseline has on the quantity",
    "interval": "mean half width of q̂ ± ..., calibrated on the validation cases (conformal)",
}


@dataclass(frozen=True)
class CaseQuantity:
    """A quantity of one case."""

    predicted: float
    true: float
    width: float = math.nan
    """Half the calibrated interval."""
    nulls: Mapping[str, float] = field(default_factory=dict)

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds; None where there is none."""
        if math.isnan(self.width) or math.isnan(self.true):
            return None
        return abs(self.predicted - self.true) <= self.width


@dataclass(frozen=True)
class QuantityErrors:
    """Over all cases."""

    definition: str
    mean_absolute: float
    relative: float
    spearman: float
    width: float
    """Mean half width of the intervals; NaN where there are none."""
    nulls: dict[str, float]
    """Mean absolute error of each null baseline."""

    @staticmethod
    def of(definition: str, rows: Sequence[CaseQuantity]) -> "QuantityErrors":
        predicted, true = (np.array([getattr(row, k) for row in rows]) for k in ("predicted", "true"))
        misses, size = np.abs(predicted - true), np.abs(true).sum()
        return QuantityErrors(
            definition,
            mean_of(misses),
            float(misses.sum() / size) if size else math.nan,
            spearman(predicted, true),
            mean_of(row.width for row in rows),
            {name: mean_of(abs(row.nulls[name] - row.true) for row in rows) for name in rows[0].nulls},
        )


@dataclass(frozen=True)
class Meter:
    """Measures all quantities of one case."""

    quantities: Mapping[str, Quantity]
    definitions: Mapping[str, str]
    """By name, as they are spelled."""
    calibration: Calibration | None

    @staticmethod
    def of(
        run: Path, config: RunConfig, surrogate: Surrogate, text: str, named: Sequence[Metric], case: PointSet
    ) -> "Meter":
        """For the user's quantities, and those of the problem that its metrics name."""
        made = user_quantities(text, case)
        words = {each.name: str(each) for each in definitions(text)}
        theirs = {m.quantity.name: m.quantities[m.quantity.name] for m in named if _of_problem(m, words)}
        calibration = Calibration.load(run)
        known = {} if calibration is None else calibration.quantities
        # A problem's own alone are no reason to look at the validation cases again.
        wanted = {**({} if calibration is None else theirs), **keyed_quantities(text)}
        if missing := {key: quantity for key, quantity in wanted.items() if key not in known}:
            extra = calibrated(config, surrogate, missing)
            if extra is not None:
                base = extra if calibration is None else calibration
                calibration = replace(base, quantities={**known, **extra.quantities})
        return Meter({**theirs, **made}, {**{name: name for name in theirs}, **words}, calibration)

    def measure(
        self, case: PointSet, every: np.ndarray, u: np.ndarray, nulls: Mapping[str, np.ndarray]
    ) -> dict[str, CaseQuantity]:
        """Of the answers (K, ..., N, o) of the members and the truth (..., N, o)."""
        found = {}
        for name, quantity in self.quantities.items():
            values = [quantity(case, answer) for answer in every] if len(every) > 1 else [0.0]
            key, width = self.definitions[name], math.nan
            if self.calibration is not None:
                width = self.calibration.quantity_width(key, values)
            predicted, true = (quantity(case, v) for v in (mean_over_members(every), u))
            found[name] = CaseQuantity(
                predicted, true, width, {k: quantity(case, np.asarray(v)) for k, v in nulls.items()}
            )
        return found


def _of_problem(metric: Metric, words: Mapping[str, str]) -> bool:
    return (
        metric.word.name in OF_QUANTITIES
        and metric.quantity.name in metric.quantities
        and metric.quantity.name not in words
    )
