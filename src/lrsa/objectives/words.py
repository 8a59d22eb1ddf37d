"""How losses and metrics are spelled: a name, the fields it is about, and the points.

    mse                 of all fields at all points
    mse:u:v             of the fields u and v
    mse:p@surface       of the field p at the points of the surface (@volume: at all others)

A loss is a sum of them, each with a weight where it is not 1; metrics are separated by commas:

    mse@volume + mse@surface
    mse:u:v:w + 0.5*mse:p@surface
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from lrsa.errors import LrsaError, nearest


@dataclass(frozen=True)
class Word:
    """One of them, as typed."""

    name: str
    fields: tuple[str, ...] = ()
    where: str = ""
    """surface, volume, or all points."""

    def __str__(self) -> str:
        return ":".join((self.name, *self.fields)) + (f"@{self.where}" if self.where else "")

    def check(self, targets: Sequence[str], surface: bool) -> None:
        """Refuse data without the fields, or without a surface."""
        for field in self.fields:
            if field not in targets:
                there = ", ".join(targets)
                raise LrsaError(f'"{self}": no target "{field}".{nearest(field, targets)} There are: {there}')
        if self.where and not surface:
            raise LrsaError(
                f'"{self}" needs to know which points are on the surface, and the data does not say.'
                " Import it with --derive surface, or leave out the @"
            )

    def counted(self, targets: Sequence[str], known: Any, surface: Any, array: Callable[[Any], Any]) -> Any:
        """Which targets it is about, of those that are `known` (..., N, o); `surface` (..., N). None: all.

        Bool, (..., N, o) or what broadcasts to it; of numpy or torch, as `array` makes one of a list.
        """
        self.check(targets, surface is not None)
        parts = [] if known is None else [known]
        if self.fields:
            parts.append(array([[target in self.fields for target in targets]]))
        if self.where:
            parts.append((surface if self.where == "surface" else ~surface)[..., None])
        return reduce(and_, parts) if parts else None


def word(text: str, kind: str, known: Iterable[str]) -> Word:
    """A word of that kind; what is none is refused with the nearest of the `known`."""
    head, at, where = text.strip().partition("@")
    name, *fields = head.split(":")
    if name not in known:
        raise LrsaError(f'no {kind} "{name}".{nearest(name, known)} There are: {", ".join(known)}')
    if at and where not in ("surface", "volume"):
        raise LrsaError(f'"{text}": the points are those @surface or @volume, not @{where}')
    if not all(fields):
        raise LrsaError(f'"{text}": a field has no name. Write it as in {name}:p')
    return Word(name, tuple(fields), where)


def terms(text: str, known: Iterable[str]) -> tuple[tuple[float, Word], ...]:
    """The weights and words of a loss."""
    return tuple(_term(part, known) for part in text.split("+"))


def _term(text: str, known: Iterable[str]) -> tuple[float, Word]:
    factor, star, rest = text.rpartition("*")
    try:
        weight = float(factor) if star else 1.0
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise LrsaError(f'"{text.strip()}": a weight is a positive number, as in 0.5*mse')
    return weight, word(rest, "loss", known)


def labels(targets: Sequence[str], channels: int) -> list[str]:
    """What the target fields are called: u0, u1, ... where the data does not say."""
    return list(targets) or [f"u{i}" for i in range(channels)]
