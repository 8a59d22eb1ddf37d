"""Heat conduction in a gear, one face of which is suddenly held at a random temperature.

    ∂T/∂t = α ΔT,   T = g(x, y) at z = 0,   ∂T/∂n = 0 elsewhere,   T = T₀ at t = 0

g is a Gaussian random field with covariance σ² exp(-|r|² / 2ℓ²), known at the 186 nodes of the face; asked
for is T at the 7199 nodes of the gear after 3 s. Linear elements on tetrahedra; Crank-Nicolson, its first two
steps replaced by four half ones of the implicit Euler method, which damp the jump at the face (Rannacher).
Both have one matrix, M + ½ Δt α K, which is factorised once.

Published are the size of the part and of its mesh, not its shape, its material or the temperatures: those of
aluminium 6061 and a face around 100 °C are ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from lrsa.pointset import Names, PointSet
from lrsa.problems.heat_transfer.gear import Mesh, gear

DAMPED = 2
"""Steps that the implicit Euler method takes, in halves."""
Solving = Callable[[sp.csr_array], Callable[[np.ndarray], np.ndarray]]
NAMES = Names(
    ("x", "y", "z"),
    ("T_face", "is_input"),
    ("T",),
    units={"x": "mm", "y": "mm", "z": "mm", "T_face": "°C", "T": "°C", "is_input": "1"},
)


@dataclass(frozen=True)
class HeatTransfer:
    """Makes a case from a random face temperature."""

    names: ClassVar[Names] = NAMES
    diffusivity: float = 69.0
    """α, mm²/s: 167 W/mK over 2700 kg/m³ and 896 J/kgK."""
    duration: float = 3.0
    steps: int = 60
    initial: float = 20.0
    """T₀, °C."""
    mean: float = 100.0
    deviation: float = 30.0
    """σ, °C."""
    length: float = 6.0
    """ℓ, mm."""

    def sample(self, rng: np.random.Generator) -> PointSet:
        """The union of the gear, which asks, and of its face, which gives."""
        mesh = gear()
        face = self.mean + self.deviation * (
            covariance_root(self.length) @ rng.standard_normal(len(mesh.face))
        )
        return joined(mesh.points, mesh.tetrahedra, mesh.face, mesh.face_areas(), face, self.solve(face))

    def solve(self, face: np.ndarray) -> np.ndarray:
        """(N,) T at the nodes of the gear, from that of its face (n,)."""
        step = _conduction(self.diffusivity * self.duration / self.steps)
        return self.initial + step.advance(face - self.initial, self.steps)


class Conduction:
    """∂θ/∂t = α Δθ on tetrahedra, θ given at the first nodes from t = 0 on, and 0 elsewhere until then."""

    def __init__(self, mesh: Mesh, given: int, reach: float, solver: Solving | None = None) -> None:
        """`given` nodes are given; `reach` is α Δt; `solver` makes of a matrix what solves with it."""
        mass, stiffness = matrices(mesh.points, mesh.tetrahedra)
        flow = sp.csr_array((reach / 2) * stiffness)
        self.mass, self.flow, self.inflow = mass[given:, given:], flow[given:, given:], flow[given:, :given]
        self.solve = (solver or factorised)(self.mass + self.flow)

    def advance(self, imposed: np.ndarray, steps: int) -> np.ndarray:
        """(N,) θ after so many steps with (given,) imposed."""
        source, theta = self.inflow @ imposed, np.zeros(self.mass.shape[0])
        for _ in range(2 * min(DAMPED, steps)):
            theta = self.solve(self.mass @ theta - source)
        for _ in range(DAMPED, steps):
            theta = self.solve(self.mass @ theta - self.flow @ theta - 2 * source)
        return np.concatenate([imposed, theta])


def factorised(matrix: sp.csr_array) -> Callable[[np.ndarray], np.ndarray]:
    """Solves with a symmetric matrix, whose diagonal needs no pivots."""
    options = {"SymmetricMode": True}
    return splu(matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options=options).solve


def matrices(points: np.ndarray, tetrahedra: np.ndarray) -> tuple[sp.csr_array, sp.csr_array]:
    """(N, N) mass ∫φᵢφⱼ and stiffness ∫∇φᵢ·∇φⱼ of linear elements."""
    edges = points[tetrahedra[:, 1:]] - points[tetrahedra[:, :1]]  # (E, 3, 3)
    volume = np.linalg.det(edges) / 6
    slopes = np.linalg.inv(edges).transpose(0, 2, 1)  # ∇φ₁, ∇φ₂, ∇φ₃
    slopes = np.concatenate([-slopes.sum(1, keepdims=True), slopes], axis=1)  # (E, 4, 3)
    stiffness = volume[:, None, None] * (slopes @ slopes.transpose(0, 2, 1))
    mass = volume[:, None, None] * (np.ones((4, 4)) + np.eye(4)) / 20
    rows, columns = np.repeat(tetrahedra, 4, axis=1).ravel(), np.tile(tetrahedra, 4).ravel()
    size = (len(points), len(points))
    made = (sp.coo_array((v.ravel(), (rows, columns)), size).tocsr() for v in (mass, stiffness))
    return next(made), next(made)


def joined(
    points: np.ndarray,
    tetrahedra: np.ndarray,
    face: np.ndarray,
    areas: np.ndarray,
    imposed: np.ndarray,
    field: np.ndarray,
) -> PointSet:
    """The nodes of the part, at which T is asked for, then those of the face, at which it is imposed.

    The features are T of the face, where it is known, and which points are of the face. The measure is the
    area of the face: with weights only its points are compressed, and those of the part only read.
    """
    n, m = len(points), len(face)
    gives = np.arange(n + m) >= n
    imposed, field = (np.asarray(v, np.float32) for v in (imposed, field))
    return PointSet(
        x=np.concatenate([points, face]).astype(np.float32),
        f=np.stack([np.concatenate([np.zeros(n, np.float32), imposed]), gives.astype(np.float32)], axis=1),
        u=np.concatenate([field, imposed])[:, None],
        f_mask=np.stack([gives, np.ones(n + m, bool)], axis=1),
        u_mask=~gives[:, None],
        weights=np.concatenate([np.zeros(n), areas]).astype(np.float32),
        cells=tetrahedra,
        names=NAMES,
    )


@cache
def _conduction(reach: float) -> Conduction:
    return Conduction(gear(), len(gear().face), reach)


@cache
def covariance_root(length: float) -> np.ndarray:
    """The symmetric root of the covariance of the nodes of the face, which is unique."""
    face = gear().face
    distance = np.square(face[:, None] - face).sum(-1)
    values, vectors = np.linalg.eigh(np.exp(-distance / (2 * length**2)))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
