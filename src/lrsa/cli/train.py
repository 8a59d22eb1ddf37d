"""`lrsa models`, `train` and `resume`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lrsa.cli.checking import at_least
from lrsa.errors import Interrupted, LrsaError

if TYPE_CHECKING:
    from lrsa.parallel.ranks import Ranks


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
    samples: int | None = None,
    minutes: float | None = None,
    out: Path | None = None,
    init: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    weights: bool = True,
    matched: bool = False,
    nproc: int = 1,
    shard_points: int = 1,
    quantity: str = "",
    ensemble: int = 1,
    folds: int | None = None,
    *,
    chosen: str | None,
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
        samples: Train on the first so many cases (default: those of the scale; all of a file).
        minutes: The time that the training may take; the number of its steps follows (default: as many epochs
            as the scale says).
        out: The run folder (default: runs/DATA-MODEL).
        init: A run whose weights to start from, or the name of a surrogate that comes with lrsa.
        device: cpu, cuda, ...
        threads: CPU threads (default: torch's choice).
        weights: Use the quadrature weights of the points, where the data has them; points of weight 0 only
            read then.
        matched: Choose the width that gives the model as many parameters as LRSA would have here.
        nproc: Processes of this machine that train together, with the same result; for several machines use
            `torchrun ... -m lrsa train`.
        shard_points: Of them, how many share the points of a case, where it does not fit into one.
        quantity: A number of the whole case that is measured too, such as lift=force:p@wing,along=y,area=0.3
            or peak=max:von_mises; may be repeated. docs/quantities.md tells how they are spelled.
        ensemble: So many models of other seeds share the run: their mean predicts, their spread gives
            intervals, calibrated on a fifth of the training cases.
        folds: Cross-validation for few cases: every case is once a test case, of one of so many runs; then
            one more run learns from all of them.
        chosen: The model, if one is named.
        model: Its options.
        train: Options of the training.
    """
    from lrsa.evaluation.folds import begin_folds
    from lrsa.parallel.ranks import joined, started
    from lrsa.training.configure import named
    from lrsa.training.fit import made_before, prepare

    _check_processes(nproc, shard_points)
    settings = train if weights else {**train, "weights": False}
    settings = settings if minutes is None else {**settings, "minutes": minutes}
    settings = settings if not quantity else {**settings, "quantities": quantity}
    check_folder(data)
    name = named(data, chosen, model, init)
    asked: dict[str, Any] = {
        "source": source,
        "scale": scale,
        "recipe": recipe,
        "init": init,
        "device": device,
        "threads": threads,
        "options": model,
        "train": settings,
        "matched": matched,
        "samples": samples,
        "ensemble": ensemble,
    }
    if folds is not None:
        _alone("--folds", nproc)
        _fold(begin_folds(data, name, folds, out, asked))
        return
    if ensemble > 1:
        _alone("--ensemble", nproc)
    prepared = partial(prepare, data, name, out=out, shard_points=shard_points, **asked)
    if nproc > 1 and not started():
        _in_processes(prepared(), nproc, shard_points)
        return
    with joined(shard_points, device) as ranks:
        _train_together(ranks, lambda: made_before(data, name, out) or prepared())


def resume(run: Path, /, nproc: int = 1, shard_points: int = 1) -> None:
    """Go on with an interrupted training; it ends as if it had never stopped.

    Args:
        run: The run folder.
        nproc: Processes of this machine that train together; their number may differ from before.
        shard_points: Of them, how many share the points of a case.
    """
    from lrsa.evaluation.folds import is_folded
    from lrsa.parallel.ranks import joined, started
    from lrsa.training.config import RunConfig

    _check_processes(nproc, shard_points)
    if is_folded(run):
        _alone("--folds", nproc)
        _fold(run)
        return
    if nproc > 1 and not started():
        _in_processes(run, nproc, shard_points)
        return
    with joined(shard_points, RunConfig.load(run).device) as ranks:
        _train_together(ranks, lambda: run)


def check_folder(data: str) -> None:
    """Refuse a folder of meshes, which has to be imported first, with the command that does."""
    from lrsa.mesh.importing import propose
    from lrsa.problems.catalogue import CATALOGUE

    if not Path(data).is_dir() or data in CATALOGUE:
        return
    if (Path(data) / "config.json").exists():
        raise LrsaError(f"{data} is a run. Go on with `lrsa resume {data}`, or name the data to train on")
    command = propose(data).splitlines()[-1].strip()
    raise LrsaError(f"{data} is a folder, and training takes one file. Make it with `{command}`")


def _alone(what: str, nproc: int) -> None:
    """Refuse what is trained by one process at a time."""
    from lrsa.parallel.ranks import started

    if nproc > 1 or started():
        raise LrsaError(f"{what} trains its models one after the other in one process. Leave --nproc out")


def _train_together(ranks: "Ranks", named: Callable[[], Path]) -> None:
    """Train the run that the first process names; it alone speaks, and evaluates in the end."""
    from lrsa.console import console
    from lrsa.parallel.launch import launched
    from lrsa.training.fit import concluded, train_run

    console.quiet = not ranks.first
    run = ranks.tell(named() if ranks.first else None)
    try:
        standing = train_run(run, ranks)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped. What was finished is kept: go on with `lrsa resume {run}`") from None
    if ranks.first and not launched():
        if ranks.everyone is not None:
            concluded(run)
        finish(run, standing)


def _check_processes(nproc: int, shard_points: int) -> None:
    at_least(1, nproc=nproc, shard_points=shard_points)
    if nproc > 1 and nproc % shard_points:
        raise LrsaError(f"--shard-points {shard_points} does not divide --nproc {nproc}")


def _in_processes(run: Path, nproc: int, shard_points: int) -> None:
    """Let so many processes train the run, started again where one of them dies; then evaluate it here."""
    from lrsa.parallel.launch import launch
    from lrsa.training.checkpoint import STATE, load_standing
    from lrsa.training.fit import concluded

    launch(nproc, ["resume", str(run), "--shard-points", str(shard_points)])
    concluded(run)
    finish(run, load_standing(run / STATE))


def _fold(run: Path) -> None:
    from lrsa.console import console
    from lrsa.evaluation.folds import run_folds

    try:
        table = run_folds(run)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped. What was finished is kept: go on with `lrsa resume {run}`") from None
    console.print(table)


def call_train(words: list[str]) -> None:
    """`lrsa train` with what was typed after it: its options depend on the model that is named among them."""
    from lrsa.cli.parsing import call, rows_of_model, rows_of_training
    from lrsa.models.registry import names

    chosen, words = model_name(words)
    shown = chosen or "lrsa"
    note = (
        f'These are the options of the model "{shown}"; `--model NAME` chooses another, with its own. '
        f"There are: {', '.join(names())}. Where none is named, a file whose cases are grids of two axes gets"
        " lrsa-fourier"
    )
    groups = {"model": rows_of_model(shown), "train": rows_of_training()}
    call(train, words, "train", groups, {"chosen": chosen}, note)


def model_name(words: list[str]) -> tuple[str | None, list[str]]:
    """`--model NAME` (or `--model=NAME`) is read first: the options that follow depend on it."""
    for i, word in enumerate(words):
        if word == "--model":
            if i + 1 == len(words):
                raise LrsaError("--model needs the name of a model. `lrsa train --help` explains")
            return words[i + 1], words[:i] + words[i + 2 :]
        if word.startswith("--model="):
            return word.partition("=")[2], words[:i] + words[i + 1 :]
    return None, words


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
