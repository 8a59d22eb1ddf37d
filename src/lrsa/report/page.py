"""HTML pages from the templates beside this file. All that a page shows is inside it: nothing is loaded."""

import base64
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.colors import to_hex

from lrsa.report.pictures import ERROR, FIELD
from lrsa.report.printing import number


class Image(NamedTuple):
    """A picture with its words."""

    source: str
    """The PNG in base 64."""
    alt: str
    caption: str


class Table(NamedTuple):
    """Its first `words` columns are words, the others numbers."""

    head: Sequence[str]
    rows: Iterable[Sequence[str]]
    words: int = 1


class Scale(NamedTuple):
    """A colour scale with its two ends."""

    kind: str
    """`field` or `error`."""
    ends: tuple[str, str]
    words: str


class Bar(NamedTuple):
    """A value as a length beside others, the longest being 100."""

    name: str
    value: float
    percent: float
    kind: str


def render(template: str, **values: Any) -> str:
    """A template of this folder, filled in."""
    colours = {"field": _gradient(FIELD), "error": _gradient(ERROR)}
    return _environment().get_template(f"templates/{template}").render(colours=colours, **values)


def picture(data: bytes, alt: str, caption: str = "") -> Image:
    return Image(base64.b64encode(data).decode(), alt, caption)


def chart(path: Path, alt: str, caption: str = "") -> Image:
    return picture(path.read_bytes(), alt, caption)


def bars(rows: Sequence[tuple[str, float, str]]) -> list[Bar]:
    """Of (name, value, kind): lengths that can be compared at a glance; what is not known has none."""
    longest = max((value for _, value, _ in rows if value == value), default=1.0) or 1.0
    return [
        Bar(name, value, 100 * value / longest if value == value else 0.0, kind) for name, value, kind in rows
    ]


def ends(low: float, high: float) -> tuple[str, str]:
    """Two ends of a range in words; what is nothing beside the range is 0."""
    least = 1e-6 * (high - low)
    return tuple(f"{0.0 if abs(end) < least else end:.3g}" for end in (low, high))  # pyright: ignore[reportReturnType]


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "breakable": _breakable}
    return made


def _breakable(words: str) -> Markup:
    """Long names may break after an underscore."""
    return escape(words).replace("_", Markup("_<wbr>"))


def _gradient(cmap: str) -> str:
    stops = (to_hex(matplotlib.colormaps[cmap](i / 10)) for i in range(11))
    return f"linear-gradient(90deg, {', '.join(stops)})"
