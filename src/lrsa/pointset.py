"""The one sample type: coordinates, input features and target fields at the points of one case."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from lrsa.errors import LrsaError


@dataclass(frozen=True)
class Names:
    """What the channels are called, and in which units."""

    coords: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    globals: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)


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
    """(N,) the measure of the domain that each point stands for."""
    cells: np.ndarray | None = None
    """(C, k) connectivity, filled up with -1 where cells have fewer than k points."""
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
            "weights": (n,),
            "cells": (None, None),
            "surface": (n,),
            "globals": (None,),
            "times": (None,),
            "time": (),
            "redraws": (),
        }
        for name, shape in expected.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, np.ndarray):
                object.__setattr__(self, name, value := np.asarray(value))
            if value is not None and not _fits(np.shape(value), shape):
                wanted = ", ".join("any" if s is None else str(s) for s in shape)
                raise LrsaError(f"{name} has shape {np.shape(value)}; it should be ({wanted})")
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
        """Refuse NaN, what is infinite in single precision, senseless weights and no points at all."""
        if not len(self):
            raise LrsaError(f"{where} has no points. Remove the case")
        if self.weights is not None and (self.weights.min() < 0 or not self.weights.any()):
            raise LrsaError(
                f"{where} has weights that are negative or all zero. They are measures of the domain"
            )
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

    def strided(self, stride: int) -> "PointSet":
        """Every `stride`-th point along each axis of the grid, or of the list where there is no grid."""
        if stride == 1:
            return self
        shape = self.grid or (len(self),)
        index = np.arange(len(self)).reshape(shape)[(slice(None, None, stride),) * len(shape)]
        return self.subset(index.ravel(), index.shape if self.grid else None)

    def subset(self, index: np.ndarray, grid: tuple[int, ...] | None = None) -> "PointSet":
        """Some of the points, in the order of `index`; cells do not survive."""
        per_point = {
            name: value[..., index, :] if name == "u" else value[index]
            for name, value in self.arrays().items()
            if name in ("x", "f", "u", "u_mask", "weights", "surface")
        }
        return replace(self, **per_point, cells=None, grid=grid)

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


def _finite(value: np.ndarray) -> np.ndarray:
    """Where the values are finite in the single precision in which they are stored and learned."""
    with np.errstate(over="ignore"):
        return np.isfinite(value.astype(np.float32, copy=False))


def _fits(shape: tuple[int, ...], expected: tuple[Any, ...]) -> bool:
    return len(shape) == len(expected) and all(
        want is None or have == want for have, want in zip(shape, expected, strict=True)
    )
