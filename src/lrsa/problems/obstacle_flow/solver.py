"""Steady Stokes flow past obstacles in a channel: -Δu + ∇p = 0, ∇·u = 0 in (0,1)² without the obstacles.

Parabolic inflow u = (4 y (1 - y), 0) at x = 0, no slip at y = 0, at y = 1 and on one to four ellipses, the
natural outflow ∂u/∂n = p n at x = 1. The inputs are the mask of the obstacles and the signed distance to
them, the outputs are both velocities. The mask alone does not decide the flow: what two obstacles of one mask
differ by between the points changes it by several percent.

The points are the middles ((i + ½)/32, (j + ½)/32) of 32 × 32 squares, which are corners of the cells that
are solved on: every fidelity has the same points.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.distances import distance_to
from lrsa.pointset import Names, PointSet
from lrsa.problems.obstacle_flow.channel import Channel

SLENDEREST = 0.5
"""Least ratio of the half axes of an ellipse."""
SEGMENTS = 256
"""Of an ellipse, for the distance to it: within 3e-5."""


@dataclass(frozen=True)
class ObstacleFlow:
    """The mask of the obstacles and the distance to them -> the velocity, at some corners of the cells."""

    resolution: int = 128
    """Cells along each axis of the grid that is solved on."""
    stride: int = 4
    """Cells between two points that are kept, an even number: 32 × 32 points of 128 × 128 cells."""
    most: int = 4
    """Obstacles of a case are 1 to these, each number as probable as the others."""
    smallest: float = 0.06
    """Least longer half axis."""
    largest: float = 0.14
    """Largest longer half axis."""
    margin: float = 0.06
    """Least distance of the circles around the ellipses from one another and from the sides of the square."""

    names: ClassVar[Names] = Names(
        coords=("x", "y"),
        inputs=("obstacle", "distance"),
        targets=("u", "v"),
        units={"x": "1", "y": "1", "obstacle": "1", "distance": "1", "u": "1", "v": "1"},
    )

    def __post_init__(self) -> None:
        if self.stride % 2 or self.resolution % self.stride:
            raise LrsaError(
                f"no points in the middle of every {self.stride} of {self.resolution} cells. The stride must"
                " be an even divisor of the resolution"
            )

    def sample(self, rng: np.random.Generator) -> PointSet:
        """Random obstacles and the flow past them, float32."""
        return self.solve(self.draw(rng))

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(k, 5) ellipses: the middle (x, y), the longer and the shorter half axis, the angle of the longer.

        Sizes, angles and places are drawn anew until all distances are kept.
        """
        count = int(rng.integers(1, self.most + 1))
        while True:
            longer = rng.uniform(self.smallest, self.largest, count)
            shorter = longer * rng.uniform(SLENDEREST, 1, count)
            angle = rng.uniform(0, np.pi, count)
            kept = (longer + self.margin)[:, None]
            middle = kept + (1 - 2 * kept) * rng.random((count, 2))
            distance = np.linalg.norm(middle[:, None] - middle, axis=2)
            near = distance < longer[:, None] + longer + self.margin
            if near.sum() == count:  # each is near itself
                return np.column_stack([middle, longer, shorter, angle])

    def solve(self, ellipses: np.ndarray) -> PointSet:
        """The case of obstacles (k, 5) as `draw` gives them."""
        x = self.points()
        channel = Channel(lambda x, y: level(ellipses, x, y), self.resolution)
        kept = slice(self.stride // 2 - 1, None, self.stride)
        velocity = channel.corners(channel.solve())[kept, kept]
        solid = level(ellipses, *x.T.astype(float)) <= 0
        distance = np.where(solid, -1, 1) * distance_to(x.astype(float), outlines(ellipses))
        u = np.where(solid[:, None], 0, velocity.reshape(-1, 2))
        return PointSet(
            x=x,
            f=np.stack([solid, distance], axis=1).astype(np.float32),
            u=u.astype(np.float32),
            grid=velocity.shape[:2],
            names=self.names,
        )

    def points(self) -> np.ndarray:
        """(m², 2) float32, the corners that are kept, the first axis of the grid being x."""
        middles = np.arange(self.stride // 2, self.resolution, self.stride) / self.resolution
        x, y = np.meshgrid(middles, middles, indexing="ij")
        return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def level(ellipses: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positive outside all ellipses, zero on them: the least ‖q‖ - 1, q being the place in the axes of one.

    It is at most 1, which is far from all of them.
    """
    found = np.ones(np.shape(x))
    for x0, y0, longer, shorter, angle in ellipses:
        cos, sin = np.cos(angle), np.sin(angle)
        along, across = cos * (x - x0) + sin * (y - y0), cos * (y - y0) - sin * (x - x0)
        found = np.minimum(found, np.hypot(along / longer, across / shorter) - 1)
    return found


def outlines(ellipses: np.ndarray) -> np.ndarray:
    """(k SEGMENTS, 2, 2) segments from point to point on the ellipses."""
    turn = 2 * np.pi * np.arange(SEGMENTS + 1) / SEGMENTS
    found = []
    for x0, y0, longer, shorter, angle in ellipses:
        along, across = longer * np.cos(turn), shorter * np.sin(turn)
        cos, sin = np.cos(angle), np.sin(angle)
        place = np.stack([x0 + cos * along - sin * across, y0 + sin * along + cos * across], axis=1)
        found.append(np.stack([place[:-1], place[1:]], axis=1))
    return np.concatenate(found)
