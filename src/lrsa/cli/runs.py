"""`lrsa evaluate`, `inspect` and `report`: what a trained surrogate is worth, and why."""

import os
from pathlib import Path
from typing import Literal

from lrsa.cli.checking import at_least
from lrsa.errors import LrsaError


def evaluate(
    run: Path,
    /,
    data: str | None = None,
    stride: str | None = None,
    epoch: Literal["best", "last"] = "best",
    metrics: str | None = None,
    quantity: str | None = None,
) -> None:
    """Print the errors of a trained surrogate on its test cases, beside the null baselines.

    The table of all cases and fields goes to evaluation.csv in the run folder; under a longer name, with the
    data, the epoch and the stride in it, where these are not those of the run.

    Args:
        run: The run folder.
        data: Other data of the same kind, a benchmark or a file (default: that of the run).
        stride: Every so-many-th point along each axis, or 2x1 for one number per axis; several, such as
            1,2,4, give the error and the self-consistency at each (default: as trained).
        epoch: The best one by validation, or the last.
        metrics: Further ones, such as gradient or mse:p@surface, separated by commas (default: as trained).
        quantity: Numbers of the whole case, such as peak=max:p or drag=force:p@car; may be repeated
            (default: as trained).
    """
    from lrsa.console import console
    from lrsa.evaluation.evaluate import evaluate, parse_strides
    from lrsa.report.printing import print_evaluation

    outcome = evaluate(run, data, parse_strides(stride), epoch, metrics, quantity)
    # What is not the run's own test error does not take its place.
    others = [Path(data).stem if data else "", "last" if epoch == "last" else "", stride or ""]
    path = run / f"{'-'.join(['evaluation', *filter(None, others)])}.json"
    if kept := os.access(run, os.W_OK):
        outcome.save(path)
    print_evaluation(run, outcome)
    if not kept:
        console.print(f"{run} cannot be written: these numbers are not kept in {path.name}")


def inspect(run: Path, /, case: int = 0, stride: int | None = None) -> None:
    """Look inside a trained model: effective rank of every layer, maps of the latents, where the time goes.

    Args:
        run: The run folder.
        case: The test case to look at.
        stride: Every so-many-th point along each axis (default: as trained).
    """
    from lrsa.analysis.inspect import inspect_run
    from lrsa.console import bar, console
    from lrsa.report.inspect_figures import draw_inspection
    from lrsa.report.inspect_tables import print_inspection

    at_least(1, stride=stride)
    with bar("Inspecting") as report:
        inspection = inspect_run(run, case=case, stride=stride, progress=report)
    print_inspection(inspection)
    for path in draw_inspection(inspection, run / "figures"):
        console.print(f"picture: {path}")


def report(run: Path, /, stride: str | None = None, quantity: str | None = None, up: str = "auto") -> None:
    """Write one HTML file that opens offline: numbers, pictures, definitions, provenance.

    Args:
        run: The run folder.
        stride: Samplings to compare, such as 1,2,4 (default: as trained).
        quantity: Numbers of the whole case, such as peak=max:p; may be repeated (default: as trained).
        up: The axis that points upwards in pictures of bodies in space: x, y, z, or auto to find it.
    """
    from lrsa.console import console
    from lrsa.evaluation.evaluate import evaluate, parse_strides
    from lrsa.report.axes import choose_up
    from lrsa.report.report import write_report

    choose_up(up)
    if run.is_dir() and not os.access(run, os.W_OK):
        raise LrsaError(
            f"{run} cannot be written, and its report belongs there. Copy the run, and report that"
        )
    evaluation = evaluate(run, stride=parse_strides(stride), quantities=quantity)
    console.print(f"report: {write_report(run, evaluation)}")
