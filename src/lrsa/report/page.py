"""Pieces of the HTML page: tables, bars, pictures with their colour scale. Nothing is loaded."""

import base64
import html
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib
from matplotlib.colors import to_hex

from lrsa.report.pictures import ERROR, FIELD

STYLE = (Path(__file__).parent / "report.css").read_text()


def document(title: str, body: Iterable[str]) -> str:
    """A whole page."""
    maps = " ".join(f"--{name}: {_gradient(cmap)};" for name, cmap in (("field", FIELD), ("error", ERROR)))
    return "\n".join(
        (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>",
            "<meta name=viewport content='width=device-width, initial-scale=1'>",
            f"<style>:root {{ {maps} }}\n{STYLE}</style><main>",
            *body,
            "</main></html>",
        )
    )


def section(title: str, *content: str) -> str:
    return f"<section><h2>{html.escape(title)}</h2>{''.join(content)}</section>"


def text(words: str, kind: str = "") -> str:
    return f"<p class='{kind}'>{html.escape(words)}</p>"


def pairs(rows: Iterable[tuple[str, str]], title: str = "") -> str:
    """Names and values, one below the other."""
    body = "".join(f"<div><dt>{html.escape(a)}</dt><dd>{html.escape(b)}</dd></div>" for a, b in rows)
    head = f"<h3>{html.escape(title)}</h3>" if title else ""
    return f"<div class=card>{head}<dl class=pairs>{body}</dl></div>"


def tiles(rows: Iterable[tuple[str, str]]) -> str:
    """Values in large letters, side by side."""
    body = "".join(f"<div><dd>{html.escape(b)}</dd><dt>{html.escape(a)}</dt></div>" for a, b in rows)
    return f"<dl class=tiles>{body}</dl>"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table; its first `words` columns are words, the others numbers."""

    def cells(tag: str, values: Sequence[str]) -> str:
        kinds = ["" if i < words else " class=n" for i in range(len(values))]
        return "".join(f"<{tag}{k}>{_breakable(v)}</{tag}>" for k, v in zip(kinds, values, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{cells('th', head)}</tr></thead>{body}</table></div>"


def bars(rows: Sequence[tuple[str, float, str, str]]) -> str:
    """Rows of (name, value, the value in words, kind): lengths that can be compared at a glance."""
    longest = max((value for _, value, _, _ in rows if value == value), default=1.0) or 1.0
    body = "".join(
        f"<div class='bar {kind}'><span>{html.escape(name)}</span><b>{html.escape(words)}</b>"
        f"<i style='width:{100 * (value if value == value else 0) / longest:.1f}%'></i></div>"
        for name, value, words, kind in rows
    )
    return f"<div class=bars>{body}</div>"


def picture(data: bytes, alt: str, caption: str = "") -> str:
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    source = base64.b64encode(data).decode()
    return f"<figure><img alt='{html.escape(alt)}' src='data:image/png;base64,{source}'>{below}</figure>"


def chart(path: Path, alt: str, caption: str = "") -> str:
    return picture(path.read_bytes(), alt, caption)


def scale(kind: str, low: float, high: float, words: str) -> str:
    """A colour scale with its two ends: `field` or `error`."""
    numbers = "".join(f"<span>{end}</span>" for end in ends(low, high))
    return (
        f"<div class=scale><i class={kind}></i><div>{numbers}</div><small>{html.escape(words)}</small></div>"
    )


def ends(low: float, high: float) -> tuple[str, str]:
    """Two ends of a range in words; what is nothing beside the range is 0."""
    least = 1e-6 * (high - low)
    return tuple(f"{0.0 if abs(end) < least else end:.3g}" for end in (low, high))  # pyright: ignore[reportReturnType]


def fold(title: str, content: str, opened: bool = False) -> str:
    """Content that opens on a click."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{html.escape(title)}</summary>{content}</details>"


def _breakable(words: str) -> str:
    """Long names may break after an underscore."""
    return html.escape(words).replace("_", "_<wbr>")


def _gradient(cmap: str) -> str:
    stops = (to_hex(matplotlib.colormaps[cmap](i / 10)) for i in range(11))
    return f"linear-gradient(90deg, {', '.join(stops)})"
