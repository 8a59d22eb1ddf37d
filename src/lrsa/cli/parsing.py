"""Command lines by tyro: a function's signature becomes its options, what is wrong is said in one line.

tyro reads and explains; its errors are boxes for people, in an English that may change, so that what was
mistyped is found here, with no more than its public interface.
"""

import contextlib
import difflib
import inspect
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from itertools import pairwise
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Required,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lrsa.errors import LrsaError


class Row(NamedTuple):
    """An option, or a positional word."""

    kind: Any
    """int, float, bool, str, Path, a Literal, a tuple of these."""
    text: str
    hint: str | None = None
    """What is said of its default; None: what tyro says."""
    place: str | None = None
    """The name of a positional word, in brackets where it may be left out."""


Rows = Mapping[str, Row]
REPEATED = {"--quantity": ";"}
"""Options that may be typed several times, and what their values are joined by."""


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
    words = _gathered(words)
    rows, needed, defaults = {}, [], {}
    hints = get_type_hints(command)
    for key, parameter in inspect.signature(command).parameters.items():
        if key in groups or key in fixed:
            continue
        placed = parameter.kind is inspect.Parameter.POSITIONAL_ONLY
        hint = "" if parameter.default is None else None
        must = parameter.default is inspect.Parameter.empty
        place = (key.upper() if must else f"[{key.upper()}]") if placed else None
        rows[key] = Row(_without_none(hints[key]), helps.get(key, ""), hint, place)
        if must:
            needed.append(key)
        elif parameter.default is not None:
            defaults[key] = parameter.default
    about = (inspect.getdoc(command) or "").partition("\nArgs:")[0].strip()
    line = _Line(f"lrsa {name}", f"{about}\n\n{note}".strip(), rows, groups, needed, defaults)
    values = line.read(words)
    if values is not None:
        places = [values.pop(key) for key, row in rows.items() if row.place]
        command(*places, **values, **fixed)


def argument_helps(documented: Callable[..., Any]) -> dict[str, str]:
    """What the docstring of a function, a class, its constructor or its fields says about each argument."""
    import docstring_parser

    parts = (getattr(documented, "__init__", None), documented)
    params = [p for part in parts for p in docstring_parser.parse_from_object(part).params]
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
        rows[name] = Row(_without_none(kind), helps.get(name, ""), _hint(default))
    return rows


def rows_of_training() -> Rows:
    """The fields of `TrainConfig`, but those that are options by themselves."""
    from lrsa.training.config import TrainConfig

    hints, helps = get_type_hints(TrainConfig), argument_helps(TrainConfig)
    return {
        f.name: Row(_without_none(hints[f.name]), helps.get(f.name, ""), _hint(f.default))
        for f in fields(TrainConfig)
        if f.name not in ("weights", "minutes", "quantities")
    }


def _hint(default: Any) -> str:
    return "" if default is None else f"(default: {default})"


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return reduce(or_, (k for k in get_args(kind) if k is not NoneType))


