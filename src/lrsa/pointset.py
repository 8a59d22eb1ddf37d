"""The one sample type: coordinates, input features and target fields at the points of one case."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from lrsa.errors import LrsaError

FLAT = 0.05
"""Cells of four points in space are quadrilaterals where 6 V / L³ is below this (regular tetrahedra: 0.7)."""
PLANAR = 1e-6
"""Of the largest extent, what the smallest may be in a plane: meshes in a plane are often stored in space."""
IN_PLANE = {0: 0, 1: 1, 2: 3, 3: 5, 4: 9}
IN_SPACE = {0: 0, 1: 1, 2: 3, 3: 5, 4: 10, 5: 14, 6: 13, 8: 12, 10: 24, 13: 27, 15: 26, 20: 25, 27: 29}
"""Number of points -> VTK type, for `cell_types_of`."""
ROUNDING = 1e-5
"""Of the extent, what rounding to single precision may move coordinates and times by."""
FEW, SCATTERED = 20, 0.5
"""Cases that tell whether points correspond; they do not where those of one number have more than this share
of the variance of all places."""
LOOKED_AT = 1000
"""Cells of four points of which most tell whether all are flat."""

Stride = int | tuple[int, ...]
"""Every so-many-th point along each axis of a grid: one number for all axes, or one for each."""


@dataclass(frozen=True)
class Names:
    """What the channels are called, and in which units."""

    coords: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    up: str = ""
    """The coordinate that points upwards in pictures; by default it is found by symmetry."""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class PointSet:
    """One case, as numpy arrays in physical units. Only `x` is compulsory."""

    x: np.ndarray
    """(N, p) coordinates."""
    f: np.ndarray | None = None
    """(N, c) input features."""
    u: np.ndarray | None = None
    """(N, o) target fields, or (T, N, o) frames in time."""
    u_mask: np.ndarray | None = None
    """(N, o) bool, True where the target is known."""
    weights: np.ndarray | None = None
    """(N,) the measure of the domain that each point stands for. A point of weight 0 only reads: it asks for
    fields, and no other point hears of it."""
    cells: np.ndarray | None = None
    """(C, k) connectivity, filled up with -1 where cells have fewer than k points."""
    cell_types: np.ndarray | None = None
    """(C,) uint8: VTK's type of each cell, whose points are in VTK's order; by default `cell_types_of`."""
    grid: tuple[int, ...] | None = None
    """Index shape of a structured mesh, whose row-major flattening the points are."""
    surface: np.ndarray | None = None
    """(N,) bool, True on the surface of the body."""
    globals: np.ndarray | None = None
    """(g,) parameters of the whole case."""
    times: np.ndarray | None = None
    """(T,) the times of the frames."""
    time: np.ndarray | None = None
    """() the time of this frame, where one frame was picked."""
    redraws: np.ndarray | None = None
    """() how many random draws failed before the one of this case, where a solver draws again."""
    f_mask: np.ndarray | None = None
    """(N, c) bool, True where the input is known; None: everywhere. What f holds elsewhere means nothing."""
    iterations: np.ndarray | None = None
    """() how many of them a solver took to settle."""
    residual: np.ndarray | None = None
    """() the largest one of all equations at the end, where a solver iterates."""
    parts: np.ndarray | None = None
    """(N, k) bool, True on each of the named parts: patches of a boundary, blocks of a mesh."""
    names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        if np.ndim(self.x) != 2:
            raise LrsaError(f"x must be (points, coordinates), not of shape {np.shape(self.x)}")
        n, frames = len(self.x), np.shape(self.times)[:1] if self.times is not None else ()
        expected = {
            "x": (n, None),
            "f": (n, None),
            "u": (*frames, n, None),
            "u_mask": (n, None),
            "f_mask": (n, *np.shape(self.f)[1:]) if self.f is not None else (n, 0),
            "weights": (n,),
            "cells": (None, None),
            "cell_types": (None,) if self.cells is None else np.shape(self.cells)[:1],
            "surface": (n,),
            "parts": (n, None),
            "globals": (None,),
            "times": (None,),
            "time": (),
            "redraws": (),
            "iterations": (),
            "residual": (),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, np.ndarray):
                object.__setattr__(self, name, value := np.asarray(value))
            if value is not None and not _fits(np.shape(value), shape):
                wanted = ", ".join("any" if s is None else str(s) for s in shape)
                raise LrsaError(f"{name} has shape {np.shape(value)}; it should be ({wanted})")
        if self.f_mask is not None and self.f_mask.dtype != bool:
            raise LrsaError(f"f_mask must be of bool, True where an input is known, not {self.f_mask.dtype}")
        if self.cells is not None or self.cell_types is not None:
            object.__setattr__(self, "cell_types", self._types())
        if self.grid is not None:
            object.__setattr__(self, "grid", tuple(int(size) for size in self.grid))
            if math.prod(self.grid) != n:
                raise LrsaError(f"a grid {self.grid} has {math.prod(self.grid)} points, but x has {n}")

    def __len__(self) -> int:
        return len(self.x)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that are there, by name."""
        every = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in every.items() if isinstance(value, np.ndarray)}

    def check_finite(self, where: str) -> None:
        """Refuse NaN, what is infinite in single precision, senseless weights and cells, and no points."""
        if not len(self):
            raise LrsaError(f"{where} has no points. Remove the case")
        if self.weights is not None and (self.weights.min() < 0 or not self.weights.any()):
            raise LrsaError(
                f"{where} has weights that are negative or all zero. They are measures of the domain"
            )
        if (
            self.cells is not None
            and self.cells.size
            and not -1 <= self.cells.min() <= self.cells.max() < len(self)
        ):
            raise LrsaError(f"{where} has cells that name points that are not there. Remove the case")
        for name, value in self.arrays().items():
            if value.dtype.kind == "f" and not (finite := _finite(value)).all():
                bad = np.isnan(value).any()
                channel = self._channel(name, finite)
                raise LrsaError(
                    f"{where} has {'NaN' if bad else 'infinite values'} in {channel}. Remove the case"
                )

    def frame(self, index: int) -> "PointSet":
        """One frame of a case that has frames."""
        assert self.u is not None
        assert self.times is not None
        return replace(self, u=self.u[index], time=np.asarray(self.times[index]), times=None)

    def window(self, first: int, length: int) -> "PointSet":
        """Some frames in a row of a case that has frames."""
        assert self.u is not None
        assert self.times is not None
        frames = slice(first, first + length)
        return replace(self, u=self.u[frames], times=self.times[frames])

    def strided(self, stride: Stride) -> "PointSet":
        """Every `stride`-th point along each axis of the grid, or of the list where there is no grid."""
        steps = self.steps(stride)
        if max(steps) == 1:
            return self
        shape = self.grid or (len(self),)
        index = np.arange(len(self)).reshape(shape)[tuple(slice(None, None, step) for step in steps)]
        return self.subset(index.ravel(), index.shape if self.grid else None)

    def steps(self, stride: Stride) -> tuple[int, ...]:
        """The stride along each axis of the grid, or of the list of points."""
        axes = len(self.grid or (0,))
        if isinstance(stride, int):
            return (stride,) * axes
        if len(stride) != axes:
            what = f"a grid of {axes} axes" if self.grid else "no grid"
            raise LrsaError(
                f"the stride {stride_name(stride)} is of {len(stride)} axes; the points have {what}"
            )
        return stride

    def subset(self, index: np.ndarray, grid: tuple[int, ...] | None = None) -> "PointSet":
        """Some of the points, in the order of `index`; cells do not survive."""
        per_point = {
            name: value[..., index, :] if name == "u" else value[index]
            for name, value in self.arrays().items()
            if name in ("x", "f", "f_mask", "u", "u_mask", "weights", "surface", "parts")
        }
        return replace(self, **per_point, cells=None, cell_types=None, grid=grid)

    def _types(self) -> np.ndarray:
        if self.cells is None:
            raise LrsaError("cell_types are there without cells. Give both, or leave both out")
        if self.cell_types is None:
            return cell_types_of(self.x, self.cells)
        if self.cell_types.dtype == np.uint8:
            return self.cell_types
        with np.errstate(invalid="ignore"):
            small = self.cell_types.astype(np.int64).astype(np.uint8)
        if not np.array_equal(small, self.cell_types):
            raise LrsaError("cell_types must be VTK's: whole numbers from 0 to 255, such as 5 for triangles")
        return small

    def _channel(self, name: str, finite: np.ndarray) -> str:
        kind, labels = {
            "x": ("coordinate", self.names.coords),
            "f": ("input", self.names.inputs),
            "u": ("target", self.names.targets),
            "globals": ("parameter", self.names.globals),
        }.get(name, ("", ()))
        if (len(labels),) != finite.shape[-1:]:
            return name
        bad = ~finite.reshape(-1, len(labels)).all(axis=0)
        return f"{kind} {labels[int(bad.argmax())]}"


