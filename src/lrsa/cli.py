"""The program `lrsa`: it parses, calls and prints; the work is done elsewhere."""

import errno
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from lrsa import __version__
from lrsa.errors import LrsaError, nearest

HELP = """\
lrsa {version}: neural operators as fast surrogates of PDE solvers

  lrsa data list                    the benchmarks of the catalogue
  lrsa data make NAME               make a benchmark's data with its solver
  lrsa data import SOURCE --out F   your own meshes, or a benchmark's official files, as one data set
  lrsa data show NAME-or-FILE       shapes, ranges, provenance and a picture
  lrsa models                       all models: LRSA, the baselines, mixers in our backbone
  lrsa train NAME-or-FILE           train a model on a benchmark or on your own data
  lrsa resume RUN                   go on with an interrupted run
  lrsa evaluate RUN                 errors per field, beside the null baselines
  lrsa predict RUN INPUT --out F    predictions for new cases, back into the same kind of file
  lrsa inspect RUN                  effective rank, maps of the latents, where the time goes
  lrsa report RUN                   one HTML file with numbers and pictures
  lrsa reproduce figure-lowrank     the paper's figures, made anew

`lrsa COMMAND --help` explains a command. `--debug` shows the traceback of an error.
Start with: lrsa train darcy --scale demo
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 on success, 2 on bad input, 1 on failure."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    try:
        return _dispatch(words)
    except LrsaError as error:
        if debug:
            raise
        return _say(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _say(
            "stopped. What was finished is kept; run the command again, or `lrsa resume` a training", 130
        )
    except OSError as error:
        if debug:
            raise
        if error.errno == errno.ENOSPC:
            return _say(
                f"no space left on the disk ({error.filename or 'while writing'}). Free some and run again", 2
            )
        return _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", 2)
    except Exception as error:
        if debug:
            raise
        text = " ".join(str(error).split())
        return _say(f"{type(error).__name__}: {text}. This is a bug; --debug shows where", 1)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(HELP.format(version=__version__), end="")
        return 0
    if words[0] == "--version":
        print(__version__)
        return 0
    if words == ["data"] or words[:2] in (["data", "-h"], ["data", "--help"]):
        print("\n".join(line for line in HELP.splitlines() if line.startswith("  lrsa data")))
        return 0
    name = " ".join(words[:2]) if words[0] == "data" else words[0]
    if name not in COMMANDS:
        raise LrsaError(f'no command "{name}".{nearest(name, COMMANDS)} `lrsa --help` lists them')
    _call(name, words[len(name.split()) :])
    return 0


def _say(message: str, code: int) -> int:
    """One line for each problem."""
    for line in message.splitlines():
        print(f"lrsa: {' '.join(line.split())}", file=sys.stderr)
    return code


def data_list() -> None:
    """List the benchmarks: what they are, their scales, and what is on this machine already."""
    from rich.table import Table

    from lrsa.console import console
    from lrsa.data.catalogue import CATALOGUE

    table = Table("benchmark", "what", "made here")
    for benchmark in CATALOGUE.values():
        made = [f for f in benchmark.fidelities if benchmark.path(f).exists()]
        table.add_row(benchmark.name, benchmark.about, ", ".join(made) or "-")
        for name, scale in benchmark.scales.items():
            table.add_row("", f"--scale {name}: {scale.about}", "")
    console.print(table)


def data_make(
    name: str,
    /,
    samples: int | None = None,
    test: int | None = None,
    out: Path | None = None,
    workers: int | None = None,
    seed: int = 0,
    fidelity: str = "default",
) -> None:
    """Make the data of a benchmark by solving its equation; interrupted, it goes on where it was.

    Args:
        name: The benchmark.
        samples: Training cases (default: as published). More than are there extend the set.
        test: Test cases (default: as published, but no more than training cases).
        out: The file (default: in the cache, where training finds it).
        workers: Processes (default: one for each core).
        seed: Of the whole set.
        fidelity: The resolution of the solver; `lrsa data list` shows the scales that use it.
    """
    from lrsa.console import bar, console
    from lrsa.data.catalogue import get
    from lrsa.data.making import make_dataset

    benchmark = get(name)
    _at_least(1, workers=workers)
    _at_least(0, seed=seed)
    with bar(f"Making {name}") as report:
        path = make_dataset(
            benchmark,
            samples,
            test,
            fidelity,
            seed,
            workers,
            out,
            lambda done, total: report(done, total, "cases"),
        )
    console.print(f"{path}\nLook at it with `lrsa data show {path}`")


def data_import(
    source: str,
    /,
    out: Path | None = None,
    inputs: str = "",
    targets: str = "",
    globals: Path | None = None,
    derive: str = "",
    workers: int | None = None,
    stride: int | None = None,
) -> None:
    """Bring your own meshes, or the official files of a benchmark, into our format.

    With nothing but the source it lists what is there and proposes a command.

    Args:
        source: A folder, a file or a quoted glob of meshes (VTU, VTP, VTK, OpenFOAM, CGNS, XDMF, EnSight,
            STL, PLY, OBJ), NPZ, HDF5, CSV or Parquet; or the folder of a benchmark's official files.
        out: The HDF5 file to write.
        inputs: Arrays that the model is given, separated by commas.
        targets: Arrays that it is to predict, separated by commas.
        globals: Table of per-case parameters, the case in its first column.
        derive: Of normals, sdf, measure and surface, those to compute from the mesh, separated by commas.
        workers: Processes (default: one for each core).
        stride: Every so-many-th point of official files (default: as published).
    """
    from lrsa.console import bar, console
    from lrsa.data.official import import_official, recognise

    _at_least(1, stride=stride, workers=workers)
    official = recognise(Path(source)) if Path(source).exists() else None
    if official is None and not (inputs or targets):
        from lrsa.mesh.importing import propose

        with bar("Reading") as report:
            found = propose(source, workers, lambda done, total: report(done, total, "files"))
        console.print(found)
        return
    if out is None:
        raise LrsaError("name the file to write with --out, e.g. --out my.h5")
    if official is not None:
        name, counts = import_official(Path(source), out, stride)
        console.print(f"{out}: {name} (official), {counts['train']} training and {counts['test']} test cases")
        return
    from lrsa.mesh.importing import import_meshes

    with bar("Importing") as report:
        made = import_meshes(
            source,
            out,
            _words(inputs),
            _words(targets),
            globals,
            _words(derive),  # pyright: ignore[reportArgumentType] - import_meshes checks the names
            workers,
            lambda done, total: report(done, total, "cases"),
        )
    for note in made.notes:
        console.print(note)
    splits = " and ".join(f"{count} {split}" for split, count in made.counts.items())
    console.print(f"{out}: {splits} cases. Look with `lrsa data show {out}`, go on with `lrsa train {out}`")


def data_show(data: str, /, picture: Path | None = None) -> None:
    """Print the shapes, ranges and provenance of a data set, and draw a few cases.

    Args:
        data: A benchmark whose data is made, or a file.
        picture: Where to draw (default: beside the file).
    """
    from lrsa.console import console
    from lrsa.data.store import open_dataset
    from lrsa.report.datacard import card, draw

    train = open_dataset(data)
    console.print(card(train))
    console.print(f"picture: {draw(train, picture)}")


def models() -> None:
    """List the models: paper, what data they take, parameters at their default options, published presets."""
    from rich.table import Table

    from lrsa.console import console
    from lrsa.registry import create_model, get, list_models

    table = Table("model", "paper", "takes", "parameters", "published for")
    for name in list_models():
        entry = get(name)
        made = create_model(name, coord_dim=2, in_features=1, out_features=1)
        count = sum(parameter.numel() for parameter in made.parameters())
        table.add_row(name, entry.paper, entry.data, f"{count:,}", ", ".join(entry.all_presets()) or "-")
    table.caption = "parameters: default options, two coordinates, one input, one field"
    console.print(table)


def train(
    data: str,
    /,
    scale: Literal["demo", "cpu", "paper"] | None = None,
    out: Path | None = None,
    init: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    weights: bool = True,
    *,
    chosen: str,
    model: dict[str, Any],
    train: dict[str, Any],
) -> None:
    """Train a model and report its error beside the null baselines.

    Args:
        data: A benchmark of `lrsa data list`, or a file.
        scale: Size of a benchmark's run (default: cpu).
        out: The run folder (default: runs/DATA-MODEL).
        init: A run whose weights to start from.
        device: cpu, cuda, ...
        threads: CPU threads (default: torch's choice).
        weights: Use the quadrature weights of the points, where the data has them.
        chosen: The model.
        model: Its options.
        train: Options of the training.
    """
    from lrsa.training.fit import prepare, train_run

    settings = train if weights else {**train, "weights": False}
    run = prepare(data, chosen, scale, out, init, device, threads, model, settings)
    _finish(run, train_run(run))


def resume(run: Path, /) -> None:
    """Go on with an interrupted training; it ends as if it had never stopped.

    Args:
        run: The run folder.
    """
    from lrsa.training.fit import train_run

    _finish(run, train_run(run))


def evaluate(
    run: Path,
    /,
    data: str | None = None,
    stride: str | None = None,
    weights: Literal["best", "last"] = "best",
) -> None:
    """Print the errors of a trained surrogate on its test cases, beside the null baselines.

    The table of all cases and fields goes to evaluation.csv in the run folder; under a longer name, with the
    data, the weights and the stride in it, where these are not those of the run.

    Args:
        run: The run folder.
        data: Other data of the same kind, a benchmark or a file (default: that of the run).
        stride: Every so-many-th point along each axis; several, such as 1,2,4, give the error and the
            self-consistency at each (default: as trained).
        weights: The best epoch by validation, or the last.
    """
    from lrsa.evaluation.evaluate import evaluate, parse_strides
    from lrsa.report.printing import print_evaluation

    outcome = evaluate(run, data, parse_strides(stride), weights)
    # What is not the run's own test error does not take its place.
    others = [Path(data).stem if data else "", "last" if weights == "last" else "", stride or ""]
    outcome.save(run / f"{'-'.join(['evaluation', *filter(None, others)])}.json")
    print_evaluation(run, outcome)


def predict(
    run: Path,
    input: str,
    /,
    out: Path,
    inputs: str = "",
    globals: Path | None = None,
    at: Path | None = None,
    time: str = "",
) -> None:
    """Predict new cases: what is in the input comes out, with the predicted fields beside it.

    Args:
        run: The run folder.
        input: A mesh, table, array file or data set; or a folder or quoted glob of them.
        out: A file for one case, a folder for many.
        inputs: The arrays that are the inputs, in the order of training, separated by commas (default: the
            same names).
        globals: Table of per-case parameters, the case in its first column.
        at: CSV of query points (x,y[,z], and inputs by name where known); the output is a CSV.
        time: Times to predict, separated by commas, of a time-conditioned run (default: those of the file).
    """
    from lrsa.console import bar, console
    from lrsa.evaluation.predict import predict_path

    try:
        times = [float(word) for word in _words(time)]
    except ValueError:
        raise LrsaError(f"--time takes numbers separated by commas, not {time}") from None
    with bar("Predicting") as report:
        summary = predict_path(run, input, out, _words(inputs), globals, at, times, report)
    for line in (*summary.notes, *summary.warnings):
        console.print(line)
    console.print(f"{out}: {summary.cases} {'case' if summary.cases == 1 else 'cases'} predicted")


def report(run: Path, /, stride: str | None = None) -> None:
    """Write one HTML file that opens offline: numbers, pictures, definitions, provenance.

    Args:
        run: The run folder.
        stride: Samplings to compare, such as 1,2,4 (default: as trained).
    """
    from lrsa.console import console
    from lrsa.evaluation.evaluate import evaluate, parse_strides
    from lrsa.report.report import write_report

    console.print(f"report: {write_report(run, evaluate(run, stride=parse_strides(stride)))}")


def inspect(run: Path, /, case: int = 0, stride: int | None = None) -> None:
    """Look inside a trained model: effective rank of every layer, maps of the latents, where the time goes.

    Args:
        run: The run folder.
        case: The test case to look at.
        stride: Every so-many-th point along each axis (default: as trained).
    """
    from lrsa.console import bar, console
    from lrsa.evaluation.inspect import inspect_run
    from lrsa.report.inspect_figures import draw_inspection
    from lrsa.report.inspect_tables import print_inspection

    _at_least(1, stride=stride)
    with bar("Inspecting") as report:
        inspection = inspect_run(run, case=case, stride=stride, progress=report)
    print_inspection(inspection)
    for path in draw_inspection(inspection, run / "figures"):
        console.print(f"picture: {path}")


def reproduce(what: Literal["figure-lowrank"], /, out: Path = Path("results")) -> None:
    """Make a table or figure of the paper anew.

    Args:
        what: figure-lowrank: the Green's function of 1-D Poisson and its low rank (figure 1).
        out: The folder for pictures and numbers.
    """
    from lrsa.console import console
    from lrsa.experiments.figure_lowrank import figure_lowrank

    console.print(f"{what}: {figure_lowrank(out)}")


def _call(name: str, words: list[str]) -> None:
    from lrsa.parsing import call, rows_of_model, rows_of_training

    if name != "train":
        call(COMMANDS[name], words, name)
        return
    from lrsa.registry import list_models

    chosen, words = _model_name(words)
    note = (
        f'These are the options of the model "{chosen}"; `--model NAME` chooses another, with its own. '
        f"There are: {', '.join(list_models())}"
    )
    groups = {"model": rows_of_model(chosen), "train": rows_of_training()}
    call(train, words, name, groups, {"chosen": chosen}, note)


def _model_name(words: list[str]) -> tuple[str, list[str]]:
    """`--model NAME` (or `--model=NAME`) is read first: the options that follow depend on it."""
    for i, word in enumerate(words):
        if word == "--model":
            if i + 1 == len(words):
                raise LrsaError("--model needs the name of a model. `lrsa train --help` explains")
            return words[i + 1], words[:i] + words[i + 2 :]
        if word.startswith("--model="):
            return word.partition("=")[2], words[:i] + words[i + 1 :]
    return "lrsa", words


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _at_least(least: int, **given: int | None) -> None:
    for name, value in given.items():
        if value is not None and value < least:
            raise LrsaError(f"--{name} must be at least {least}, not {value}")


def _finish(run: Path, progress: Any) -> None:
    from lrsa.console import console
    from lrsa.evaluation.evaluate import evaluate
    from lrsa.report.printing import print_evaluation
    from lrsa.report.report import write_report

    share = progress.waiting / max(progress.seconds, 1e-9)
    console.print(
        f"Trained {progress.epoch} epochs in {progress.seconds:.0f} s, of which {share:.1%} waiting for data"
    )
    try:
        evaluation = evaluate(run)
    except LrsaError as error:
        raise LrsaError(f"{run} is trained, but cannot be evaluated: {error}") from error
    evaluation.save(run / "evaluation.json")
    print_evaluation(run, evaluation)
    console.print(f"report: {write_report(run, evaluation)}")


COMMANDS: dict[str, Callable[..., None]] = {
    "data list": data_list,
    "data make": data_make,
    "data import": data_import,
    "data show": data_show,
    "models": models,
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "predict": predict,
    "inspect": inspect,
    "report": report,
    "reproduce": reproduce,
}


if __name__ == "__main__":
    sys.exit(main())