class _Line(NamedTuple):
    """What may be typed after a command."""

    program: str
    about: str
    rows: Rows
    groups: Mapping[str, Rows]
    needed: Collection[str]
    """Keys of the rows that have no default."""
    defaults: Mapping[str, Any]

    def read(self, words: Sequence[str]) -> dict[str, Any] | None:
        """The typed values, or None where only help was asked for."""
        try:
            values, unknown = self._parse(words, self.needed)
        except SystemExit as error:
            if not error.code:
                return None
            raise self._error(self._missing(words)) from None
        if unknown:
            raise self._error(_unknown(unknown, self._options()))
        return values

    def _parse(self, words: Sequence[str], needed: Collection[str]) -> tuple[dict[str, Any], list[str]]:
        """Values, and words that nobody takes. SystemExit after help, or where a word is missing."""
        import tyro

        kinds = {key: self._kind(_option(key), row) for key, row in self.rows.items()}
        kinds |= {key: Required[kinds[key]] for key in needed}
        for name, rows in self.groups.items():
            group = {key: self._kind(_option(key, name), row) for key, row in rows.items()}
            kinds[name] = TypedDict(name, group, total=False)  # pyright: ignore
        with contextlib.redirect_stderr(io.StringIO()):
            return tyro.cli(
                TypedDict("options", kinds, total=False),  # pyright: ignore
                prog=self.program,
                args=words,
                description=self.about,
                default=dict(self.defaults),
                return_unknown_args=True,
            )

    def _kind(self, option: str, row: Row) -> Any:
        """The type of a row, with all that tyro is to know of it."""
        import tyro

        about = tyro.conf.arg(help=row.text, help_behavior_hint=row.hint, metavar=row.place)
        made = Annotated[self._read_as(option, row.kind), about]
        return made if row.place is None else Annotated[made, tyro.conf.Positional]

    def _read_as(self, option: str, kind: Any) -> Any:
        """The type, with our words for what is not of it."""
        from tyro.constructors import PrimitiveConstructorSpec

        if get_origin(kind) is tuple:
            return tuple[tuple(k if k is ... else self._read_as(option, k) for k in get_args(kind))]  # pyright: ignore
        if kind not in (int, float) and get_origin(kind) is not Literal:
            return kind
        make, metavar, wanted = _reader(kind)

        def read(words: list[str]) -> Any:
            try:
                return make(words[0])
            except (ValueError, KeyError):
                raise self._error(f'{option} takes {wanted}, not "{words[0]}".') from None

        return Annotated[kind, PrimitiveConstructorSpec(1, metavar, read, lambda v: True, lambda v: [str(v)])]

    def _missing(self, words: Sequence[str]) -> str:
        try:
            values, _ = self._parse(words, ())
        except SystemExit:
            return _valueless(words, self._options())
        rows = {key: self.rows[key] for key in self.needed if key not in values}
        names = (row.place or f"{_option(key)} {_metavar(row.kind)}" for key, row in rows.items())
        return f"{self.program} needs {' and '.join(names)}."

    def _options(self) -> dict[str, Any]:
        """The types of the options, by what is typed."""
        single = {_option(key): row.kind for key, row in self.rows.items() if row.place is None}
        groups = self.groups.items()
        return single | {_option(key, name): row.kind for name, rows in groups for key, row in rows.items()}

    def _error(self, text: str) -> LrsaError:
        return LrsaError(f"{text} `{self.program} --help` explains")


def _gathered(words: Sequence[str]) -> list[str]:
    """What was typed, with options that may be repeated typed once: `--quantity a=... --quantity b=...`."""
    kept = [
        word
        for pair in (w.split("=", 1) if w.split("=")[0] in REPEATED else [w] for w in words)
        for word in pair
    ]
    for option, mark in REPEATED.items():
        at = [i for i, word in enumerate(kept[:-1]) if word == option]
        if len(at) > 1:
            value = mark.join(kept[i + 1] for i in at)
            dropped = {j for i in at[1:] for j in (i, i + 1)}
            kept = [word for i, word in enumerate(kept) if i not in dropped]
            kept[at[0] + 1] = value
    return kept


def _option(key: str, group: str = "") -> str:
    return f"--{group}{'.' if group else ''}{key.replace('_', '-')}"


def _reader(kind: Any) -> tuple[Callable[[str], Any], str, str]:
    """Of a number or a choice: how a word is read, what stands for it in the help, what it has to be."""
    if kind in (int, float):
        return kind, _metavar(kind), "a whole number" if kind is int else "a number"
    choices = {str(choice): choice for choice in get_args(kind)}
    *others, last = choices
    return choices.__getitem__, _metavar(kind), f"{', '.join(others)} or {last}" if others else last


def _metavar(kind: Any) -> str:
    return f"{{{','.join(map(str, get_args(kind)))}}}" if get_args(kind) else kind.__name__.upper()


def _unknown(words: Sequence[str], options: Collection[str]) -> str:
    typed = [word.partition("=")[0] for word in words if word.startswith("-")]
    if not typed:
        return f'"{words[0]}" is one word too many.'
    # Without the dashes, by which all are alike.
    near = difflib.get_close_matches(
        typed[0].lstrip("-"), [option[2:] for option in options], n=1, cutoff=0.5
    )
    return f'no option "{typed[0]}".' + (f" Did you mean --{near[0]}?" if near else "")


def _valueless(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """Which option has too few words after it."""
    starts = [i for i, word in enumerate(words) if word[:1] == "-" and word.lstrip("-")[:1].isalpha()]
    for here, following in pairwise([*starts, len(words)]):
        kind = options.get(words[here].replace("_", "-"), bool)
        parts = get_args(kind) if get_origin(kind) is tuple else (kind,)
        least = 0 if bool in parts or ... in parts else len(parts)
        if following - here <= least:
            return f"{words[here]} needs {'a value' if least == 1 else f'{least} values'}."
    return f'"{" ".join(words)}" is not understood.'
