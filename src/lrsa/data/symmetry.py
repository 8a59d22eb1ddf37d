"""Exact symmetries: maps that take a case, its answer included, to a case of the same problem.

A symmetry is named by words joined by commas, each of them a group of which a draw takes one element:

    square              the eight of the square: mirror-x,mirror-y,swap
    mirror-y            y -> 2c - y, c the middle of the training cases; `mirror-y@0` about y = 0
    mirror-y:v:alpha    the same, where the fields or parameters v and alpha change their sign
    mirror-x:@x_t       the same for x, where the field x_t is itself an abscissa: x_t -> 2c - x_t
    torus-shift         shifts of a periodic grid
    torus-wave:w        those of a forced flow on the unit torus, of vorticity w
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lrsa.data.motions import IDENTITY, SAME, Chain, Element, Mirror, Swap, TorusMap, channels
from lrsa.errors import LrsaError, nearest
from lrsa.pointset import PointSet

Factors = list[Sequence[Element]]
"""A group as a product of sets: one element of each, in this order, is one element of the group."""


@dataclass(frozen=True)
class Word:
    """One word of a symmetry, as typed."""

    name: str
    place: float | None = None
    odd: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


Middle = tuple[float, ...]
Making = Callable[[Word, PointSet, Middle], Factors]


def _mirror(axis: int) -> Making:
    def factors(word: Word, case: PointSet, middle: Middle) -> Factors:
        if axis >= case.x.shape[1]:
            raise LrsaError(f"{word.name} needs {axis + 1} coordinates, and the case has {case.x.shape[1]}")
        place = middle[axis] if word.place is None else word.place
        return [(IDENTITY, Mirror(axis, place, word.odd, word.places))]

    return factors


def _swap(word: Word, case: PointSet, middle: Middle) -> Factors:
    if case.x.shape[1] != 2:
        raise LrsaError(f"{word.name} needs two coordinates, and the case has {case.x.shape[1]}")
    if case.grid is not None and (len(case.grid) != 2 or case.grid[0] != case.grid[1]):
        raise LrsaError(f"{word.name} needs a square grid, and the case has {_shape(case)}")
    return [(IDENTITY, Swap((middle[0], middle[1])))]


def _torus_shift(word: Word, case: PointSet, middle: Middle) -> Factors:
    """(x, y) -> (x + a, y + b)."""
    rows, columns = _periodic(word, case)
    return [
        [TorusMap(shift=(a, 0)) for a in range(rows)],
        [TorusMap(shift=(0, b)) for b in range(columns)],
    ]


def _torus_wave(word: Word, case: PointSet, middle: Middle) -> Factors:
    """All that leaves a flow on the unit torus with the force F(x + y), F = sin 2πs + cos 2πs, as it is.

    A motion that turns x + y into ±(x + y) + b keeps the force on the vorticity if F(±s + b) = F(s); a
    mirror, which changes the sign of the vorticity, if F(±s + b) = -F(s). With F(¼ - s) = F(s) = -F(s + ½):

        (x + s, y - s),   (-x, ¼ - y),   (y, x + ½) with the sign of the vorticity, and their products.
    """
    rows, columns = _periodic(word, case)
    if rows != columns or rows % 4:
        raise LrsaError(
            f"{word.name} needs a square grid of a multiple of four points along each side, and the case"
            f" has {_shape(case)}"
        )
    return [
        [TorusMap(shift=(s, -s)) for s in range(rows)],
        (IDENTITY, TorusMap(((-1, 0), (0, -1)), (0, rows // 4))),
        (IDENTITY, TorusMap(((0, 1), (1, 0)), (0, rows // 2), word.odd)),
    ]


GROUPS: dict[str, Making] = {
    "mirror-x": _mirror(0),
    "mirror-y": _mirror(1),
    "mirror-z": _mirror(2),
    "swap": _swap,
    "torus-shift": _torus_shift,
    "torus-wave": _torus_wave,
}
SHORT = {"square": "mirror-x,mirror-y,swap"}
"""Names of products."""
MIRRORS = ("mirror-x", "mirror-y", "mirror-z")
"""What stands at a place, and knows vectors."""


def parse(text: str) -> tuple[Word, ...]:
    """The words of a symmetry; what is none is refused."""
    for short, product in SHORT.items():
        text = ",".join(product if word.strip() == short else word for word in text.split(","))
    return tuple(_word(word.strip()) for word in text.split(",")) if text else ()


def _word(text: str) -> Word:
    head, *fields = text.split(":")
    name, at, place = head.partition("@")
    if name in SHORT:
        raise LrsaError(f"{name} takes neither places nor fields. Write {SHORT[name]} instead, with theirs")
    if name not in GROUPS:
        known = (*SHORT, *GROUPS)
        raise LrsaError(f'no symmetry "{name}".{nearest(name, known)} There are: {", ".join(known)}')
    odd = tuple(field for field in fields if not field.startswith("@"))
    places = tuple(field[1:] for field in fields if field.startswith("@"))
    if name not in MIRRORS and (at or places or (odd and name != "torus-wave")):
        raise LrsaError(f'"{text}": {name} takes no place and no such fields. Mirrors do')
    try:
        return Word(name, float(place) if at else None, odd, places)
    except ValueError:
        raise LrsaError(f'"{text}": a mirror stands at a number, as in {name}@0.5') from None


@dataclass(frozen=True)
class Symmetry:
    """The product of the groups of its words."""

    words: tuple[Word, ...] = ()
    middle: Middle = ()
    """Of the training cases: where a mirror stands that says nothing else."""

    @staticmethod
    def of(text: str, cases: Sequence[PointSet]) -> "Symmetry":
        words = parse(text)
        if all(word.place is not None or word.name.startswith("torus") for word in words):
            return Symmetry(words)
        low = np.min([case.x.min(0) for case in cases], axis=0)
        high = np.max([case.x.max(0) for case in cases], axis=0)
        return Symmetry(words, tuple(((low.astype(float) + high) / 2).tolist()))

    def factors(self, case: PointSet) -> Factors:
        """The group for cases like this one, which is refused if it lacks what the group needs."""
        for word in self.words:
            _check_fields(word, case)
        return [factor for word in self.words for factor in GROUPS[word.name](word, case, self.middle)]

    def draw(self, case: PointSet, rng: np.random.Generator) -> Chain:
        """One element, each as probable as the others."""
        return Chain(tuple(factor[int(rng.integers(len(factor)))] for factor in self.factors(case)))

    def elements(self, case: PointSet) -> list[Chain]:
        """The whole group."""
        return [Chain(chosen) for chosen in itertools.product(*self.factors(case))]


def _check_fields(word: Word, case: PointSet) -> None:
    known = [name for names in channels(case).values() for name in names]
    for field in (*word.odd, *word.places):
        if field not in known:
            there = ", ".join(known)
            raise LrsaError(
                f'{word.name}: no field or parameter "{field}".{nearest(field, known)} There are: {there}'
            )


def _periodic(word: Word, case: PointSet) -> tuple[int, int]:
    """The shape of a grid of which the first index runs along x, the second along y, in even steps."""
    if case.grid is None or len(case.grid) != 2 or min(case.grid) < 2 or case.x.shape[1] != 2:
        raise LrsaError(f"{word.name} needs a grid of two axes, and the case has {_shape(case)}")
    low, high = case.x[0], case.x[-1]
    steps = np.indices(case.grid).reshape(2, -1).T / (np.array(case.grid) - 1)
    if np.abs(low + steps * (high - low) - case.x).max() > SAME * np.abs(high - low).max():
        raise LrsaError(f"{word.name} needs an even grid along x and y, and that of the case is none")
    return case.grid[0], case.grid[1]


def _shape(case: PointSet) -> str:
    return "no grid" if case.grid is None else f"one of {' x '.join(map(str, case.grid))}"
