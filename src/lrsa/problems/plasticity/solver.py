"""Forging with a random die: ρ ü = ∇·σ, J2 perfect plasticity in plane stress, large deformation.

A rigid die without friction comes down on a block of steel at 3 m/s for 1.9 ms (`plasticity_die`,
`plasticity_contact`); the block lies on a floor without friction. Explicit dynamics (`plasticity_dynamics`)
of bilinear elements with four points (`plasticity_flow`) on the published grid of 101 x 31 nodes. Nothing is
scaled but, where asked for, Young's modulus.

A die that turns an element inside out, squeezes one flat, or digs into a side of the block is drawn again
from the same generator; the case says how often that was.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lrsa.errors import Failure
from lrsa.pointset import Names, PointSet
from lrsa.problems.plasticity.contact import SPEED
from lrsa.problems.plasticity.die import NAMES, die_heights, die_pieces, nodes, random_heights, shares, times
from lrsa.problems.plasticity.dynamics import FINISHED, LEFT, Forging, Material, at_rest, forge

DRAWS = 20
"""Dies after which there is no hope."""
TOLERANCE = 1e-3
"""Millimetres by which a node of a frame may be above the die, and a step may miss the contact."""
BALANCE = 0.01
"""Share of the work of the die that may be missing from the energy at the end."""


@dataclass(frozen=True)
class Plasticity:
    """The benchmark: the height of the die above the nodes and a time to places and displacements then."""

    young: float = 200e3
    """Young's modulus, MPa. A softer block takes longer steps; its elastic strains, σ_Y/E, grow."""
    nu: float = 0.3
    """Poisson's ratio."""
    limit: float = 70.0
    """Yield stress, MPa."""
    density: float = 7.85e-3
    """Grams per cubic millimetre."""
    columns: int = 100
    """Elements along the block."""
    rows: int = 30
    """Elements over its height."""
    safety: float = 0.9
    """Steps over the longest stable one."""
    thinnest: float = 0.02
    """A die fails when the stable step falls below this part of the first one."""

    names: ClassVar[Names] = NAMES

    def sample(self, rng: np.random.Generator) -> PointSet:
        """One random die and the block under it, float32; weights are areas at rest."""
        for failed in range(DRAWS):
            heights = random_heights(rng)
            forging = self.forge(heights)
            if passed(forging, heights):
                return self.case(heights, forging, failed)
        raise Failure(f"{DRAWS} dies in a row failed. Choose a smaller `thinnest` or more elements")

    def forge(self, heights: np.ndarray) -> Forging:
        """The run under the die with these heights at its knots (8,), before they are scaled."""
        material = Material(self.young, self.nu, self.limit, self.density)
        block = at_rest(self.columns, self.rows, self.density)
        return forge(block, material, die_pieces(heights), self.safety, self.thinnest)

    def case(self, heights: np.ndarray, forging: Forging, redraws: int) -> PointSet:
        """The run as a case, before which so many dies failed."""
        x = nodes(self.columns, self.rows)
        frames = np.concatenate([forging.frames, forging.frames - x], axis=-1)
        return PointSet(
            x=x.reshape(-1, 2).astype(np.float32),
            f=die_heights(die_pieces(heights), x[..., 0]).reshape(-1, 1).astype(np.float32),
            u=frames.reshape(len(frames), -1, 4).astype(np.float32),
            weights=shares(self.columns, self.rows).ravel().astype(np.float32),
            times=times().astype(np.float32),
            grid=x.shape[:2],
            redraws=np.array(redraws),
            names=self.names,
        )


def passed(forging: Forging, heights: np.ndarray) -> bool:
    """Whether the run finished and its balance holds: all elements convex, nothing above the die."""
    if forging.end != FINISHED or forging.ledger[LEFT] >= TOLERANCE or abs(forging.energy_error) >= BALANCE:
        return False
    return smallest_corner(forging.frames) > 0 and deepest(forging.frames, heights) < TOLERANCE


def smallest_corner(frames: np.ndarray) -> float:
    """The smallest Jacobian at a corner of an element: positive if all elements are convex.

    Args:
        frames: (T, I, J, 2) nodes.
    """
    a, b, c, d = (frames[:, i:m, j:n] for i, m, j, n in _CORNERS)
    sides = b - a, c - b, d - c, a - d
    turns = [
        before[..., 0] * after[..., 1] - before[..., 1] * after[..., 0]
        for before, after in zip(sides, sides[1:] + sides[:1], strict=True)
    ]
    return float(np.min(turns))


_CORNERS = (
    (None, -1, None, -1),
    (1, None, None, -1),
    (1, None, 1, None),
    (None, -1, 1, None),
)


def deepest(frames: np.ndarray, heights: np.ndarray) -> float:
    """How far a node, on whatever side of the block, is above the die, in millimetres."""
    die = die_heights(die_pieces(heights), frames[..., 0]) - SPEED * times()[:, None, None]
    return float((frames[..., 1] - die).max())
