"""What a training cost: parameters, steps, time; a table for each problem."""

from collections.abc import Mapping, Sequence

from lrsa.experiments.cells import Cell
from lrsa.experiments.page import Grid, Section, Value, number

Group = Sequence[tuple[str, Cell]]
"""The rows of a problem that are measured."""


def seconds_of(cell: Cell, group: Group) -> float | None:
    """Of the training: its steps, in units of LRSA's step, at the pace of LRSA in this group.

    In half precision LRSA's step is one in half precision, too: there the time is what was measured.
    """
    if cell.step is not None and cell.steps and cell.configuration["train"]["precision"] != "fp32":
        return cell.steps * cell.step["model"]
    paces = [(c.model != "lrsa", c.step["lrsa"]) for _, c in group if c.step is not None]
    if not paces or cell.ratio is None or cell.steps is None:
        return None
    return cell.steps * cell.ratio * min(paces)[1]


def details(groups: Mapping[str, Group]) -> Section | None:
    """Every training of every problem, the best first."""
    grids = [
        Grid(
            ["", "test relative L2", "parameters", "steps", "step / LRSA's", "training, s", "waiting"],
            [(label, _row(cell, group)) for label, cell in sorted(group, key=_error)],
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


def _row(cell: Cell, group: Group) -> list[Value]:
    seconds = seconds_of(cell, group)
    words = [
        number(cell.relative_l2),
        f"{cell.parameters:,}",
        f"{cell.steps:,}",
        "" if cell.ratio is None else f"{cell.ratio:.2f}",
        "" if seconds is None else f"{seconds:.0f}",
        "" if cell.waiting is None else f"{cell.waiting:.1%}",
    ]
    return [Value(word) for word in words]