def stride_name(stride: Stride) -> str:
    """`2`, or `2x1` where it differs from axis to axis."""
    return str(stride) if isinstance(stride, int) else "x".join(map(str, stride))


def cell_types_of(x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(C,) the VTK types of cells (C, k) that come without: the one place where types are guessed.

    In a plane, of two coordinates or of three of which one is constant, two points are a line, three a
    triangle, four a quadrilateral and more a polygon, in order around it. In space, four points are
    quadrilaterals where most of such cells lie flat, else tetrahedra; five are a pyramid, six a wedge, eight
    a hexahedron; ten, 13, 15, 20 and 27 their quadratic kin. Other numbers say nothing: their type is 255.
    """
    if cells.size and not -1 <= cells.min() <= cells.max() < len(x):
        raise LrsaError(f"cells name points from {cells.min()} to {cells.max()}, but there are {len(x)}")
    alike = cells.min(initial=0) >= 0
    counts = np.full(len(cells), cells.shape[1]) if alike else np.count_nonzero(cells >= 0, axis=1)
    with np.errstate(all="ignore"):  # coordinates that are not finite are told of by `check_finite`
        extent = [float(np.ptp(axis)) if len(x) else 0.0 for axis in x.T]
        planar = len(extent) < 3 or min(extent) <= PLANAR * max(extent)
        flat = len(extent) == 3 and not planar and _are_flat(x, cells[counts == 4, :4])
    known, other = (IN_PLANE, 7) if planar else (IN_SPACE | ({4: 9} if flat else {}), 255)
    table = [known.get(count, other) for count in range(cells.shape[1] + 1)]
    return np.array(table, np.uint8)[counts]


def _are_flat(x: np.ndarray, cells: np.ndarray) -> bool:
    """Whether most of these cells of four points (C, 4) are quadrilaterals, not tetrahedra."""
    if not len(cells):
        return False
    corners = x[cells[:: -(-len(cells) // LOOKED_AT)]]  # (n, 4, 3)
    edges = corners[:, 1:] - corners[:, :1]
    longest = np.linalg.norm(edges, axis=-1).max(axis=1)
    return bool(np.median(np.abs(np.linalg.det(edges)) / np.maximum(longest, 1e-300) ** 3) < FLAT)


def corresponding(cases: Iterable[PointSet]) -> bool:
    """Whether point i of one case can stand for point i of every other: one size, mesh and mask.

    Points beside a mesh, in none of its cells, do so where they are at the same places.
    """
    cases = iter(cases)
    first = next(cases)
    beside = np.full(len(first), first.cells is not None)
    if first.cells is not None:
        beside[first.cells[first.cells >= 0]] = False
    return all(
        len(case) == len(first)
        and np.array_equal(case.x[beside], first.x[beside])
        and all(_equal(getattr(case, k), getattr(first, k)) for k in ("cells", "u_mask", "f_mask"))
        for case in cases
    )


def scattered(cases: Sequence[PointSet]) -> bool:
    """Whether point i lies anywhere, where no cells and no grid say that it is the same in all cases."""
    if cases[0].cells is not None or cases[0].grid is not None:
        return False
    x = np.stack([cases[i].x.astype(float) for i in range(min(len(cases), FEW))])
    return bool(x.var(axis=0).mean(0).sum() > SCATTERED * x.reshape(-1, x.shape[-1]).var(axis=0).sum())


def check_digits(values: np.ndarray, where: str, what: str) -> None:
    """Refuse (N, p) coordinates or (T,) times that single precision moves by too much of their extent.

    They are stored and learned in it: at 1e6 it knows no more than sixteenths. What was in single precision
    before loses nothing more, and an axis on which all agree is not learned.
    """
    if values.dtype == np.float32 or not values.size:
        return
    columns = values.reshape(len(values), -1).astype(np.float64)
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    if not columns.size:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        moved = np.abs(columns - columns.astype(np.float32)).max()
    share = moved / np.ptp(columns, axis=0).max()
    if share > ROUNDING:
        raise LrsaError(
            f"{where} has {what} too far from 0: single precision moves them by {share:.1g} of their extent."
            f" Subtract the same origin from all cases, e.g. {', '.join(f'{v:g}' for v in columns.min(0))}"
        )


def _equal(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _finite(value: np.ndarray) -> np.ndarray:
    """Where the values are finite in the single precision in which they are stored and learned."""
    with np.errstate(over="ignore"):
        return np.isfinite(value.astype(np.float32, copy=False))


def _fits(shape: tuple[int, ...], expected: tuple[Any, ...]) -> bool:
    return len(shape) == len(expected) and all(
        want is None or have == want for have, want in zip(shape, expected, strict=True)
    )
