"""The C-grid around an airfoil: nodes, cells, faces, and the lines of cells that are solved at once.

The airfoil is the NACA-0012 in a box of 1.5 × 0.2 whose displacements move it vertically, cubic in x and
linear in y. The index i runs from the outlet above the wake to the trailing edge, over the upper side to the
leading edge, back along the lower side and to the outlet below the wake; j runs from the airfoil to the far
field. The two halves of the row j = 0 behind the trailing edge are the same points: the cut.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from lrsa.geometry.measures import cell_areas
from lrsa.pointset import Names

NAMES = Names(coords=("x", "y"), targets=("mach",), units={"x": "chord", "y": "chord", "mach": "1"})
"""Of the points and of the field there, in generated and in published cases."""
BOX = (1.5, 0.2)
"""Width and height of the box around the airfoil, centred at (0.5, 0)."""
RADIUS = 40.0
"""Of the half circle (about the trailing edge) upstream; also where the grid ends downstream and sideways."""
GROWTH = 1.02
"""The largest ratio of neighbouring steps near the airfoil."""
BACK, FORTH, INWARD, OUTWARD = range(4)
"""The neighbours of a cell, at i - 1, i + 1, j - 1 (or across the cut) and j + 1."""


class Cells(NamedTuple):
    """Which cell touches which; cell (i, j) has the number i · layers + j, ghosts follow."""

    faces: np.ndarray
    """(F, 4) the cells in a row across each face between cells; the face is in the middle."""
    slots: np.ndarray
    """(F, 2) which neighbour the cells on the two sides of the face are of each other."""
    wall: np.ndarray
    """(W, 3) the cell on the airfoil, the next one outwards, the ghost inside the airfoil."""
    far: np.ndarray
    """(E, 2) the cell at the outer boundary, the ghost beyond; those at the outlet come last."""
    outer: int
    """How many of these are not at the outlet."""
    neighbours: np.ndarray
    """(C, 4) of every cell, -1 where there is none."""
    rays: np.ndarray
    """(C, 3) the cells line by line outwards, through the cut in the wake, and on which sides of each the
    line comes in and goes out (-1 at its ends)."""
    rings: np.ndarray
    """(C, 3) the same along i."""


class CellMetrics(NamedTuple):
    """Normals times lengths, from the second to the third cell of a face or outwards; areas of the cells."""

    faces: np.ndarray
    wall: np.ndarray
    far: np.ndarray
    areas: np.ndarray


def chord_stations(around: int) -> np.ndarray:
    """(around/2 + 1,) abscissae from 0 to 1: evenly spaced, and one more close to the leading edge."""
    even = np.linspace(0, 1, around // 2)
    return np.concatenate([[0, even[1] / 4], even[1:]])


def c_grid(
    displacements: np.ndarray, stations: np.ndarray, behind: int, layers: int, first: float
) -> np.ndarray:
    """(2 behind + around + 1, layers + 1, 2) nodes, on straight lines from the airfoil to the far field.

    Args:
        displacements: (8,) vertical ones of the corners of the box, four below from left to right and four
            above from right to left.
        stations: (around/2 + 1,) abscissae of the nodes on either side, from 0 to 1.
        behind: Cells along the wake.
        layers: Cells from the airfoil to the far field.
        first: Height of the first layer, where the lines have the length of the radius.
    """
    x = np.concatenate([stations[::-1], stations[1:]])
    half = naca0012(stations)
    half[-1] = 0.0  # up to rounding it is
    y = np.concatenate([half[::-1], -half[1:]])
    step = np.hypot(x[1] - x[0], y[1] - y[0])
    y = y + displaced(displacements, x, y)
    y[-1] = y[0]  # the trailing edge is one point; products may round its two columns differently
    wake = geometric(behind, step / (RADIUS - 1))[1:]
    tail = np.stack([1 + (RADIUS - 1) * wake, y[0] * (1 - wake)], axis=1)
    inner = np.concatenate([tail[::-1], np.stack([x, y], axis=1), tail])
    angles = np.linspace(np.pi / 2, 1.5 * np.pi, len(x))
    arc = RADIUS * np.stack([np.cos(angles), np.sin(angles)], axis=1) + [1, 0]
    above = np.stack([np.linspace(1, RADIUS, behind + 1)[1:], np.full(behind, RADIUS)], axis=1)
    outer = np.concatenate([above[::-1], arc, above * [1, -1]])
    share = geometric(layers, first / RADIUS)[:, None]
    return inner[:, None] * (1 - share) + outer[:, None] * share


def naca0012(x: np.ndarray) -> np.ndarray:
    """Half the thickness of the airfoil with the closed trailing edge."""
    return 0.6 * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)


def displaced(displacements: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far the points of the box move upwards."""
    corners = 0.5 + BOX[0] * np.array([-1 / 2, -1 / 6, 1 / 6, 1 / 2])
    cubics = [np.prod([(x - b) / (a - b) for b in corners if b != a], axis=0) for a in corners]  # Lagrange's
    below = 0.5 - y / BOX[1]
    return displacements[:4] @ cubics * below + displacements[:3:-1] @ cubics * (1 - below)


