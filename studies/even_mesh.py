"""Even meshes of triangles with a given number of nodes, for the problems on fixed meshes.

Nodes of the outline are fixed; those inside start on a triangular lattice and move to the mean of the
centroids of their triangles, weighted by area, until the mesh is even.
"""

import numpy as np
from matplotlib.path import Path as Outline
from scipy.spatial import Delaunay, KDTree

FLAT = 0.01
"""Quality of triangles that are none."""
STEPS = 30


def make(rim: np.ndarray, spacing: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """(N, 2) nodes, those of the outline (B, 2) first, and (E, 3) triangles, counter-clockwise."""
    inside = even(rim, spacing, nodes - len(rim))
    for _ in range(STEPS):
        points = np.concatenate([rim, inside])
        triangles = mesh(points, rim)
        corners = points[triangles]
        pull = np.repeat(areas(corners), 3)
        sums = [
            np.bincount(triangles.ravel(), pull * np.repeat(centre, 3)) for centre in corners.mean(axis=1).T
        ]
        inside = (np.stack(sums, axis=1) / np.bincount(triangles.ravel(), pull)[:, None])[len(rim) :]
    points = np.concatenate([rim, inside]).round(6)
    return points, mesh(points, rim)


def line(start: np.ndarray, stop: np.ndarray, spacing: float) -> np.ndarray:
    """Nodes from the start to before the stop."""
    count = round(float(np.linalg.norm(stop - start)) / spacing)
    return start + np.arange(count)[:, None] / count * (stop - start)


def arc(hub: np.ndarray, radius: float, start: float, stop: float, spacing: float) -> np.ndarray:
    """Nodes from the angle `start` to before `stop`."""
    count = max(4, round(radius * abs(stop - start) / spacing))
    angles = start + np.arange(count) / count * (stop - start)
    return hub + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def even(rim: np.ndarray, spacing: float, count: int) -> np.ndarray:
    """(count, 2) nodes inside: of a triangular lattice those that are farthest from the boundary."""
    edge, (width, height) = 0.96 * spacing, rim.max(0)
    rows = np.arange(0, height, edge * np.sqrt(0.75))
    x = np.arange(0, width, edge)
    lattice = np.concatenate([np.stack([x + edge / 2 * (j % 2), 0 * x + y], 1) for j, y in enumerate(rows)])
    lattice = lattice[Outline(rim).contains_points(lattice)]
    away = KDTree(rim).query(lattice)[0]
    if len(lattice) < count or away[np.argsort(-away)[count - 1]] < edge / 3:
        raise SystemExit(f"{len(lattice)} places for {count} nodes: another spacing")
    return lattice[np.sort(np.argsort(-away, kind="stable")[:count])]


def mesh(nodes: np.ndarray, rim: np.ndarray) -> np.ndarray:
    """(E, 3) triangles inside the outline, counter-clockwise, whose boundary it is."""
    triangles = Delaunay(nodes).simplices.astype(np.int64)
    clockwise = areas(nodes[triangles]) < 0
    triangles[clockwise] = triangles[clockwise][:, ::-1]
    # Nodes of a straight side are collinear up to rounding: what they span is no triangle.
    inside = Outline(rim).contains_points(nodes[triangles].mean(axis=1))
    triangles = triangles[inside & (quality(nodes[triangles]) > FLAT)]
    if len(triangles) != 2 * (len(nodes) - 1) - len(rim):
        raise SystemExit("the mesh does not follow the outline: another spacing")
    return triangles


def areas(corners: np.ndarray) -> np.ndarray:
    """(E, 3, 2) -> (E,), positive counter-clockwise."""
    one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return (one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]) / 2


def quality(corners: np.ndarray) -> np.ndarray:
    """(E,) 4√3 area over the sum of the squared edges: 1 for equal sides."""
    edges = corners - np.roll(corners, 1, axis=1)
    return 4 * np.sqrt(3) * areas(corners) / (edges**2).sum(axis=(1, 2))
