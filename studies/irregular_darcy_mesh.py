"""The fixed mesh of the irregular Darcy problem: 2290 nodes, made once and kept as data.

    python studies/irregular_darcy_mesh.py [--out src/lrsa/problems/irregular_darcy/mesh.npz]

The domain is a regular pentagon in the unit square, its lower side replaced by an arc that bulges inwards and
a slit with a round end cut from its upper left side towards the middle. Nodes of the outline are fixed;
those inside move to the mean of the centroids of their triangles, weighted by area, until the mesh is even.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.path import Path as Outline
from scipy.spatial import Delaunay, KDTree

NODES = 2290
SPACING = 0.0177
"""Between the nodes of the outline, about that of the nodes inside."""
RADIUS = 0.5 / np.sin(0.4 * np.pi)
"""Of the pentagon's corners: it is 1 wide."""
RISE = 0.12
"""Of the arc above the lower side, in the middle."""
LENGTH, WIDTH = 0.34, 0.04
"""Of the slit."""
FLAT = 0.01
"""Quality of triangles that are none."""
STEPS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--out", type=Path, default=Path("src/lrsa/problems/irregular_darcy/mesh.npz"))
    options = parser.parse_args()
    nodes, triangles = make()
    np.savez_compressed(options.out, nodes=nodes, triangles=triangles.astype(np.int16))
    shapes = quality(nodes[triangles])
    print(
        f"{len(nodes)} nodes, {len(triangles)} triangles, quality {shapes.min():.2f} at the least, "
        f"{shapes.mean():.2f} in the mean; {options.out.stat().st_size} bytes"
    )


def make() -> tuple[np.ndarray, np.ndarray]:
    """(2290, 2) nodes, those of the outline first and counter-clockwise, and (E, 3) triangles."""
    rim = outline()
    inside = even(rim, NODES - len(rim))
    for _ in range(STEPS):
        nodes = np.concatenate([rim, inside])
        triangles = mesh(nodes, rim)
        corners = nodes[triangles]
        pull = np.repeat(areas(corners), 3)
        sums = [
            np.bincount(triangles.ravel(), pull * np.repeat(centre, 3)) for centre in corners.mean(axis=1).T
        ]
        inside = (np.stack(sums, axis=1) / np.bincount(triangles.ravel(), pull)[:, None])[len(rim) :]
    nodes = np.concatenate([rim, inside]).round(6)
    return nodes, mesh(nodes, rim)


def outline() -> np.ndarray:
    """(B, 2) nodes of the boundary, counter-clockwise from the lower left corner."""
    middle = np.array([0.5, RADIUS * np.cos(0.2 * np.pi)])
    angles = np.pi * np.array([1.3, 1.7, 0.1, 0.5, 0.9])
    left, right, east, top, west = middle + RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    half = (right[0] - left[0]) / 2
    radius = (half**2 + RISE**2) / (2 * RISE)
    spread = np.arcsin(half / radius)
    hub = np.array([0.5, RISE - radius])
    mouth = (top + west) / 2
    inward = (middle - mouth) / np.linalg.norm(middle - mouth)
    aside = WIDTH / 2 * (west - top) / np.linalg.norm(west - top)
    end = mouth + LENGTH * inward
    slit = np.arctan2(*-aside[::-1])
    pieces = [
        arc(hub, radius, np.pi / 2 + spread, np.pi / 2 - spread),
        line(right, east),
        line(east, top),
        line(top, mouth - aside),
        line(mouth - aside, end - aside),
        arc(end, WIDTH / 2, slit, slit - np.pi),
        line(end + aside, mouth + aside),
        line(mouth + aside, west),
        line(west, left),
    ]
    return np.concatenate(pieces).round(6)


def line(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Nodes from the start to before the stop."""
    count = round(float(np.linalg.norm(stop - start)) / SPACING)
    return start + np.arange(count)[:, None] / count * (stop - start)


def arc(hub: np.ndarray, radius: float, start: float, stop: float) -> np.ndarray:
    """Nodes from the angle `start` to before `stop`."""
    count = max(4, round(radius * abs(stop - start) / SPACING))
    angles = start + np.arange(count) / count * (stop - start)
    return hub + radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def even(rim: np.ndarray, count: int) -> np.ndarray:
    """(count, 2) nodes inside: of a triangular lattice those that are farthest from the boundary."""
    edge = 0.96 * SPACING
    rows = np.arange(0, 1, edge * np.sqrt(0.75))
    x = np.arange(0, 1, edge)
    lattice = np.concatenate([np.stack([x + edge / 2 * (j % 2), 0 * x + y], 1) for j, y in enumerate(rows)])
    lattice = lattice[Outline(rim).contains_points(lattice)]
    away = KDTree(rim).query(lattice)[0]
    if len(lattice) < count or away[np.argsort(-away)[count - 1]] < edge / 3:
        raise SystemExit(f"{len(lattice)} places for {count} nodes: another SPACING")
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
        raise SystemExit("the mesh does not follow the outline: another SPACING")
    return triangles


def areas(corners: np.ndarray) -> np.ndarray:
    """(E, 3, 2) -> (E,), positive counter-clockwise."""
    one, two = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return (one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]) / 2


def quality(corners: np.ndarray) -> np.ndarray:
    """(E,) 4√3 area over the sum of the squared edges: 1 for equal sides."""
    edges = corners - np.roll(corners, 1, axis=1)
    return 4 * np.sqrt(3) * areas(corners) / (edges**2).sum(axis=(1, 2))


if __name__ == "__main__":
    main()
