"""Linear finite elements on triangles for -∇·(A ∇u) = f, u = 0 on the boundary.

A is a symmetric 2 × 2 matrix for each triangle. Where the coefficient jumps inside a triangle it is that of
the laminate, the mean along the jump and the harmonic mean across it: of second order where sampling the
coefficient, or its plain mean, is of first.
"""

from pathlib import Path

import numpy as np

from lrsa.errors import LrsaError
from lrsa.numerics.elements import Assembly


class Triangles(Assembly):
    """A mesh in its place."""

    def __init__(self, nodes: np.ndarray, triangles: np.ndarray) -> None:
        """`nodes` (V, 2) are positions; `triangles` (E, 3) are counter-clockwise."""
        corners = nodes[triangles]
        opposite = np.roll(corners, -2, axis=1) - np.roll(corners, -1, axis=1)  # each corner
        double = opposite[:, 0, 0] * opposite[:, 1, 1] - opposite[:, 0, 1] * opposite[:, 1, 0]
        if not double.min() > 0:
            raise LrsaError("the mesh has a triangle that is flat or turned inside out")
        self.nodes, self.triangles, self.areas = nodes, triangles, double / 2
        turned = np.stack([-opposite[..., 1], opposite[..., 0]], axis=-1)
        self.slopes = turned / double[:, None, None]
        """(E, 3, 2) ∇φ of the three functions."""
        self.rim = np.zeros(len(nodes), bool)
        self.rim[boundary(triangles)] = True
        super().__init__(triangles, self.rim, pivot=0.0)

    def solve(self, a: np.ndarray, load: np.ndarray) -> np.ndarray:
        """(V,) solution for the matrices a (E, 2, 2) and the load ∫ f φ (V,) of the nodes."""
        matrices = self.areas[:, None, None] * (self.slopes @ a @ self.slopes.transpose(0, 2, 1))
        u = np.zeros(len(load))
        u[self.free] = self.factor(self.matrix(self.assemble(matrices))).solve(load[self.free])
        return u

    def laminate(self, field: np.ndarray, low: float, high: float) -> np.ndarray:
        """(E, 2, 2) of a coefficient that is `high` where the field (V,), linear in triangles, is >= 0."""
        values = field[self.triangles]
        share = positive_share(values)
        along, across = low + (high - low) * share, 1 / ((1 - share) / low + share / high)
        slope = (values[:, None] @ self.slopes)[:, 0]
        normal = slope / np.maximum(np.linalg.norm(slope, axis=1), np.finfo(float).tiny)[:, None]
        jump = (along - across)[:, None, None] * normal[:, :, None] * normal[:, None]
        return along[:, None, None] * np.eye(2) - jump

    def shares(self) -> np.ndarray:
        """(V,) the area that each node stands for, ∫ φ: a third of each of its triangles."""
        return self.add(np.repeat(self.areas[:, None] / 3, 3, axis=1))


def positive_share(values: np.ndarray) -> np.ndarray:
    """(E,) of triangles with linear functions of the corner values (E, 3), the part where these are >= 0."""
    low, middle, high = np.sort(values, axis=1).T
    tiny = np.finfo(float).tiny
    tip = np.clip(high, 0, None) ** 2 / np.maximum((high - middle) * (high - low), tiny)
    foot = np.clip(low, None, 0) ** 2 / np.maximum((middle - low) * (high - low), tiny)
    return np.where(low >= 0, 1.0, np.where(middle >= 0, 1 - foot, np.where(high >= 0, tip, 0.0)))


def refined(mesh: Path, refinement: int) -> Triangles:
    """The nodes and triangles of a file, so many times refined; its nodes stay the first."""
    if refinement < 0:
        raise LrsaError(f"a refinement of {refinement} is no mesh: from 0 on")
    with np.load(mesh) as file:
        nodes, triangles = file["nodes"], file["triangles"].astype(np.int64)
    for _ in range(refinement):
        nodes, triangles = refine(nodes, triangles)
    return Triangles(nodes, triangles)


def refine(nodes: np.ndarray, triangles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each triangle cut into four alike; the nodes that were there come first."""
    edges = np.sort(_edges(triangles), axis=1)
    ends, which = np.unique(edges, axis=0, return_inverse=True)
    a, b, c = triangles.T
    ab, bc, ca = len(nodes) + which.reshape(3, -1)
    parts = [np.stack(p, axis=1) for p in ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))]
    return np.concatenate([nodes, nodes[ends].mean(axis=1)]), np.concatenate(parts)


def boundary(triangles: np.ndarray) -> np.ndarray:
    """The nodes of the edges that belong to one triangle only."""
    return np.unique(edges_once(triangles))


def edges_once(triangles: np.ndarray) -> np.ndarray:
    """(B, 2) the edges that belong to one triangle only."""
    edges, counts = np.unique(np.sort(_edges(triangles), axis=1), axis=0, return_counts=True)
    return edges[counts == 1]


def _edges(triangles: np.ndarray) -> np.ndarray:
    """(3 E, 2): the first edges of all triangles, then the second, then the third."""
    return np.concatenate([triangles[:, [i, (i + 1) % 3]] for i in range(3)])
