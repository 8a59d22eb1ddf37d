"""`lrsa models`, `train` and `resume`."""

from pathlib import Path
from typing import Any, Literal

from lrsa.errors import LrsaError


def models() -> None:
    """List the models: paper, what data they take, parameters at their default options, published presets."""
    from lrsa.console import console
    from lrsa.models.listing import as_table, list_models

    console.print(as_table(list_models()))


def train(
    data: str,
    /,
    source: Literal["generated", "official"] = "generated",
    scale: Literal["demo", "cpu", "paper"] | None = None,
    recipe: Literal["ours", "paper"] | None = None,
    minutes: float | None = None,
    out: Path | None = None,
    init: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    weights: bool = True,
    matched: bool = False,
    *,
    chosen: str,
    model: dict[str, Any],
    train: dict[str, Any],
) -> None:
    """Train a model and report its error beside the null baselines.

    Args:
        data: A benchmark of `lrsa data list`, or a file.
        source: The data of a benchmark: made by its solver, or its official files, once imported.
        scale: Size of a benchmark's run (default: cpu).
        recipe: ours (Muon on the hidden matrices), or paper: AdamW as printed (default: ours, but at the
            scale paper).
        minutes: The time that the training may take; the number of its steps follows (default: as many epochs
            as the scale says).
        out: The run folder (default: runs/DATA-MODEL).
        init: A run whose weights to start from, or the name of a surrogate that comes with lrsa.
        device: cpu, cuda, ...
        threads: CPU threads (default: torch's choice).
        weights: Use the quadrature weights of the points, where the data has them; points of weight 0 only
            read then.
        matched: Choose the width that gives the model as many parameters as LRSA would have here.
        chosen: The model.
        model: Its options.
        train: Options of the training.
    """
    from lrsa.training.fit import prepare, train_run

    settings = train if weights else {**train, "weights": False}
    settings = settings if minutes is None else {**settings, "minutes": minutes}
    run = prepare(
        data,
        chosen,
        source=source,
        scale=scale,
        recipe=recipe,
        out=out,
        init=init,
        device=device,
        threads=threads,
        options=model,
        train=settings,
        matched=matched,
    )
    finish(run, train_run(run))


def resume(run: Path, /) -> None:
    """Go on with an interrupted training; it ends as if it had never stopped.

    Args:
        run: The run folder.
    """
    from lrsa.training.fit import train_run

    finish(run, train_run(run))


def call_train(words: list[str]) -> None:
    """`lrsa train` with what was typed after it: its options depend on the model that is named among them."""
    from lrsa.cli.parsing import call, rows_of_model, rows_of_training
    from lrsa.models.registry import names

    chosen, words = model_name(words)
    note = (
        f'These are the options of the model "{chosen}"; `--model NAME` chooses another, with its own. '
        f"There are: {', '.join(names())}"
    )
    groups = {"model": rows_of_model(chosen), "train": rows_of_training()}
    call(train, words, "train", groups, {"chosen": chosen}, note)


def model_name(words: list[str]) -> tuple[str, list[str]]:
    """`--model NAME` (or `--model=NAME`) is read first: the options that follow depend on it."""
    for i, word in enumerate(words):
        if word == "--model":
            if i + 1 == len(words):
                raise LrsaError("--model needs the name of a model. `lrsa train --help` explains")
            return words[i + 1], words[:i] + words[i + 2 :]
        if word.startswith("--model="):
            return word.partition("=")[2], words[:i] + words[i + 1 :]
    return "lrsa", words


def finish(run: Path, progress: Any) -> None:
    """Evaluate what was trained, print it and write its report."""
    from lrsa.console import console
    from lrsa.evaluation.evaluate import evaluate
    from lrsa.models.pod import FittedModel
    from lrsa.report.printing import print_evaluation
    from lrsa.report.report import write_report
    from lrsa.surrogate.surrogate import load

    model = load(run).model
    console.print(
        f"Fitted in {progress.seconds:.2g} s: {model.about}. Its error with each case left out in turn is"
        f" {model.error:.2g} (of the normalised fields)"
        if isinstance(model, FittedModel)
        else f"Trained {progress.epoch} epochs in {progress.seconds:.0f} s;"
        f" {progress.waiting_share:.1%} of the training steps was waiting for data"
    )
    try:
        evaluation = evaluate(run)
    except LrsaError as error:
        raise LrsaError(f"{run} is trained, but cannot be evaluated: {error}") from error
    evaluation.save(run / "evaluation.json")
    print_evaluation(run, evaluation)
    console.print(f"report: {write_report(run, evaluation)}")
