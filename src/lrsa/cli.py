"""The program `lrsa`: it parses, calls and prints; the work is done elsewhere."""

import contextlib
import errno
import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from lrsa import __version__
from lrsa.errors import LrsaError

HELP = """\
lrsa {version}: neural operators as fast surrogates of PDE solvers

  lrsa data list                    the benchmarks of the catalogue
  lrsa data make NAME               make a benchmark's data with its solver
  lrsa data import SOURCE --out F   bring the official files of a benchmark into our format
  lrsa data show NAME-or-FILE       shapes, ranges, provenance and a picture
  lrsa train NAME-or-FILE           train a model on a benchmark or on your own data
  lrsa resume RUN                   go on with an interrupted run
  lrsa evaluate RUN                 errors per field, beside the null baselines
  lrsa predict RUN INPUT --out F    predictions for new cases (NPZ or HDF5)
  lrsa report RUN                   one HTML file with numbers and pictures

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
        return _say(f"{type(error).__name__}: {error}. This is a bug; --debug shows where", 1)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(HELP.format(version=__version__), end="")
        return 0
    if words[0] == "--version":
        print(__version__)
        return 0
    name = " ".join(words[:2]) if words[0] == "data" else words[0]
    if name not in COMMANDS:
        from lrsa.errors import nearest

        raise LrsaError(f'no command "{name}".{nearest(name, COMMANDS)} `lrsa --help` lists them')
    rest = words[len(name.split()) :]
    COMMANDS[name](rest)
    return 0


def _say(message: str, code: int) -> int:
    print(f"lrsa: {' '.join(message.split())}", file=sys.stderr)
    return code


def _parse(command: Callable[..., Any] | type, words: list[str], name: str) -> Any:
    """Parse by tyro; its boxes become one line."""
    import tyro

    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(command, prog=f"lrsa {name}", args=words)
    except SystemExit as error:
        if error.code:
            raise LrsaError(_one_line(said.getvalue())) from None
        raise


def _one_line(box: str) -> str:
    """The sentences of tyro's box, without its frame, its help texts and its rules."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    lines = [line.strip(" │╭╮╰╯─") for line in plain.splitlines()]
    text = " ".join(line for line in lines[1:] if line)
    text = re.sub(r"Argument helptext:.*", "", text)
    text = re.sub(r"For full helptext, (run|see):? (lrsa .*? --help).*", r"`\2` explains", text)
    text = re.sub(r"Perhaps you meant: (--\S+).*?(?=`lrsa|$)", r"Did you mean \1? ", text)
    return " ".join(text.split())


def data_list(words: list[str]) -> None:
    def command() -> None:
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

    _parse(command, words, "data list")


