"""Do the intervals hold? How many test cases lie inside, beside what chance allows for so many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lrsa.pointset import PointSet
from lrsa.surrogate.calibration import SHARE, Calibration

DEFINITIONS = {
    "interval of a field": f"û ± a multiple of the spread of the ensemble; it holds for a case where at least"
    f" {SHARE:.0%} of its points lie inside. The multiple is calibrated on the validation cases (conformal)",
    "coverage": "the share of the test cases for which the interval holds; beside it the range in which 95 %"
    " of such counts lie, were the promised level exact (binomial)",
    "novelty": "distance of the latents of a case to those of the nearest training case, in units of the"
    " largest such distance among the training cases: beyond 1 the model has seen nothing like it",
}


@dataclass(frozen=True)
class Coverage:
    """Of one interval over the test cases."""

    level: float
    """Promised."""
    inside: int
    cases: int
    low: float
    high: float
    """The shares between which 95 % of such samples lie, were the level exact."""
    calibrated_on: int

    @property
    def share(self) -> float:
        return self.inside / self.cases

    def words(self) -> str:
        """`47 of 50 (94 %); 90 % promised, by chance 82 % to 98 %`."""
        return (
            f"{self.inside} of {self.cases} ({self.share:.0%}); {self.level:.0%} promised,"
            f" by chance {self.low:.0%} to {self.high:.0%}"
        )


def coverage(calibration: Calibration, held: Sequence[bool | None]) -> Coverage | None:
    """Of the cases of which it is known whether their interval holds."""
    from scipy.stats import binom  # takes half a second

    known = [bool(one) for one in held if one is not None]
    if not known:
        return None
    low, high = binom.interval(0.95, len(known), calibration.level)
    return Coverage(
        calibration.level,
        sum(known),
        len(known),
        float(low) / len(known),
        float(high) / len(known),
        calibration.cases,
    )


def coverages(
    calibration: Calibration | None, rows: Sequence[Mapping[str, bool | None]]
) -> dict[str, Coverage]:
    """By the name of the field or quantity; `rows` say of each case what holds."""
    if calibration is None:
        return {}
    found = {name: coverage(calibration, [row.get(name) for row in rows]) for name in rows[0]}
    return {name: one for name, one in found.items() if one is not None}


def fields_hold(
    calibration: Calibration | None,
    case: PointSet,
    every: np.ndarray,
    prediction: np.ndarray,
    u: np.ndarray,
    targets: Sequence[str],
) -> dict[str, bool]:
    """Of each field, whether enough of the known points of a case lie inside its interval."""
    widths = None if calibration is None else calibration.field_widths(every, targets)
    if widths is None:
        return {}
    known = np.broadcast_to(True if case.u_mask is None else case.u_mask, u.shape)
    inside = np.abs(prediction.astype(float) - u) <= widths
    shares = {name: inside[..., i][known[..., i]] for i, name in enumerate(targets)}
    return {name: bool(share.mean() >= SHARE) for name, share in shares.items() if share.size}
