"""The table of models: what `lrsa models` prints, and `lrsa.list_models()` shows in a notebook."""

from collections.abc import Sequence

from jinja2 import Environment
from rich.console import Console
from rich.table import Table

from lrsa.console import console
from lrsa.models.matching import parameter_count
from lrsa.models.registry import DATA_ARGUMENTS, KINDS, get, names

HEAD = ("model", "paper", "takes", "parameters", "published for")
CAPTION = "parameters: default options, two coordinates, one input, one field\ntakes: " + "; ".join(
    f"{kind} = {meaning}" for kind, meaning in KINDS.items()
)
PAGE = Environment(autoescape=True).from_string(
    """<table><thead><tr>{% for word in head %}<th>{{ word }}</th>{% endfor %}</tr></thead><tbody>
{%- for row in rows %}<tr>{% for word in row %}<td>{{ word }}</td>{% endfor %}</tr>{% endfor -%}
</tbody></table><p>{% for line in caption %}{{ line }}{% if not loop.last %}<br>{% endif %}{% endfor %}</p>"""
)


class ModelNames(list[str]):
    """Names of models. Printed, or shown by a notebook, they are the table of `lrsa models`."""

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


def list_models() -> ModelNames:
    """The names of all models; `print` them to see paper, data and parameters of each."""
    return ModelNames(names())


def rows(models: Sequence[str]) -> list[tuple[str, str, str, str, str]]:
    """A row of the table for each of these models."""
    return [
        (
            name,
            get(name).paper,
            ", ".join(get(name).data),
            "fitted"
            if get(name).family == "fitted"
            else f"{parameter_count(name, dict(zip(DATA_ARGUMENTS, (2, 1, 1), strict=True))):,}",
            ", ".join(get(name).all_presets()) or "-",
        )
        for name in models
    ]


def as_table(models: Sequence[str]) -> Table:
    """For the console."""
    table = Table(*HEAD, box=None, padding=(0, 2, 0, 0), pad_edge=False, caption=CAPTION)
    table.caption_justify = "left"
    for column in table.columns:
        # What is cut off, or a name that is broken, cannot be copied.
        column.overflow, column.no_wrap = "fold", column.header in ("model", "parameters")
    for row in rows(models):
        table.add_row(*row)
    return table


def as_text(models: Sequence[str]) -> str:
    """What the console would print, without colours."""
    plain = Console(width=console.width, color_system=None)
    with plain.capture() as captured:
        plain.print(as_table(models))
    return captured.get().rstrip()


def as_html(models: Sequence[str]) -> str:
    """For a notebook."""
    return PAGE.render(head=HEAD, rows=rows(models), caption=CAPTION.splitlines())
