"""The program `lrsa`: the table of its commands; what they do is beside it, the work elsewhere."""

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lrsa.cli import bench, data, predict, reproduce, runs, serve, studio, train, tune
from lrsa.errors import NO_SPACE, LrsaError, nearest
from lrsa.version import __version__


class Command(NamedTuple):
    """A row of the help, and the function whose parameters are the options."""

    words: str
    """What must follow the name."""
    about: str
    run: Callable[..., None]


COMMANDS: dict[str, Command] = {
    "data list": Command("", "the benchmarks of the catalogue", data.data_list),
    "data make": Command("NAME", "make a benchmark's data with its solver", data.data_make),
    "data import": Command(
        "SOURCE --out F",
        "your own meshes, or a benchmark's official files, as one data set",
        data.data_import,
    ),
    "data show": Command("NAME-or-FILE", "shapes, ranges, provenance and a picture", data.data_show),
    "models": Command("", "all models: LRSA, the baselines, mixers in our backbone", train.models),
    "train": Command("NAME-or-FILE", "train a model on a benchmark or on your own data", train.train),
    "tune": Command("FILE", "several models and settings on a budget, then the winner", tune.tune),
    "resume": Command("RUN", "go on with an interrupted run", train.resume),
    "evaluate": Command("RUN", "errors per field, beside the null baselines", runs.evaluate),
    "predict": Command(
        "RUN INPUT --out F", "predictions for new cases, back into the same kind of file", predict.predict
    ),
    "export": Command(
        "RUN --format F", "a program for torch or ONNX that runs without this package", predict.export
    ),
    "inspect": Command("RUN", "effective rank, maps of the latents, where the time goes", runs.inspect),
    "report": Command("RUN", "one HTML file with numbers and pictures", runs.report),
    "studio": Command("[RUNS]", "a page to see, try and compare surrogates", studio.studio),
    "serve": Command("RUN ...", "trained surrogates for other programs, over HTTP", serve.serve),
    "reproduce": Command("WHAT", "the tables and figures of the paper, made anew", reproduce.reproduce),
    "bench": Command("", "speed and memory of all models, as ratios in one run", bench.bench),
}

HELP = """\
lrsa {version}: neural operators as fast surrogates of PDE solvers

{rows}

`lrsa COMMAND --help` explains a command. `--debug` shows what computes, and the traceback of an error.
Start with: lrsa train darcy --scale demo"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 on success, 2 on bad input, 1 on failure."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if debug:
        logging.basicConfig(format="lrsa: %(message)s")
        logging.getLogger("lrsa").setLevel(logging.DEBUG)
    try:
        return _dispatch(words)
    except LrsaError as error:
        if debug:
            raise
        return _say(error.lines, error.exit_code)
    except KeyboardInterrupt:
        return _say(
            ["stopped. What was finished is kept; run the command again, or `lrsa resume` a training"], 130
        )
    except OSError as error:
        if debug:
            raise
        if error.errno in NO_SPACE:
            where = error.filename or "while writing"
            return _say([f"no space left on the disk ({where}). Free some and run again"], 2)
        return _say([f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"], 2)
    except Exception as error:
        if debug:
            raise
        return _say([f"{type(error).__name__}: {error}. This is a bug; --debug shows where"], 1)


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(HELP.format(version=__version__, rows=_rows(COMMANDS)))
        return 0
    if words[0] == "--version":
        print(__version__)
        return 0
    if words == ["data"] or words[:2] in (["data", "-h"], ["data", "--help"]):
        print(_rows([name for name in COMMANDS if name.startswith("data ")]))
        return 0
    name = " ".join(words[:2]) if words[0] == "data" else words[0]
    if name not in COMMANDS:
        raise LrsaError(f'no command "{name}".{nearest(name, COMMANDS)} `lrsa --help` lists them')
    _call(name, words[len(name.split()) :])
    return 0


def _rows(names: Iterable[str]) -> str:
    return "\n".join(f"  {f'lrsa {name} {COMMANDS[name].words}':33} {COMMANDS[name].about}" for name in names)


def _call(name: str, words: list[str]) -> None:
    if name == "train":
        train.call_train(words)
        return
    from lrsa.cli.parsing import call

    call(COMMANDS[name].run, words, name)


def _say(problems: Iterable[str], code: int) -> int:
    """One line for each problem, whatever is in the names that it has."""
    for line in problems:
        print(f"lrsa: {' '.join(line.split())}", file=sys.stderr)
    return code
