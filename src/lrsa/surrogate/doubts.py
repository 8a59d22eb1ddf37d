"""What is said of a prediction beside its fields: spread, intervals, quantities of interest, novelty."""

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.objectives.named import Quantity
from lrsa.objectives.quantities import definitions
from lrsa.pointset import PointSet
from lrsa.surrogate.calibration import Calibration
from lrsa.surrogate.ensemble import mean_of
from lrsa.surrogate.novelty import Novelty
from lrsa.surrogate.quantities import user_quantities
from lrsa.surrogate.record import read_config
from lrsa.surrogate.surrogate import Surrogate

SHOWN = 10
"""Cases whose quantities are printed one by one."""


@dataclass(frozen=True)
class Doubts:
    """All that a run knows about the doubts of its predictions."""

    surrogate: Surrogate
    novelty: Novelty | None
    calibration: Calibration | None
    named: Mapping[str, Quantity]
    keys: Mapping[str, str]
    """Of each quantity, how it is spelled."""

    @staticmethod
    def of(run: Path, surrogate: Surrogate) -> "Doubts":
        text = str(read_config(run)["train"].get("quantities", ""))
        keys = {each.name: str(each) for each in definitions(text)}
        return Doubts(surrogate, Novelty.load(run), Calibration.load(run), user_quantities(text), keys)

    def warnings(self, name: str, case: PointSet) -> list[str]:
        """A line where the case is like none of the training cases."""
        if self.novelty is None:
            return []
        score = self.novelty.score(self.surrogate, case)
        if score <= 1:
            return []
        far = "farther from the training cases than any of them is from its nearest"
        return [f"{name}: novelty {score:.2g}: {far}"]

    def fields(self, every: np.ndarray, targets: Sequence[str]) -> dict[str, np.ndarray]:
        """`spread` and, where it is calibrated, `interval` (half the width), of answers (K, ..., N, o)."""
        if len(every) < 2:
            return {}
        made = {"spread": every.std(0, dtype=np.float64)}
        widths = None if self.calibration is None else self.calibration.field_widths(every, targets)
        return made if widths is None else {**made, "interval": widths}

    def quantities(self, case: PointSet, every: np.ndarray) -> tuple[dict[str, float], list[str]]:
        """Each by its name, and half its interval as `NAME, interval` where there is one.

        Beside them what this case cannot be asked for, such as a force where it has no cells: its fields are
        predicted all the same.
        """
        row: dict[str, float] = {}
        refused = []
        for name, quantity in self.named.items():
            try:
                row[name] = quantity(case, mean_of(every))
            except LrsaError as error:
                refused.append(f"{name} is not computed: {error}")
                continue
            if self.calibration is not None:
                values = [quantity(case, answer) for answer in every]
                width = self.calibration.quantity_width(self.keys[name], values)
                row |= {} if math.isnan(width) else {f"{name}, interval": width}
        return row, refused


def quantity_lines(rows: Sequence[Mapping[str, str | float]]) -> Iterator[str]:
    """`wing_012: lift 0.431 ± 0.02, peak 3.1` for each of the first cases."""
    for row in rows[:SHOWN]:
        names = [name for name in row if name != "case" and not name.endswith(", interval")]
        words = [_words(name, row) for name in names]
        yield f"{row['case']}: {', '.join(words)}"
    if len(rows) > SHOWN:
        yield f"... and {len(rows) - SHOWN} cases more"


def write_rows(path: Path, rows: Sequence[Mapping[str, str | float]]) -> None:
    """One line for each case."""
    with atomic(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _words(name: str, row: Mapping[str, str | float]) -> str:
    width = row.get(f"{name}, interval")
    return f"{name} {row[name]:.4g}" + ("" if width is None else f" ± {width:.2g}")
