"""What a training cost: parameters, steps, time; a table for each problem."""

from collections.abc import Mapping, Sequence

from lrsa.experiments.cells import Cell
from lrsa.experiments.page import Grid, Section, Value, number

Group = Sequence[tuple[str, Cell]]
"""The rows of a problem that are measured."""


def paces(groups: Mapping[str, Group]) -> dict[str, float]:
    """Problem -> seconds of LRSA's step: the fastest that was measured beside any of these rows.

    Those beside LRSA itself come first: others may have been measured on a busier machine.
    """
    measured = {
        problem: [(cell.model != "lrsa", cell.step["lrsa"]) for _, cell in group if cell.step is not None]
        for problem, group in groups.items()
    }
    return {problem: min(found)[1] for problem, found in measured.items() if found}


def seconds_of(cell: Cell, pace: float | None) -> float | None:
    """Of the training: its steps, in units of LRSA's step, at this pace of LRSA.

    In half precision LRSA's step is one in half precision, too: there the time is what was measured.
    """
    if cell.step is not None and cell.steps and cell.configuration["train"]["precision"] != "fp32":
        return cell.steps * cell.step["model"]
    return (
        None if pace is None or cell.ratio is None or cell.steps is None else cell.steps * cell.ratio * pace
    )


def details(groups: Mapping[str, Group], pace: Mapping[str, float]) -> Section | None:
    """Every training of every problem, the best first."""
    grids = [
        Grid(
            ["", "test relative L2", "parameters", "steps", "step / LRSA's", "training, s", "waiting"],
            [(label, _row(cell, pace.get(problem))) for label, cell in sorted(group, key=_error)],
            title=f"{problem}: parameters and time",
            folded=True,
        )
        for problem, group in groups.items()
        if group
    ]
    if not grids:
        return None
    text = (
        "A step is the time of one training step divided by LRSA's, the two taking turns in one process, the"
        " fastest of five each; *training* is the number of steps times that ratio times LRSA's step on this"
        " page: times are to be compared within it."
        " Waiting is the share of the training steps in which the model waited for its batch."
    )
    return Section("What the trainings cost", [text.replace("*", "")], grids)


def _error(pair: tuple[str, Cell]) -> float:
    return pair[1].relative_l2 or 0.0


def _row(cell: Cell, pace: float | None) -> list[Value]:
    seconds = seconds_of(cell, pace)
    words = [
        number(cell.relative_l2),
        f"{cell.parameters:,}",
        f"{cell.steps:,}",
        "" if cell.ratio is None else f"{cell.ratio:.2f}",
        "" if seconds is None else f"{seconds:.0f}",
        "" if cell.waiting is None else f"{cell.waiting:.1%}",
    ]
    return [Value(word) for word in words]
