"""`lrsa reproduce`: the tables and figures of the paper, made anew."""

from pathlib import Path
from typing import Literal

from lrsa.cli.checking import at_least


def reproduce(
    what: Literal["table-standard", "figure-lowrank"],
    /,
    scale: Literal["demo", "cpu", "paper"] = "cpu",
    only: str = "",
    runs: Path = Path("runs/reproduce"),
    threads: int = 1,
    out: Path = Path("results"),
) -> None:
    """Make a table or figure of the paper anew; stopped, a table goes on where it was.

    Args:
        what: table-standard: every model on every benchmark it accepts, one training each. figure-lowrank:
            the Green's function of 1-D Poisson and its low rank (figure 1).
        scale: Of the trainings of a table.
        only: Of a table, MODEL:BENCHMARK; either may be left out, several are separated by commas.
        runs: The folder for the trainings of a table.
        threads: CPU threads of each training.
        out: The folder for pictures and numbers.
    """
    from lrsa.console import console

    if what == "figure-lowrank":
        from lrsa.experiments.figure_lowrank import figure_lowrank

        made = figure_lowrank(out)
    else:
        from lrsa.experiments.table_standard import table_standard

        at_least(1, threads=threads)
        made = table_standard(out, scale, only, runs, threads)
    console.print(f"{what}: {made}")
