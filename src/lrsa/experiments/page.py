"""The page of an experiment: tables of values beside the printed ones, pictures, notes; Markdown and HTML."""

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from lrsa.files import atomic
from lrsa.report import page as html
from lrsa.report.figures import STYLE

matplotlib.use("Agg")
MISSING = "not run"


@dataclass(frozen=True)
class Value:
    """A place in a table: a number, and below it what the paper prints; or words, and below them more."""

    text: str = ""
    printed: str = ""
    kind: str = ""
    """best, second, missing, good, bad, open; else nothing."""
    note: str = ""
    """What a reader sees who points at it."""


@dataclass(frozen=True)
class Grid:
    """A table: a head, and rows whose first place is their name."""

    head: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Value]]]
    title: str = ""
    folded: bool = False
    """Whether a page shows only its title at first."""
    words: bool = False
    """Whether its places are sentences."""


@dataclass(frozen=True)
class Plot:
    """A picture with its words; drawn when the page is written."""

    suffix: str
    """Of its file, after the name of the page; may be empty."""
    alt: str
    caption: str
    figure: Figure

    @cached_property
    def png(self) -> bytes:
        """Drawn once, for its file and the pages that hold it."""
        file = io.BytesIO()
        with matplotlib.rc_context(STYLE):
            self.figure.savefig(file, format="png")
        return file.getvalue()


@dataclass(frozen=True)
class Section:
    title: str = ""
    text: Sequence[str] = ()
    grids: Sequence[Grid] = ()
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Page:
    """What a reader sees of an experiment."""

    name: str
    title: str
    lead: str
    command: str
    stem: str
    """Of its files."""
    kicker: str = ""
    sections: Sequence[Section] = ()
    data: Any = field(default_factory=dict)
    """The numbers behind it."""


def number(value: float | None) -> str:
    """Four decimals, or three digits where these say more; nothing where there is none."""
    if value is None or math.isnan(value):
        return ""
    four = f"{value:.4f}"
    return four if abs(value) >= 0.01 or (value and abs(float(four) - value) < 1e-9) else f"{value:.3g}"


def around(mean: float, deviation: float) -> str:
    """`0.00169 ± 0.00003`: the deviation to as many places as the mean."""
    shown = number(mean)
    places = len(shown.partition(".")[2])
    return f"{shown} ± {deviation:.1g}" if "e" in shown else f"{shown} ± {deviation:.{places}f}"


def write_page(out: Path, page: Page) -> Path:
    """Write .json, .md, .html and the pictures of a page into the folder `out`; the path of the HTML."""
    for section in page.sections:
        for plot in section.plots:
            with atomic(out / _picture(page, plot)) as temporary:
                temporary.write_bytes(plot.png)
    with atomic(out / f"{page.stem}.json") as temporary:
        # JSON has no NaN: what is not defined is null.
        data = json.loads(json.dumps(page.data), parse_constant=lambda _: None)
        temporary.write_text(json.dumps({"command": page.command, **data}, indent=1) + "\n")
    with atomic(out / f"{page.stem}.md") as temporary:
        temporary.write_text(_markdown(page))
    return write_html(out / f"{page.stem}.html", page.title, [page])


def write_html(path: Path, title: str, pages: Sequence[Page], lead: str = "", about: str = "") -> Path:
    """One page of several, offline: all pictures are inside."""
    pictures = {
        (page.name, plot.suffix): html.picture(plot.png, plot.alt, plot.caption)
        for page in pages
        for section in page.sections
        for plot in section.plots
    }
    with atomic(path) as temporary:
        temporary.write_text(
            html.render("paper.html", title=title, pages=pages, pictures=pictures, lead=lead, about=about)
        )
    return path


def _picture(page: Page, plot: Plot) -> str:
    return f"{'-'.join(filter(None, [page.stem, plot.suffix]))}.png"


def _markdown(page: Page) -> str:
    lines = [f"# {page.title}", "", page.lead, "", f"Made by `{page.command}`."]
    for section in page.sections:
        lines += ["", f"## {section.title}"] if section.title else []
        for text in section.text:
            lines += ["", text]
        for plot in section.plots:
            lines += ["", f"![{plot.alt}]({_picture(page, plot)})", "", plot.caption]
        for grid in section.grids:
            lines += ["", *([f"### {grid.title}", ""] if grid.title else []), *_rows(grid)]
        lines += ["", *(f"- {note}" for note in section.notes)] if section.notes else []
    return "\n".join([*lines, ""])


def _rows(grid: Grid) -> list[str]:
    rule = "|---" if grid.words else "|---:"
    return [
        f"| {' | '.join(grid.head)} |",
        "|---" + rule * (len(grid.head) - 1) + "|",
        *(
            f"| {' | '.join([name, *(_place(v, grid.words) for v in values)])} |"
            for name, values in grid.rows
        ),
    ]


def _place(value: Value, words: bool) -> str:
    text = f"**{value.text}**" if value.kind == "best" else value.text
    printed = f"({'' if words else 'paper '}{value.printed})" if value.printed else ""
    return " ".join(filter(None, [text, printed])).replace("|", "\\|")
