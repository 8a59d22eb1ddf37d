"""What a file holds, and the roles of its arrays in a case: used to import, and again to predict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

Derived = Literal["normals", "sdf", "measure", "surface"]
"""Geometric features: outward normals and distance to the surface become inputs, the measure of each point
becomes its quadrature weight, the surface becomes a flag."""


@dataclass(frozen=True)
class RawCase:
    """One mesh or table as read from a file, nothing chosen and nothing dropped."""

    path: Path
    points: np.ndarray
    """(N, p) float64 as stored: p = 3 for meshes."""
    point_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    """(N,) or (N, k) arrays, or (T, N[, k]) where `times` are there and the array changes."""
    cell_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The same per cell."""
    cells: np.ndarray | None = None
    """(C, k) connectivity, filled up with -1."""
    cell_types: np.ndarray | None = None
    """(C,) VTK cell types."""
    times: np.ndarray | None = None
    """(T,)."""
    faces: tuple[np.ndarray, np.ndarray] | None = None
    """Of polyhedra: rings (F, k), filled up with -1, and the cell (F,) that each belongs to."""
    parts: Mapping[str, np.ndarray] = field(default_factory=dict)
    """(N,) bool: the points of each named block, where blocks were asked for."""
    grid: tuple[int, ...] | None = None
    """Index shape of the points of a structured mesh, the slowest axis first."""

    @property
    def name(self) -> str:
        """How the case is called in tables: the file without its suffix."""
        return self.path.stem


@dataclass(frozen=True)
class Roles:
    """Which arrays are what. It is kept in the data set's provenance, and so in every run trained on it."""

    inputs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    derive: tuple[Derived, ...] = ()
    globals: tuple[str, ...] = ()
    """Columns of the table of parameters."""
    location: Literal["point", "cell"] = "point"
    """Where the cases live: at the points of the mesh, or at the centres of its cells."""
    channels: Mapping[str, int] = field(default_factory=dict)
    """Columns of every named array: a vector becomes as many channels."""
    input_points: str = ""
    """Where the inputs are known, if not at the points of the mesh: the pattern of a second file."""
    patches: tuple[str, ...] = ()
    """Blocks of the mesh that are read, and become its named parts; empty: as the format has it."""

    def to_dict(self) -> dict[str, object]:
        return {
            "inputs": list(self.inputs),
            "targets": list(self.targets),
            "derive": list(self.derive),
            "globals": list(self.globals),
            "location": self.location,
            "channels": dict(self.channels),
            "input_points": self.input_points,
            "patches": list(self.patches),
        }

    @staticmethod
    def from_dict(values: Mapping[str, object]) -> "Roles":
        tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return Roles(**tuples)  # pyright: ignore[reportArgumentType]
