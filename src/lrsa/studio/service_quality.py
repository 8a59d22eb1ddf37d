"""What the service says of the worth of a surrogate: its test errors, never without the null baselines."""

import json
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

FILE = "evaluation.json"
"""Of a run, where it was evaluated."""


class QuantityQuality(BaseModel):
    """The error of a quantity of interest over the test cases."""

    definition: str = Field(description="As `--quantity` spells it")
    mean_absolute: float | None
    relative: float | None = Field(description="Σ |q̂ - q| / Σ |q|")
    spearman: float | None = Field(description="Rank correlation of q̂ and q")
    width: float | None = Field(description="Mean half width of the calibrated intervals")
    nulls: dict[str, float | None] = Field(description="Mean absolute error of each null baseline")


class CoverageQuality(BaseModel):
    """For how many test cases an interval holds."""

    level: float = Field(description="Promised")
    inside: int
    cases: int
    low: float = Field(description="95 % of such shares lie from here, were the promise exact,")
    high: float = Field(description="to here")


class Quality(BaseModel):
    """The errors on test cases, beside rules that know next to nothing."""

    data: str
    cases: int
    relative_l2: float | None
    nulls: dict[str, float | None] = Field(description="The same of each null baseline")
    quantities: dict[str, QuantityQuality]
    coverage: dict[str, CoverageQuality] = Field(description="Of the intervals of fields and quantities")

    @staticmethod
    def of(run: Path) -> "Quality | None":
        """As the run was evaluated last; None where it was not."""
        try:
            found: dict[str, Any] = json.loads((run / FILE).read_text())
            return Quality(**{name: found[name] for name in Quality.model_fields})
        except (OSError, ValueError, KeyError, TypeError):  # not there, or of another version
            return None


class QuantityAnswer(BaseModel):
    """A quantity of interest of a case."""

    value: float | None = Field(description="None where it is not defined")
    interval: float | None = Field(None, description="Half the width of the calibrated interval")


def quantity_answers(row: dict[str, float]) -> dict[str, QuantityAnswer]:
    """`{"lift": 0.4, "lift, interval": 0.1}` by name."""
    known = {name: value if math.isfinite(value) else None for name, value in row.items()}
    names = [name for name in row if not name.endswith(", interval")]
    return {n: QuantityAnswer(value=known[n], interval=known.get(f"{n}, interval")) for n in names}