def data_make(words: list[str]) -> None:
    import tyro

    def command(
        name: Annotated[str, tyro.conf.Positional],
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

        with bar(f"Making {name}") as report:
            path = make_dataset(
                get(name),
                samples,
                test,
                fidelity,
                seed,
                workers,
                out,
                lambda done, all: report(done, all, "cases"),
            )
        console.print(f"{path}\nLook at it with `lrsa data show {out or name}`")

    _parse(command, words, "data make")


def data_import(words: list[str]) -> None:
    import tyro

    def command(source: Annotated[Path, tyro.conf.Positional], out: Path, stride: int | None = None) -> None:
        """Bring the official files of a benchmark into our format.

        Args:
            source: The folder that holds the files, or one of them.
            out: The HDF5 file to write.
            stride: Every so-many-th point along each axis (default: as published).
        """
        from lrsa.console import console
        from lrsa.data.official import import_official

        name, counts = import_official(source, out, stride)
        console.print(f"{out}: {name} (official), {counts['train']} training and {counts['test']} test cases")

    _parse(command, words, "data import")


def data_show(words: list[str]) -> None:
    import tyro

    def command(data: Annotated[str, tyro.conf.Positional], picture: Path | None = None) -> None:
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

    _parse(command, words, "data show")


def train(words: list[str]) -> None:
    model, words = _model_name(words)
    options = _parse(_train_options(model), words, "train")
    from lrsa.evaluation.evaluate import evaluate
    from lrsa.report.report import write_report
    from lrsa.training.fit import prepare, train_run

    settings = {k: v for k, v in vars(options.train).items() if v is not None}
    if not options.weights:
        settings["weights"] = False
    run = prepare(
        options.data,
        model,
        options.scale,
        options.out,
        options.init,
        options.device,
        options.threads,
        {k: v for k, v in vars(options.model).items() if v is not None},
        settings,
    )
    _finish(run, train_run(run), evaluate, write_report)


def resume(words: list[str]) -> None:
    import tyro

    def command(run: Annotated[Path, tyro.conf.Positional]) -> None:
        """Go on with an interrupted training; it ends as if it had never stopped.

        Args:
            run: The run folder.
        """
        from lrsa.evaluation.evaluate import evaluate
        from lrsa.report.report import write_report
        from lrsa.training.fit import train_run

        _finish(run, train_run(run), evaluate, write_report)

    _parse(command, words, "resume")


def evaluate(words: list[str]) -> None:
    import tyro

    def command(
        run: Annotated[Path, tyro.conf.Positional],
        data: str | None = None,
        stride: int | None = None,
        weights: Literal["best", "last"] = "best",
    ) -> None:
        """Print the errors of a trained surrogate on its test cases, beside the null baselines.

        Args:
            run: The run folder.
            data: Other data of the same kind (default: that of the run).
            stride: Every so-many-th point along each axis (default: as trained).
            weights: The best epoch by validation, or the last.
        """
        from lrsa.evaluation.evaluate import evaluate

        _print_evaluation(run, evaluate(run, data, stride, weights))

    _parse(command, words, "evaluate")


def predict(words: list[str]) -> None:
    import tyro

    def command(
        run: Annotated[Path, tyro.conf.Positional],
        input: Annotated[Path, tyro.conf.Positional],
        out: Path,
        inputs: str = "",
    ) -> None:
        """Predict new cases: what is in the input comes out, with the predicted fields beside it.

        Args:
            run: The run folder.
            input: An NPZ file (x and the features by name) or an HDF5 data set.
            out: A file of the same kind.
            inputs: The arrays that are the features, separated by commas (default: as in training).
        """
        from lrsa.console import console
        from lrsa.evaluation.predict import predict_file

        count = predict_file(run, input, out, [word for word in inputs.split(",") if word])
        console.print(f"{out}: {count} {'case' if count == 1 else 'cases'} predicted")

    _parse(command, words, "predict")


def report(words: list[str]) -> None:
    import tyro

    def command(run: Annotated[Path, tyro.conf.Positional]) -> None:
        """Write one HTML file that opens offline: numbers, pictures, definitions, provenance.

        Args:
            run: The run folder.
        """
        from lrsa.console import console
        from lrsa.report.report import write_report

        console.print(f"report: {write_report(run)}")

    _parse(command, words, "report")


def _model_name(words: list[str]) -> tuple[str, list[str]]:
    """`--model NAME` (or `--model=NAME`) is read first: the options that follow depend on it."""
    for i, word in enumerate(words):
        if word == "--model" and i + 1 < len(words):
            return words[i + 1], words[:i] + words[i + 2 :]
        if word.startswith("--model="):
            return word.partition("=")[2], words[:i] + words[i + 1 :]
    return "lrsa", words


def _train_options(model: str) -> type:
    """The dataclass that `lrsa train` parses for this model: only what was typed is set."""
    import tyro

    from lrsa.registry import get, model_options
    from lrsa.training.config import TrainConfig

    helps = _argument_helps(get(model).build().__doc__ or "")
    hints = get_type_hints(TrainConfig)
    training = [
        _optional(f.name, hints[f.name], _field_help(TrainConfig, f.name), f.default)
        for f in fields(TrainConfig)
        if f.name != "weights"
    ]
    of_model = [
        _optional(name, p.annotation, helps.get(name, ""), p.default)
        for name, p in model_options(model).items()
    ]
    rows: list[Any] = [
        (
            "data",
            Annotated[
                str, tyro.conf.Positional, tyro.conf.arg(help="A benchmark of `lrsa data list`, or a file.")
            ],
        ),
        _row("scale", Literal["demo", "cpu", "paper"] | None, "Size of a benchmark's run (default: cpu)."),
        _row("out", Path | None, "The run folder (default: runs/DATA-MODEL)."),
        _row("init", Path | None, "A run whose weights to start from."),
        _row("device", str, "cpu, cuda, ...", "cpu"),
        _row("threads", int | None, "CPU threads (default: torch's choice)."),
        _row("weights", bool, "Use the quadrature weights of the points, where the data has them.", True),
        ("model", make_dataclass("model", of_model), _fresh(of_model)),
        ("train", make_dataclass("train", training), _fresh(training)),
    ]
    made = make_dataclass("Train", rows)
    made.__doc__ = f"""Train a model and report its error beside the null baselines.

    These are the options of the model "{model}"; `--model NAME` chooses another, with options of its own.
    """
    return made


def _fresh(rows: list[Any]) -> Any:
    from dataclasses import field

    return field(default_factory=lambda: make_dataclass("options", rows)())


def _row(name: str, kind: Any, text: str, default: Any = None) -> Any:
    import tyro

    return (name, Annotated[kind, tyro.conf.arg(help=text)], default)


def _optional(name: str, kind: Any, text: str, default: Any) -> Any:
    import tyro

    shown = "" if default is MISSING or default is None else f"(default: {default})"
    return (name, Annotated[kind | None, tyro.conf.arg(help=text, help_behavior_hint=shown)], None)


def _argument_helps(doc: str) -> dict[str, str]:
    import docstring_parser

    return {p.arg_name: " ".join((p.description or "").split()) for p in docstring_parser.parse(doc).params}


def _field_help(config: type, name: str) -> str:
    import tyro._docstrings as docstrings

    return docstrings.get_field_docstring(config, name, ()) or ""


def _finish(run: Path, progress: Any, evaluate: Any, write_report: Any) -> None:
    from lrsa.console import console

    share = progress.waiting / max(progress.seconds, 1e-9)
    console.print(
        f"Trained {progress.epoch} epochs in {progress.seconds:.0f} s, of which {share:.1%} waiting for data"
    )
    evaluation = evaluate(run)
    evaluation.save(run / "evaluation.json")
    _print_evaluation(run, evaluation)
    console.print(f"report: {write_report(run, evaluation)}")


def _print_evaluation(run: Path, evaluation: Any) -> None:
    from rich.table import Table

    from lrsa.console import console
    from lrsa.report.report import summary_rows
    from lrsa.training.config import RunConfig

    about = f"{evaluation.cases} test cases of {evaluation.points} points"
    console.print(f"{run}: {about}, {evaluation.data} ({evaluation.source})")
    table = Table(show_header=False)
    for name, value in summary_rows(RunConfig.load(run), evaluation):
        table.add_row(name, value)
    console.print(table)


COMMANDS: dict[str, Callable[[list[str]], None]] = {
    "data list": data_list,
    "data make": data_make,
    "data import": data_import,
    "data show": data_show,
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "predict": predict,
    "report": report,
}


if __name__ == "__main__":
    sys.exit(main())
