"""The fixed mesh of the irregular Darcy problem: 2290 nodes, made once and kept as data.

    python studies/irregular_darcy_mesh.py [--out src/lrsa/problems/irregular_darcy/mesh.npz]

The domain is a regular pentagon in the unit square, its lower side replaced by an arc that bulges inwards and
a slit with a round end cut from its upper left side towards the middle.
"""

import argparse
from pathlib import Path

import numpy as np
from even_mesh import arc, line, make, quality

NODES = 2290
SPACING = 0.0177
"""Between the nodes of the outline, about that of the nodes inside."""
RADIUS = 0.5 / np.sin(0.4 * np.pi)
"""Of the pentagon's corners: it is 1 wide."""
RISE = 0.12
"""Of the arc above the lower side, in the middle."""
LENGTH, WIDTH = 0.34, 0.04
"""Of the slit."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--out", type=Path, default=Path("src/lrsa/problems/irregular_darcy/mesh.npz"))
    options = parser.parse_args()
    nodes, triangles = make(outline(), SPACING, NODES)
    np.savez_compressed(options.out, nodes=nodes, triangles=triangles.astype(np.int16))
    shapes = quality(nodes[triangles])
    print(
        f"{len(nodes)} nodes, {len(triangles)} triangles, quality {shapes.min():.2f} at the least, "
        f"{shapes.mean():.2f} in the mean; {options.out.stat().st_size} bytes"
    )


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
        arc(hub, radius, np.pi / 2 + spread, np.pi / 2 - spread, SPACING),
        line(right, east, SPACING),
        line(east, top, SPACING),
        line(top, mouth - aside, SPACING),
        line(mouth - aside, end - aside, SPACING),
        arc(end, WIDTH / 2, slit, slit - np.pi, SPACING),
        line(end + aside, mouth + aside, SPACING),
        line(mouth + aside, west, SPACING),
        line(west, left, SPACING),
    ]
    return np.concatenate(pieces).round(6)


if __name__ == "__main__":
    main()
