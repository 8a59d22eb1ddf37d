"""The fixed mesh of the pipe of Pipe Turbulence: 2673 nodes, made once and kept as data.

    python studies/pipe_turbulence_mesh.py [--out src/lrsa/problems/pipe_turbulence/mesh.npz]

The pipe is 1 wide: it goes right, up by 2 and right again, and its corners are round.
"""

import argparse
from pathlib import Path

import numpy as np
from even_mesh import arc, line, make, quality

NODES = 2673
SPACING = 0.0625
"""Between the nodes of the outline, about that of the nodes inside."""
LENGTHS = 3.5, 2.0, 7.0
"""Where the outer side of the first bend is, how far the pipe climbs, where it ends."""
INNER, OUTER = 0.25, 0.5
"""Radii of the corners."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--out", type=Path, default=Path("src/lrsa/problems/pipe_turbulence/mesh.npz"))
    options = parser.parse_args()
    nodes, triangles = make(outline(), SPACING, NODES)
    np.savez_compressed(options.out, nodes=nodes, triangles=triangles.astype(np.int16))
    shapes = quality(nodes[triangles])
    print(
        f"{len(nodes)} nodes, {len(triangles)} triangles, quality {shapes.min():.2f} at the least, "
        f"{shapes.mean():.2f} in the mean; {options.out.stat().st_size} bytes"
    )


def outline() -> np.ndarray:
    """(B, 2) nodes of the boundary, counter-clockwise from the lower corner of the inlet."""
    right, climb, end = LENGTHS
    left = right - 1
    ways = [  # corners, the radius of each, and the angle at which the arc around it starts
        ((0.0, 0.0), 0.0, 0.0),
        ((right, 0.0), OUTER, -np.pi / 2),
        ((right, climb), -INNER, np.pi),
        ((end, climb), 0.0, 0.0),
        ((end, climb + 1), 0.0, 0.0),
        ((left, climb + 1), OUTER, np.pi / 2),
        ((left, 1.0), -INNER, 0.0),
        ((0.0, 1.0), 0.0, 0.0),
    ]
    pieces = []
    for i, (_, radius, start) in enumerate(ways):
        here, before, after = (np.array(ways[k % len(ways)][0]) for k in (i, i - 1, i + 1))
        back, on = (_unit(there - here) for there in (before, after))
        if radius:
            hub = here + abs(radius) * (back + on)
            pieces.append(arc(hub, abs(radius), start, start + np.copysign(np.pi / 2, radius), SPACING))
        reach = abs(ways[(i + 1) % len(ways)][1])
        pieces.append(line(here + abs(radius) * on, after - reach * on, SPACING))
    return np.concatenate(pieces).round(6)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


if __name__ == "__main__":
    main()
