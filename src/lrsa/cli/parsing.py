"""Command lines by tyro: a function's signature becomes its options, tyro's boxes become one line."""

import contextlib
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Required, TypedDict, Union, get_args, get_origin, get_type_hints

from lrsa.errors import LrsaError

Rows = Mapping[str, Any]
"""name -> the annotated type of an option."""


def call(
    command: Callable[..., None],
    words: list[str],
    name: str,
    groups: Mapping[str, Rows] | None = None,
    fixed: Mapping[str, Any] | None = None,
    note: str = "",
) -> None:
    """Run `command` with what was typed, unless that was `--help`.

    Positional-only parameters are positional words, the others options; the docstring explains them. Of an
    option without a default, and of `groups` (`--group.option`), the command gets only what was typed.

    Args:
        command: What `lrsa NAME` does.
        words: What was typed after the name.
        name: Of the command.
        groups: Parameters that are dictionaries of further options.
        fixed: Parameters that are no options.
        note: What the help says further.
    """
    groups, fixed, helps = groups or {}, fixed or {}, argument_helps(command)
    rows, places, defaults = {}, [], {}
    hints = get_type_hints(command)
    for key, parameter in inspect.signature(command).parameters.items():
        if key in fixed:
            continue
        if key in groups:
            rows[key] = _typed(key, groups[key])
            continue
        placed = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        places += [key] if placed else []
        hint = "" if parameter.default is None else None
        rows[key] = row(hints[key], helps.get(key, ""), hint, key.upper() if placed else None)
        if parameter.default is inspect.Parameter.empty:
            rows[key] = Required[rows[key]]
        elif parameter.default is not None:
            defaults[key] = parameter.default
    about = (inspect.getdoc(command) or "").partition("\nArgs:")[0].strip()
    values = _read(name, f"{about}\n\n{note}".strip(), rows, defaults, words)
    if values is not None:
        words = [values.pop(key) for key in places]
        command(*words, **values, **fixed)


def row(kind: Any, text: str, hint: str | None = None, place: str | None = None) -> Any:
    """The type of an option with its explanation, what is said of its default (None: what tyro says), and
    the name of a positional word."""
    import tyro

    if get_origin(kind) in (Union, UnionType):
        kind = reduce(or_, (k for k in get_args(kind) if k is not NoneType))
    made = Annotated[kind, tyro.conf.arg(help=text, help_behavior_hint=hint, metavar=place)]
    return made if place is None else Annotated[made, tyro.conf.Positional]


def argument_helps(documented: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a function, or of a class or its constructor, says about each argument."""
    import docstring_parser

    texts = [inspect.getdoc(part) or "" for part in (getattr(documented, "__init__", None), documented)]
    params = [p for text in texts for p in docstring_parser.parse(text).params]
    return {p.arg_name: " ".join((p.description or "").split()) for p in params}


def rows_of_model(model: str) -> Rows:
    """The options of a registered model."""
    from lrsa.models.registry import get, model_options

    build = get(model).build()
    helps = argument_helps(build)
    rows = {}
    for name, parameter in model_options(model).items():
        kind, default = parameter.annotation, parameter.default
        if default is inspect.Parameter.empty:
            default = None
        if kind is inspect.Parameter.empty or isinstance(kind, str):
            kind = str if default is None else type(default)
        rows[name] = row(kind, helps.get(name, ""), _hint(default))
    return rows


def rows_of_training() -> Rows:
    """The fields of `TrainConfig`, but those that are options by themselves."""
    import tyro._docstrings as docstrings

    from lrsa.training.config import TrainConfig

    hints = get_type_hints(TrainConfig)
    return {
        f.name: row(
            hints[f.name], docstrings.get_field_docstring(TrainConfig, f.name, ()) or "", _hint(f.default)
        )
        for f in fields(TrainConfig)
        if f.name != "weights"
    }


def _hint(default: Any) -> str:
    return "" if default is None else f"(default: {default})"


def _typed(name: str, rows: Rows) -> Any:
    return TypedDict(name, dict(rows), total=False)  # pyright: ignore


def _read(
    name: str, about: str, rows: Rows, defaults: Mapping[str, Any], words: list[str]
) -> dict[str, Any] | None:
    """The typed values, or None where only help was asked for."""
    import tyro

    options, said = _typed("options", rows), io.StringIO()
    try:
        with contextlib.redirect_stderr(said), _unwrapped("-h" in words or "--help" in words):
            return tyro.cli(
                options, prog=f"lrsa {name}", args=words, description=about, default=dict(defaults)
            )
    except SystemExit as error:
        if error.code:
            raise LrsaError(one_line(said.getvalue(), f"lrsa {name}")) from None
        return None


@contextlib.contextmanager
def _unwrapped(help: bool) -> Iterator[None]:
    """Errors on lines as long as they need: a name broken in two cannot be put together again."""
    before = os.environ.get("COLUMNS")
    if not help:
        os.environ["COLUMNS"] = "10000"
    try:
        yield
    finally:
        if not help:
            os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)


def one_line(box: str, program: str) -> str:
    """What tyro's box says: the option, what is wrong with it, the nearest one."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", box)
    # Frames are drawn in ASCII where the output knows no more.
    lines = [line.strip(" │|╭╮╰╯─") for line in plain.splitlines()]
    text = " ".join(" ".join(line for line in lines if line.strip("-+ ")).split())
    for pattern, say in _SENTENCES:
        if found := re.search(pattern, text):
            return f"{say(found, text)} `{program} --help` explains"
    text = re.sub(r"(Argument helptext:|For full helptext,).*", "", text)
    return f"{text.strip().rstrip('.')}. `{program} --help` explains"


def _unknown(found: re.Match[str], text: str) -> str:
    words = found[1].split(", ")
    options = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not options:
        return f'"{words[0]}" is one word too many.'
    near = re.search(rf"(?:Perhaps you meant|similar to {re.escape(options[0])}): (--[\w.-]+)", text)
    return f'no option "{options[0]}".' + (f" Did you mean {near[1]}?" if near else "")


def _ill_typed(found: re.Match[str], text: str) -> str:
    wanted = "a whole number" if "int()" in found[2] else "a number"
    return f'{found[1]} takes {wanted}, not "{found[3]}".'


def _choice(found: re.Match[str], text: str) -> str:
    *others, last = re.findall(r"'([^']*)'", found[3])
    choices = f"{', '.join(others)} or {last}" if others else last
    return f'{found[2]} takes {choices}, not "{found[1]}".'


def _missing(found: re.Match[str], text: str) -> str:
    needed = re.findall(r"(?:^|\(required\) )(--[\w.-]+ (?:[A-Z]+|\{.*?\})|[A-Z]+)(?!\w)", found[2])
    return f"{found[1]} needs {' and '.join(needed)}."


_SENTENCES: list[tuple[str, Callable[[re.Match[str], str], str]]] = [
    (r"Unrecognized options: (.*?)(?= Perhaps you| Arguments similar| For full|$)", _unknown),
    (r"Error parsing (\S+): (invalid literal for int\(\)|could not convert).*: '(.*?)'", _ill_typed),
    (r"invalid choice '(.*?)' for argument '(.*?)'. Expected one of \((.*?)\)", _choice),
    (r"Missing from (lrsa [a-z ]*?): (.*?) For full", _missing),
    (r"Missing value for argument '(.*?)'", lambda found, text: f"{found[1]} needs a value."),
]
