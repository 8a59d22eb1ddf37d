"""Maps of one case to another: mirrors of the points, and renumberings of the points of a periodic grid.

On a structured grid the points are renumbered, so that its index axes keep their sense; where the grid is its
own image, the points stay as they are and only what is known at them moves.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from lrsa.pointset import PointSet

SAME = 1e-5
"""Of the largest extent, how far apart the points of a grid and of its image are where they are the same."""


class Element(Protocol):
    """One map of a group."""

    def __call__(self, case: PointSet) -> PointSet: ...

    def inverse(self) -> "Element": ...


@dataclass(frozen=True)
class Chain:
    """Elements one after the other; of none, the identity."""

    elements: tuple[Element, ...] = ()

    def __call__(self, case: PointSet) -> PointSet:
        for element in self.elements:
            case = element(case)
        return case

    def inverse(self) -> "Chain":
        return Chain(tuple(element.inverse() for element in reversed(self.elements)))


@dataclass(frozen=True)
class Mirror:
    """x_k -> 2c - x_k."""

    axis: int
    place: float
    odd: tuple[str, ...] = ()
    """Fields that change their sign."""
    places: tuple[str, ...] = ()
    """Fields that are coordinates along the axis."""

    def __call__(self, case: PointSet) -> PointSet:
        x = case.x.copy()
        x[:, self.axis] = 2 * self.place - x[:, self.axis]
        moved = reflected(_moved(case, x), self.odd, 0.0)
        return reflected(moved, self.places, self.place)

    def inverse(self) -> "Mirror":
        return self


@dataclass(frozen=True)
class Swap:
    """(x, y) -> c + (y - c_y, x - c_x)."""

    middle: tuple[float, float]

    def __call__(self, case: PointSet) -> PointSet:
        x, (a, b) = case.x.copy(), self.middle
        x[:, 0], x[:, 1] = case.x[:, 1] + (a - b), case.x[:, 0] + (b - a)
        return _moved(case, x)

    def inverse(self) -> "Swap":
        return self


@dataclass(frozen=True)
class TorusMap:
    """i -> A i + b of the indices of a periodic grid, A a signed permutation; the points stay."""

    turn: tuple[tuple[int, int], tuple[int, int]] = ((1, 0), (0, 1))
    shift: tuple[int, int] = (0, 0)
    odd: tuple[str, ...] = ()
    """Fields that change their sign."""

    def __call__(self, case: PointSet) -> PointSet:
        assert case.grid is not None
        size = np.array(case.grid)[:, None]
        here = np.indices(case.grid).reshape(2, -1)
        there = (np.array(self.turn) @ here + np.array(self.shift)[:, None]) % size
        source = np.empty(len(case), int)
        source[np.ravel_multi_index(tuple(there), case.grid)] = np.arange(len(case))
        return reflected(_in_place(case, case.subset(source, case.grid)), self.odd, 0.0)

    def inverse(self) -> "TorusMap":
        back = np.array(self.turn).T
        (a, b), (c, d) = back.tolist()
        m, n = (-back @ self.shift).tolist()
        return TorusMap(((a, b), (c, d)), (m, n), self.odd)


IDENTITY = Chain()


def reflected(case: PointSet, fields: Sequence[str], place: float) -> PointSet:
    """v -> 2c - v for these fields and parameters."""
    changed = {}
    for kind, known in channels(case).items():
        value: np.ndarray | None = getattr(case, kind)
        chosen = [k for k, name in enumerate(known) if name in fields]
        if value is not None and chosen:
            changed[kind] = value.copy()
            changed[kind][..., chosen] = 2 * place - value[..., chosen]
    return replace(case, **changed) if changed else case


def channels(case: PointSet) -> dict[str, tuple[str, ...]]:
    return {"f": case.names.inputs, "u": case.names.targets, "globals": case.names.globals}


def _moved(case: PointSet, x: np.ndarray) -> PointSet:
    """The case at the points x (N, p), of a grid renumbered to be as near to the grid as it can be."""
    if case.grid is None:
        return replace(case, x=x)
    index = min(_renumberings(case.grid), key=lambda index: float(np.square(x[index] - case.x).sum()))
    moved = replace(case, x=x).subset(index, case.grid)
    extent = float(np.ptp(case.x, axis=0).max())
    same = np.abs(moved.x - case.x).max() <= SAME * extent
    return _in_place(case, moved) if same else moved


def _in_place(case: PointSet, moved: PointSet) -> PointSet:
    """What is known at the points of one, at the points and with the cells of the other."""
    return replace(moved, x=case.x, cells=case.cells, cell_types=case.cell_types)


@lru_cache(maxsize=8)
def _renumberings(grid: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """(N,) each: the flips and exchanges of index axes that keep the shape."""
    index, axes = np.arange(np.prod(grid)).reshape(grid), range(len(grid))
    exchanged = [index.transpose(order) for order in itertools.permutations(axes)]
    kept = [turned for turned in exchanged if turned.shape == grid]
    flips = [flip for count in range(len(grid) + 1) for flip in itertools.combinations(axes, count)]
    return tuple(np.flip(turned, flip).ravel() for turned in kept for flip in flips)
