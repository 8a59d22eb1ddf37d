"""Which axis of a body points upwards: named by the user, or found by its symmetry."""

from contextvars import ContextVar

import numpy as np
from scipy.spatial import KDTree

from lrsa.errors import LrsaError

_named: ContextVar[str] = ContextVar("up", default="auto")
LOOKED_AT = 2000
"""Points by which the symmetry is judged."""
CLEARLY = 1.5
"""How much less symmetric the upward axis must be than the one across."""


def choose_up(up: str) -> None:
    """From now on x, y or z is upwards in pictures; `auto` looks at each body."""
    if up not in ("auto", "x", "y", "z"):
        raise LrsaError(f'--up takes x, y, z or auto, not "{up}"')
    _named.set(up)


def upward(x: np.ndarray) -> int:
    """The upward axis of points (N, 3), 0 to 2.

    Vehicles, wings and buildings are mirror images of themselves from side to side, not from bottom to top:
    of the two axes that are not the longest, the less symmetric one is upwards, if clearly so; else z.
    """
    named = _named.get()
    if named in ("x", "y", "z"):
        return "xyz".index(named)
    if x.shape[1] != 3 or len(x) < 4:
        return 2
    extent = np.ptp(x, axis=0)
    across = [axis for axis in range(3) if axis != int(extent.argmax())]
    some = x[:: -(-len(x) // LOOKED_AT)].astype(float)
    tree = KDTree(some)
    unlike = {axis: _unlike(some, tree, axis) for axis in across}
    up = max(unlike, key=lambda axis: unlike[axis])
    other = next(axis for axis in across if axis != up)
    return up if unlike[up] > CLEARLY * unlike[other] else 2


def _unlike(x: np.ndarray, tree: KDTree, axis: int) -> float:
    """How far the points are from their mirror image along an axis, on the average."""
    mirrored = x.copy()
    mirrored[:, axis] = x[:, axis].min() + x[:, axis].max() - x[:, axis]
    return float(tree.query(mirrored)[0].mean())
