"""Flow through a bent pipe: (u·∇)u - ν Δu + ∇p = 0, ∇·u = 0, steady, laminar.

The pipe is 10 long and 1 wide, its walls moved up and down together: y = η + c(x), -½ <= η <= ½. The centre
line c is made of four cubic Hermite pieces whose ends and slopes are random. The flow comes in with the
parabolic profile ¼ - y², sticks to the walls and leaves at the natural outlet. Taylor-Hood elements
(`taylor_hood`); the points are their nodes.

The viscosity is 0.005, the Reynolds number of the mean velocity and the width 33. In the published files the
last column is visibly asymmetric, with a kink at the upper wall: an artefact, which is not made here.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from lrsa.errors import LrsaError
from lrsa.geometry.measures import cell_areas, shared_areas
from lrsa.numerics.taylor_hood import SteadyFlow, TaylorHood
from lrsa.pointset import Names, PointSet

LENGTH, WIDTH = 10.0, 1.0
PIECES = 4
"""Of the centre line."""


@dataclass(frozen=True)
class Pipe:
    """The benchmark: the shape of the pipe, known by the nodes of its grid, to the velocity along x there."""

    elements: int = 64
    """Along each axis, of 3 × 3 nodes: 129 × 129 in all. 32 err by about 9e-4, 64 by 1e-4 in L2."""
    viscosity: float = 0.005
    """ν, for a largest velocity of ¼ at the inlet."""
    bend: float = 1.0
    """Largest height and slope (per piece) at the ends of the pieces of the centre line."""

    names: ClassVar[Names] = Names(
        coords=("x", "y"), targets=("u_x",), units={"x": "width", "y": "width", "u_x": "1"}
    )

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random pipe and the flow through it, float32; weights are areas."""
        return self.solve(self.bend * rng.uniform(-1, 1, 2 * PIECES + 1))

    def solve(self, theta: np.ndarray) -> PointSet:
        """The case of the centre line with these parameters (9,), as in `centre_line`."""
        nodes = self.nodes(theta)
        velocity, _ = self.flow(theta).solve(self.start(theta))
        return PointSet(
            x=nodes.reshape(-1, 2).astype(np.float32),
            u=velocity[:, :1].astype(np.float32),
            weights=shared_areas(np.abs(cell_areas(nodes))).ravel().astype(np.float32),
            grid=nodes.shape[:2],
            names=self.names,
        )

    def nodes(self, theta: np.ndarray) -> np.ndarray:
        """(n, n, 2) positions; the first axis runs along the pipe, the second from the lower wall upwards."""
        x, across = self._lines()
        height, _ = centre_line(theta, x)
        return np.stack(np.broadcast_arrays(x[:, None], across + height[:, None]), axis=-1)

    def flow(self, theta: np.ndarray) -> SteadyFlow:
        """The elements in the place of that pipe."""
        return SteadyFlow(space(self.elements), self.nodes(theta).reshape(-1, 2), self.viscosity)

    def start(self, theta: np.ndarray) -> np.ndarray:
        """(V, 2) the inlet's profile carried along the pipe, parallel to the walls: free of divergence."""
        x, across = self._lines()
        _, slope = centre_line(theta, x)
        slope[0] = 0.0  # the inlet, where it is what is prescribed
        profile = WIDTH**2 / 4 - across**2
        u = np.broadcast_to(profile, (len(x), len(across)))
        return np.stack([u, slope[:, None] * profile], axis=-1).reshape(-1, 2)

    def _lines(self) -> tuple[np.ndarray, np.ndarray]:
        nodes = 2 * self.elements + 1
        return np.linspace(0, LENGTH, nodes), np.linspace(-WIDTH / 2, WIDTH / 2, nodes)


@lru_cache(maxsize=2)
def space(elements: int) -> TaylorHood:
    """All that is the same for every pipe: held at the inlet and at the walls."""
    if elements < 1:
        raise LrsaError(f"a pipe of {elements} elements is none: from 1 on")
    held = np.zeros((2 * elements + 1,) * 2, bool)
    held[0], held[:, 0], held[:, -1] = True, True, True
    return TaylorHood(held)


def centre_line(theta: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Height and slope dc/dx at the abscissae x.

    `theta` (9,) are s₀, y₁, s₁, ... y₄, s₄: the heights at the ends of the pieces (y₀ = 0) and the slopes
    there, by a coordinate that runs from 0 to 1 in each piece.
    """
    piece = np.minimum((x * (PIECES / LENGTH)).astype(int), PIECES - 1)
    t = x * (PIECES / LENGTH) - piece
    ends = np.append(0.0, theta)[2 * piece[:, None] + np.arange(4)]  # y, s before; y, s behind
    shapes = np.stack(
        [1 - 3 * t**2 + 2 * t**3, t - 2 * t**2 + t**3, 3 * t**2 - 2 * t**3, t**3 - t**2], axis=1
    )
    slopes = np.stack([6 * t**2 - 6 * t, 1 - 4 * t + 3 * t**2, 6 * t - 6 * t**2, 3 * t**2 - 2 * t], axis=1)
    return (shapes * ends).sum(axis=1), (slopes * ends).sum(axis=1) * (PIECES / LENGTH)
