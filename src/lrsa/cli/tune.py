"""`lrsa tune`."""

from pathlib import Path

from lrsa.cli.checking import at_least


def tune(
    data: str,
    /,
    minutes: float = 30.0,
    out: Path | None = None,
    seed: int = 0,
    device: str = "cpu",
    threads: int | None = None,
) -> None:
    """Try several models and settings on your own data, then train the best of them.

    Three fifths of the time go to trials: all candidates for a short while, the best third of them for more.
    In less than about three minutes there is time for the first candidates only.
    What counts is their error on training cases that are kept back; the test cases are not looked at before
    the end. The winner is trained for what is left. The same command goes on after an interruption.

    Args:
        data: A data set of your own, as `lrsa data import` makes it.
        minutes: The time that all of it may take.
        out: The run folder of the winner; the trials are in it (default: runs/DATA-tuned).
        seed: Of the initial weights, the order of the cases and the choice of the validation cases.
        device: cpu, cuda, ...
        threads: CPU threads (default: torch's choice).
    """
    from rich.table import Table

    from lrsa.cli.train import check_folder, finish
    from lrsa.console import console
    from lrsa.evaluation.null import held_out_errors
    from lrsa.report.printing import number
    from lrsa.training.config import RunConfig
    from lrsa.training.tune import table, trial_folder, tune

    check_folder(data)
    at_least(0, seed=seed)
    run = out or Path("runs") / f"{Path(data).stem}-tuned"
    tuning, standing = tune(data, minutes, run, seed, device, threads)
    rows = table(tuning)
    shown = Table("candidate", "model", *(f"round {i + 1}" for i in range(len(rows[0]) - 2)))
    shown.title = "Validation relative L2, and the time it took"
    for row in rows:
        shown.add_row(*row)
    config = RunConfig.load(trial_folder(run, tuning.ranked(1)[0].name, 1))
    for name, error in held_out_errors(config).items():
        shown.add_row(name, "null baseline", number(error))
    console.print(shown)
    finish(run, standing)
