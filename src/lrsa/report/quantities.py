"""The part of the report about quantities of interest and intervals."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.evaluation.outcome import Evaluation
from lrsa.evaluation.quantities import DEFINITIONS as QUANTITIES
from lrsa.evaluation.uncertainty import DEFINITIONS as INTERVALS
from lrsa.objectives.named import spearman
from lrsa.report import page
from lrsa.report.figures import draw_parity
from lrsa.report.printing import QUANTITY_HEAD, quantity_rows


def section(run: Path, evaluation: Evaluation) -> dict[str, Any] | None:
    """Tables and parity plots; None where there is nothing to say."""
    if not evaluation.quantities and not evaluation.coverage and not _novelty(evaluation):
        return None
    tables = []
    if evaluation.quantities:
        tables.append(page.Table(QUANTITY_HEAD, quantity_rows(evaluation)))
    if evaluation.coverage:
        head = ["interval of", "holds for", "promised", "by chance", "calibrated on"]
        rows = [
            [
                name,
                f"{c.inside} of {c.cases} test cases",
                f"{c.level:.0%}",
                f"{c.low:.0%} to {c.high:.0%}",
                f"{c.calibrated_on} cases",
            ]
            for name, c in evaluation.coverage.items()
        ]
        tables.append(page.Table(head, rows))
    return {
        "tables": tables,
        "charts": [_parity(run, evaluation, i, name) for i, name in enumerate(evaluation.quantities)],
        "words": _novelty(evaluation),
    }


def definitions(evaluation: Evaluation) -> list[tuple[str, str]]:
    """What the numbers of the section mean."""
    rows = [(name, errors.definition) for name, errors in evaluation.quantities.items()]
    rows += list(QUANTITIES.items()) if evaluation.quantities else []
    return rows + (list(INTERVALS.items()) if evaluation.coverage or _novelty(evaluation) else [])


def _parity(run: Path, evaluation: Evaluation, index: int, name: str) -> page.Image:
    found = [row.quantities[name] for row in evaluation.table]
    true, predicted, widths = (
        np.array([getattr(q, k) for q in found]) for k in ("true", "predicted", "width")
    )
    path = run / "figures" / f"quantity-{index}.png"
    draw_parity(path, true, predicted, None if np.isnan(widths).all() else widths, name)
    bars = "" if np.isnan(widths).all() else "; the bars are the calibrated intervals"
    return page.chart(path, f"predicted against true {name}", f"{name} of every test case{bars}.")


def _novelty(evaluation: Evaluation) -> str:
    """How the novelty of the test cases goes with their errors."""
    rows = [r for r in evaluation.table if not math.isnan(r.novelty) and not math.isnan(r.relative_l2)]
    if len(rows) < 3:
        return ""
    scores, errors = (np.array([getattr(row, k) for row in rows]) for k in ("novelty", "relative_l2"))
    together = spearman(scores, errors)
    beyond = int((scores > 1).sum())
    return (
        f"Novelty of the test cases: {scores.min():.2g} to {scores.max():.2g},"
        f" {beyond} of {len(rows)} beyond 1. Its rank correlation with the error is {together:.2f}."
    )
