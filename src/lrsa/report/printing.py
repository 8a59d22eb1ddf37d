"""An evaluation in words and tables, for the console."""

import math
from pathlib import Path

from rich.table import Column, Table

from lrsa.console import console
from lrsa.evaluation.outcome import Evaluation
from lrsa.evaluation.quantities import DEFINITIONS as QUANTITIES
from lrsa.evaluation.verdict import verdict
from lrsa.objectives.metrics import DEFINITIONS, LABELS
from lrsa.pointset import stride_name
from lrsa.problems.catalogue import CATALOGUE
from lrsa.surrogate.record import unfinished
from lrsa.training.config import RunConfig

WORST = 5
"""Cases that are listed by name."""

QUANTITY_HEAD = ("quantity", *QUANTITIES)

PAPER = "the paper's LRSA, official data, paper scale"


def print_evaluation(run: Path, evaluation: Evaluation) -> None:
    """The headline beside the null baselines, then per field, the worst cases, other samplings."""
    about = f"{evaluation.cases} test cases of {evaluation.points} points{evaluation.sampled}"
    console.print(f"{run}: {about}, {evaluation.data} ({evaluation.source})")
    config = RunConfig.load(run)
    for table in tables(config, evaluation):
        console.print(table)
    if (found := verdict(config, evaluation)) is not None:
        console.print(
            f"test relative L2 {number(evaluation.relative_l2)}: {found.text[0].lower()}{found.text[1:]}"
        )
        if found.cure:
            console.print(found.cure)
    for line in unfinished(run):
        console.print(line)


def summary_rows(config: RunConfig, evaluation: Evaluation) -> list[tuple[str, str]]:
    """The headline: test error beside what knows nothing."""
    if not evaluation.fields:
        return [("test relative L2", "unknown: these cases have no truth")]
    rows = [("test relative L2", number(evaluation.relative_l2))]
    rows += [(f"null baseline: {name}", number(value)) for name, value in evaluation.nulls.items()]
    printed = paper_error(config)
    return rows if printed is None else [*rows, (PAPER, number(printed))]


def paper_error(config: RunConfig) -> float | None:
    """What the paper prints for LRSA on the problem of this run, where it is one and is printed."""
    problem = CATALOGUE.get(config.schema.name)
    return None if problem is None or config.scale is None else problem.paper_error


def tables(config: RunConfig, evaluation: Evaluation) -> list[Table]:
    """What `lrsa evaluate` prints."""
    summary = Table(show_header=False)
    for name, value in summary_rows(config, evaluation):
        summary.add_row(name, value)
    made = [summary]
    if evaluation.fields:
        made += [*_fields(evaluation), *_named(evaluation), *_quantities(evaluation), *_coverage(evaluation)]
        made.append(_worst(evaluation))
    if evaluation.samplings:
        table = Table("stride", "points", "relative L2", "self-consistency", title="At other samplings")
        for s in evaluation.samplings:
            table.add_row(stride_name(s.stride), s.points, number(s.relative_l2), number(s.self_consistency))
        made.append(table)
    return made


def number(value: float, digits: int = 4) -> str:
    """`0.0361`; a dash where there is none."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}" if 1e-4 <= abs(value) < 1e4 else f"{value:.3g}"


def _fields(evaluation: Evaluation) -> list[Table]:
    table = Table("field", *LABELS.values(), title="Per field, means over cases")
    for name, metrics in evaluation.fields.items():
        table.add_row(name, *("-" if math.isnan(metrics[k]) else f"{metrics[k]:.4g}" for k in DEFINITIONS))
    if len(evaluation.fields) == 1:
        return [table]
    beside = Table("field", "surrogate", *evaluation.nulls, title="Relative L2 per field")
    for name, nulls in evaluation.null_fields.items():
        beside.add_row(name, number(evaluation.fields[name]["relative_l2"]), *map(number, nulls.values()))
    return [table, beside]


def _named(evaluation: Evaluation) -> list[Table]:
    table = Table("metric", "over all cases", title="As named")
    for name, value in evaluation.metrics.items():
        table.add_row(name, number(value))
    return [table] if evaluation.metrics else []


def quantity_rows(evaluation: Evaluation) -> list[list[str]]:
    """One row for each quantity: mean absolute and relative error, rank correlation, best null, interval."""
    rows = []
    for name, errors in evaluation.quantities.items():
        best = min(errors.nulls.items(), key=lambda item: item[1], default=("", math.nan))
        null = f"{number(best[1])} ({best[0]})" if best[0] else "-"
        measured = (errors.mean_absolute, errors.relative, errors.spearman)
        width = "-" if math.isnan(errors.width) else f"± {number(errors.width)}"
        rows.append([name, *map(number, measured), null, width])
    return rows


def _quantities(evaluation: Evaluation) -> list[Table]:
    table = Table(*QUANTITY_HEAD, title="Quantities of interest")
    for row in quantity_rows(evaluation):
        table.add_row(*row)
    return [table] if evaluation.quantities else []


def _coverage(evaluation: Evaluation) -> list[Table]:
    members = f", {evaluation.members} members" if evaluation.members > 1 else ""
    table = Table("interval of", "test cases for which it holds", title=f"Intervals{members}")
    for name, found in evaluation.coverage.items():
        table.add_row(name, found.words())
    return [table] if evaluation.coverage else []


def _worst(evaluation: Evaluation) -> Table:
    """Of the fields that of the largest relative L2: several would leave no room for names and numbers."""
    rows = evaluation.worst(WORST)
    known = any(not math.isnan(row.novelty) for row in rows)
    table = Table(Column("case", overflow="fold"))
    for head in ("points", "relative L2", *(["novelty"] if known else [])):
        table.add_column(head, no_wrap=True)
    table.add_column("worst field", overflow="fold")
    table.add_column("its max error", no_wrap=True)
    table.title = "The worst case" if len(rows) == 1 else f"The {len(rows)} worst cases"
    for row in rows:
        novelty = [f"{row.novelty:.2g}"] if known else []
        errors = {name: metrics["relative_l2"] for name, metrics in row.fields.items()}
        worst = max(errors, key=lambda name: (not math.isnan(errors[name]), errors[name]))
        largest = f"{row.fields[worst]['max_error']:.4g}"
        table.add_row(row.name, str(row.points), number(row.relative_l2), *novelty, worst, largest)
    return table
