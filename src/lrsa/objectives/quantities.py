"""Quantities of interest that a user names: one number of a whole case, of its predicted or true fields.

    lift=force:p@wing,across=u_inlet:v_inlet,speed=u_inlet:v_inlet,density=1.2,area=0.3
    drag=force:p:wall_shear@surface,along=x,area=2.1;peak=max:von_mises;heat=integral:q@inlet

A quantity is NAME=KIND:FIELDS@WHERE,OPTION=VALUE,...; several are separated by semicolons. A field is a
target; the name of a vector stands for its length, and in the second place of a force for the vector.

    integral, mean     of a field over the domain, over its surface or over a part (without cells and weights,
                       the mean over the points)
    max, min           of a field at these points
    force              ∫ (-p n + τ) dA along a direction, of a pressure and, where there is one, a wall shear
    moment             ∫ (x - x₀) × (-p n + τ) dA, about a point; in space along a direction

    @surface           the surface of the body (where forces are taken, unless another part is named)
    @volume            the domain; for max and min its points off the surface
    @NAME              a part that the data knows

    along, across      x, y, z, -x, ..., or components such as 1:0:0.2 or u_inlet:v_inlet; across a stream is
                       to its left in the plane, and upwards (z) in space
    area, density, speed
                       a force or moment is divided by the area, and by ½ density speed² where there is a
                       speed
    about              the point of a moment, by default the origin

A value is a number or the name of a parameter of the case (of its globals, or an input that is constant over
it). The normals point out of the body. Where a case has frames in time, max and min are over all of them,
others are the mean over the frames.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lrsa.errors import LrsaError, nearest
from lrsa.pointset import PLANAR, PointSet

KINDS = ("integral", "mean", "max", "min", "force", "moment")
LOADS = ("force", "moment")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "force": ("along", "across", "area", "density", "speed"),
    "moment": ("along", "across", "area", "density", "speed", "about"),
}
AXES = "xyz"


@dataclass(frozen=True)
class Facets:
    """What a surface integral needs: pieces of the surface, and the points that each lies between."""

    corners: np.ndarray
    """(F, k) point numbers, filled up with -1."""
    vectors: np.ndarray
    """(F, d) out of the body, as long as the piece is large."""

    def within(self, chosen: np.ndarray | None) -> "Facets":
        """Those between chosen points (N,) only."""
        if chosen is None:
            return self
        inside = (chosen[self.corners] | (self.corners < 0)).all(1)
        return Facets(self.corners[inside], self.vectors[inside])

    def at(self, values: np.ndarray) -> np.ndarray:
        """(N, ...) values at points -> (F, ...) means over the corners."""
        there = (self.corners >= 0).astype(float)
        share = there / there.sum(1, keepdims=True)
        return np.einsum("fk,fk...->f...", share, values[self.corners])

    @property
    def areas(self) -> np.ndarray:
        return np.linalg.norm(self.vectors, axis=1)


@dataclass(frozen=True)
class Geometry:
    """What the mesh of a case says, asked for when a quantity needs it."""

    facets: Callable[[PointSet], Facets | None]
    """The surface of a case; None where it has no cells."""
    measures: Callable[[PointSet], np.ndarray | None]
    """(N,) the measure of its points; None where there is nothing to compute it from."""


@dataclass(frozen=True)
class Definition:
    """One quantity, as typed."""

    name: str
    kind: str
    fields: tuple[str, ...]
    where: str = ""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __str__(self) -> str:
        at = f"@{self.where}" if self.where else ""
        options = "".join(f",{k}={':'.join(v)}" for k, v in self.options.items())
        return f"{self.name}={':'.join((self.kind, *self.fields))}{at}{options}"

    def check(self, case: PointSet, geometry: Geometry) -> None:
        """Refuse data on which it cannot be computed."""
        u = case.u if case.u is not None else np.zeros((len(case), len(case.names.targets)), np.float32)
        value = self.of(case, u, geometry)
        if not math.isfinite(value):
            raise LrsaError(f'"{self}" is {value} for the first case: no point is there, or a divisor is 0')

    def of(self, case: PointSet, u: np.ndarray, geometry: Geometry) -> float:
        """Its value for the fields u (N, o) or (T, N, o) of a case."""
        values = [self._frame(case, frame, geometry) for frame in (u if u.ndim == 3 else u[None])]
        return float({"max": np.max, "min": np.min}.get(self.kind, np.mean)(values))

    def _frame(self, case: PointSet, u: np.ndarray, geometry: Geometry) -> float:
        u = u.astype(float)
        if self.kind in LOADS:
            return self._load(case, u, geometry)
        values = self._scalar(case, u, self.fields[0])
        known = self._known(case, self.fields[0])
        if self.kind in ("max", "min"):
            chosen = known & self._points(case)
            return float(getattr(values[chosen], self.kind)()) if chosen.any() else math.nan
        if self.where in ("", "volume"):
            measures = geometry.measures(case)
            if measures is None and self.kind == "mean":
                measures = np.ones(len(case))
            if measures is None:
                raise LrsaError(f'"{self}" needs cells or the measure of every point. {_CELLS}')
            measures = np.where(known, measures, 0.0)
            total = float(measures @ np.where(known, values, 0.0))
            return (
                total if self.kind == "integral" else total / measures.sum() if measures.any() else math.nan
            )
        facets = self._facets(case, geometry).within(known)
        total = float(facets.areas @ facets.at(values))
        return total if self.kind == "integral" else total / facets.areas.sum()

    def _load(self, case: PointSet, u: np.ndarray, geometry: Geometry) -> float:
        facets = self._facets(case, geometry)
        loads = -facets.at(u[:, self._channels(case, self.fields[0], 1)]) * facets.vectors
        dims = facets.vectors.shape[1]
        if len(self.fields) > 1:
            shear = u[:, self._channels(case, self.fields[1], dims)]
            loads = loads + facets.at(shear) * facets.areas[:, None]
        if self.kind == "force":
            total = loads.sum(0) @ self._direction(case, dims)
        else:
            about = self._values(case, "about") if "about" in self.options else np.zeros(dims)
            about = _in_space(about, case.x)
            if len(about) != dims:
                raise LrsaError(f'"{self}": the point has {len(about)} coordinates, the data {dims}')
            arms = facets.at(case.x.astype(float)) - about
            if dims == 2:
                total = (arms[:, 0] * loads[:, 1] - arms[:, 1] * loads[:, 0]).sum()
            else:
                total = np.cross(arms, loads).sum(0) @ self._direction(case, dims)
        divisor = self._divisor(case)
        return float(total) / divisor if divisor else math.nan

    def _divisor(self, case: PointSet) -> float:
        area, density = (self._values(case, k)[0] if k in self.options else 1.0 for k in ("area", "density"))
        speed = self._values(case, "speed") if "speed" in self.options else None
        return float(area * (density if speed is None else 0.5 * density * (speed @ speed)))

    def _direction(self, case: PointSet, dims: int) -> np.ndarray:
        """(d,) of length 1."""
        key = next((k for k in ("along", "across") if k in self.options), None)
        plane = _plane(case.x)
        if key is None and self.kind == "moment" and plane is not None:
            return np.cross(*np.eye(3)[list(plane)])
        if key is None:
            raise LrsaError(f'"{self}" needs a direction, as in {self.kind}:{self.fields[0]},along=x')
        words = self.options[key]
        sign, axis = (-1.0, words[0][1:]) if words[0][:1] == "-" else (1.0, words[0])
        if len(words) == 1 and axis in AXES[:dims]:
            vector = sign * np.eye(dims)[AXES.index(axis)]
        else:
            vector = _in_space(self._values(case, key), case.x)
        if len(vector) != dims or not vector.any():
            raise LrsaError(f'"{self}": the direction {":".join(words)} is none in {dims} coordinates')
        vector = vector / np.linalg.norm(vector)
        if key == "along":
            return vector
        if dims == 2:
            return np.array([-vector[1], vector[0]])
        if plane is not None:
            left = np.zeros(3)
            left[list(plane)] = -vector[plane[1]], vector[plane[0]]
            return left
        up = np.array([0.0, 0.0, 1.0]) - vector[2] * vector
        if not up.any():
            raise LrsaError(f'"{self}": upwards is along the stream. Name the direction with along=')
        return up / np.linalg.norm(up)

    def _values(self, case: PointSet, option: str) -> np.ndarray:
        return np.array([self._value(case, word) for word in self.options[option]])

    def _value(self, case: PointSet, word: str) -> float:
        try:
            return float(word)
        except ValueError:
            pass
        names = case.names
        if case.globals is not None and word in names.globals:
            return float(case.globals[names.globals.index(word)])
        if case.f is not None and word in names.inputs:
            column = case.f[:, names.inputs.index(word)]
            if np.ptp(column) <= 1e-5 * np.abs(column).max():
                return float(column[0])
        known = (*names.globals, *names.inputs)
        raise LrsaError(
            f'"{self}": "{word}" is neither a number nor a parameter of the case.{nearest(word, known)}'
        )

    def _facets(self, case: PointSet, geometry: Geometry) -> Facets:
        facets = geometry.facets(case)
        if facets is None:
            raise LrsaError(f'"{self}" is an integral over a surface, which needs the cells. {_CELLS}')
        return facets.within(self._part(case, self.where or "surface"))

    def _part(self, case: PointSet, where: str) -> np.ndarray | None:
        """(N,) the points of a part; None where all are on the surface."""
        names = case.names.parts
        if case.parts is not None and where in names:
            return case.parts[:, names.index(where)]
        if where == "surface":
            return case.surface
        there = ("surface", "volume", *names)
        raise LrsaError(
            f'"{self}": the data has no part "{where}".{nearest(where, there)} There are: {", ".join(there)}'
        )

    def _points(self, case: PointSet) -> np.ndarray:
        if not self.where:
            return np.ones(len(case), bool)
        if self.where != "volume":
            part = self._part(case, self.where)
            return np.ones(len(case), bool) if part is None else part
        if case.surface is None:
            raise LrsaError(f'"{self}" needs to know the surface. Import the data with --derive surface')
        return ~case.surface

    def _scalar(self, case: PointSet, u: np.ndarray, name: str) -> np.ndarray:
        columns = u[:, self._channels(case, name)]
        return columns[:, 0] if columns.shape[1] == 1 else np.linalg.norm(columns, axis=1)

    def _known(self, case: PointSet, name: str) -> np.ndarray:
        if case.u_mask is None:
            return np.ones(len(case), bool)
        return np.all(case.u_mask[:, self._channels(case, name)], axis=1)

    def _channels(self, case: PointSet, name: str, count: int | None = None) -> list[int]:
        """The columns of a field: one, or those of a vector called so."""
        targets = case.names.targets
        found = [targets.index(name)] if name in targets else []
        if not found:
            parts = [f"{name}_{axis}" for axis in AXES]
            found = [targets.index(part) for part in parts if part in targets]
        if not found or (count is not None and len(found) != count):
            there = ", ".join(targets)
            what = f'no field "{name}"' if not found else f'"{name}" has {len(found)} components, not {count}'
            raise LrsaError(f'"{self}": {what}.{nearest(name, targets)} There are: {there}')
        return found


_CELLS = "Import meshes, not points alone; for arrays at cells add --derive normals,measure"


def _plane(x: np.ndarray) -> tuple[int, int] | None:
    """The two axes of points (N, 3) that lie in a plane: meshes in a plane are often stored in space."""
    extent = np.ptp(x, axis=0)
    seen = np.flatnonzero(extent > PLANAR * extent.max())
    return (int(seen[0]), int(seen[1])) if x.shape[1] == 3 and len(seen) == 2 else None


def _in_space(vector: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A vector of two components among points (N, 3) that lie in a plane, with its third."""
    plane = _plane(x)
    if plane is None or len(vector) != 2:
        return vector
    made = np.zeros(3)
    made[list(plane)] = vector
    return made