def geometric(cells: int, first: float) -> np.ndarray:
    """(cells + 1,) from 0 to 1 in steps of one ratio; where it would exceed `GROWTH`, three quarters of the
    nodes follow that, and the others the ratio that it then takes."""

    def ratio(length: float, first: float, cells: int) -> float:
        return float(brentq(lambda r: (r - 1) * length - first * (r**cells - 1), 1 + 1e-4, 2.0, xtol=1e-15))  # pyright: ignore[reportArgumentType]

    near = cells
    growth = ratio(1.0, first, cells)
    if growth > GROWTH:
        near, growth = 3 * (cells + 1) // 4 - 1, GROWTH
    steps = first * growth ** np.arange(near + 1)
    if near < cells:
        steps = np.append(
            steps[:-1],
            steps[-1] * ratio(1 - steps[:-1].sum(), steps[-1], cells - near) ** np.arange(cells - near),
        )
    return np.concatenate([[0.0], np.cumsum(steps[: cells - 1]), [1.0]])


@lru_cache(maxsize=4)
def connect(behind: int, around: int, layers: int) -> Cells:
    """The cells of a C-grid."""
    count = 2 * behind + around
    cell = np.arange(count * layers).reshape(count, layers)
    wall, cut = cell[behind : count - behind], cell[:behind]
    mirror = cell[::-1][:behind]
    ghosts = np.arange(cell.size, cell.size + len(wall) + count + 2 * layers)
    inside, beyond = np.split(ghosts, [len(wall)])
    edge = np.concatenate([cell[:, -1], cell[0], cell[-1]])
    # With the ghosts around it: one layer is enough, since nothing is reconstructed outside.
    padded = np.full((count + 2, layers + 2), -1)
    padded[1:-1, 1:-1] = cell
    padded[1:-1, -1], padded[0, 1:-1], padded[-1, 1:-1] = np.split(beyond, [count, count + layers])
    padded[1 + behind : 1 + count - behind, 0] = inside
    padded[1 : 1 + behind, 0], padded[1 + count - behind : -1, 0] = mirror[:, 0], cut[::-1, 0]
    along = np.stack([padded[k : count - 1 + k, 1:-1] for k in range(4)], axis=-1).reshape(-1, 4)
    across = np.stack([padded[1:-1, k : layers - 1 + k] for k in range(4)], axis=-1).reshape(-1, 4)
    through = np.stack([mirror[:, 1], mirror[:, 0], cut[:, 0], cut[:, 1]], axis=-1)
    sides = ((along, FORTH, BACK), (across, OUTWARD, INWARD), (through, INWARD, INWARD))
    near = np.stack([padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]], axis=-1)
    return Cells(
        faces=np.concatenate([faces for faces, _, _ in sides]),
        slots=np.concatenate([np.tile([a, b], (len(faces), 1)) for faces, a, b in sides]),
        wall=np.column_stack([wall[:, 0], wall[:, 1], inside]),
        far=np.column_stack([edge, beyond]),
        outer=count,
        neighbours=np.where(near < cell.size, near, -1).reshape(-1, 4),
        rays=_rays(cell, behind),
        rings=np.concatenate([_line(cell[:, j], BACK, FORTH) for j in range(layers)]),
    )


def measure(nodes: np.ndarray, behind: int) -> CellMetrics:
    """The normals and areas of the cells of a C-grid, in the order of `connect`."""
    along, across = np.diff(nodes, axis=1), np.diff(nodes, axis=0)
    forth = np.stack([-along[..., 1], along[..., 0]], axis=-1)  # (count + 1, layers, 2)
    outward = np.stack([across[..., 1], -across[..., 0]], axis=-1)  # (count, layers + 1, 2)
    inner = [forth[1:-1].reshape(-1, 2), outward[:, 1:-1].reshape(-1, 2), outward[:behind, 0]]
    return CellMetrics(
        faces=np.concatenate(inner),
        wall=-outward[behind : len(outward) - behind, 0],
        far=np.concatenate([outward[:, -1], -forth[0], forth[-1]]),
        areas=cell_areas(nodes),
    )


def _rays(cell: np.ndarray, behind: int) -> np.ndarray:
    """From the wake to the leading edge, above and below in turn, so that neither side is ahead."""
    count, layers = cell.shape
    lines = []
    for i in range(behind):
        line = _line(np.concatenate([cell[i, ::-1], cell[count - 1 - i]]), OUTWARD, INWARD)
        line[layers:, 1:] = line[layers:, :0:-1]
        line[-1, 1:] = INWARD, -1
        lines.append(line)
    for i in range(behind, count // 2):
        lines += [_line(cell[k], INWARD, OUTWARD) for k in (i, count - 1 - i)]
    return np.concatenate(lines)


def _line(cells: np.ndarray, come: int, go: int) -> np.ndarray:
    line = np.column_stack([cells, np.full(len(cells), come), np.full(len(cells), go)])
    line[0, 1] = line[-1, 2] = -1
    return line