def definitions(text: str) -> list[Definition]:
    """The quantities that are spelled so; what is none is refused, whatever the data."""
    made = [_definition(part.strip()) for part in text.split(";") if part.strip()]
    names = [each.name for each in made]
    for name in names:
        if names.count(name) > 1:
            raise LrsaError(f'there are two quantities "{name}". Name one of them otherwise')
    return made


def _definition(text: str) -> Definition:
    head, *rest = text.split(",")
    name, equals, word = head.partition("=")
    body, at, where = word.partition("@")
    kind, *fields = (part.strip() for part in body.split(":"))
    name, where = name.strip(), where.strip()
    if not equals or not name or any(mark in name for mark in ":@"):
        raise LrsaError(f'"{text}" is no quantity. Write it as in peak=max:p or lift=force:p,along=y')
    if kind not in KINDS:
        raise LrsaError(
            f'"{text}": no quantity "{kind}".{nearest(kind, KINDS)} There are: {", ".join(KINDS)}'
        )
    most = 2 if kind in LOADS else 1
    if not all(fields) or not 1 <= len(fields) <= most or (at and not where):
        wanted = "a pressure and perhaps a shear" if most == 2 else "one field"
        raise LrsaError(f'"{text}": {kind} is that of {wanted}, as in {name}={kind}:p')
    if kind in LOADS and where == "volume":
        raise LrsaError(f'"{text}": a {kind} acts on a surface or a part of it, not on the volume')
    options: dict[str, tuple[str, ...]] = {}
    known = OPTIONS.get(kind, ())
    for part in rest:
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in known or not equals or not all(value.split(":")) or key in options:
            there = f"takes {', '.join(known)}" if known else "takes no options"
            raise LrsaError(f'"{text}": "{part.strip()}" is not understood. {kind} {there}, as in along=x')
        options[key] = tuple(value.split(":"))
    if {"along", "across"} <= options.keys():
        raise LrsaError(f'"{text}" has two directions. Keep one of along and across')
    return Definition(name, kind, tuple(fields), where, options)
