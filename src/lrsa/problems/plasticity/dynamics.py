"""Explicit dynamics of the block: ρ ü = ∇·σ by central differences, lumped masses that never change.

Units are millimetres, milliseconds, grams and megapascals (newtons, millijoules). The lower side slides on a
floor without friction and does not leave it. A step is a fraction of the longest stable one, which is
computed anew every `KEEP` steps from the elements as they are: there is no floor under it. A run ends early
when an element turns inside out, or when elements are so thin that the step has become too short.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lrsa.problems.plasticity.contact import SPEED, touch
from lrsa.problems.plasticity.die import FRAMES, HEIGHT, INTERVAL, WIDTH, nodes, shares
from lrsa.problems.plasticity.flow import GAUSS, ROWS, STATE, TILE, compiled, longest_step, point

KEEP = 20
FINISHED, INVERTED, THIN = range(3)
WORK, LOSS, PUSH_X, PUSH_Y, FLOOR, PLASTIC, STEPS, SHORTEST, LEFT = range(9)
"""The ledger: work of the die and what impacts lose of it, impulses of die and floor, plastic work, number
of steps, the shortest step over the first one, the largest error that the contact left."""


class Material(NamedTuple):
    young: float
    nu: float
    limit: float
    density: float


class Workpiece(NamedTuple):
    """The nodes (I, J) and the elements between them."""

    x: np.ndarray
    y: np.ndarray
    vx: np.ndarray
    vy: np.ndarray
    fx: np.ndarray
    """Forces by which the elements resist."""
    fy: np.ndarray
    mass: np.ndarray
    state: np.ndarray
    """(I - 1, tiles of a column, STATE · TILE) of the elements."""
    rest: float
    """Jacobian of the elements at rest."""


@dataclass(frozen=True)
class Forging:
    """A run: what came out, and its balances at the end."""

    frames: np.ndarray
    """(20, I, J, 2) places of the nodes."""
    end: int
    """FINISHED, INVERTED or THIN."""
    ledger: np.ndarray
    kinetic: float
    elastic: float
    momentum: tuple[float, float]

    @property
    def energy_error(self) -> float:
        """What is missing between the work of the die and where it went, over the work."""
        gone = self.kinetic + self.elastic + self.ledger[PLASTIC] + self.ledger[LOSS]
        return float((self.ledger[WORK] - gone) / self.ledger[WORK])


def at_rest(columns: int, rows: int, density: float) -> Workpiece:
    """The block before the die comes."""
    x, y = np.moveaxis(nodes(columns, rows), -1, 0).copy()
    vx, vy, fx, fy = (np.zeros_like(x) for _ in range(4))
    state = np.zeros((columns, -(-rows // TILE), STATE * TILE))
    rest = WIDTH * HEIGHT / (4 * columns * rows)
    return Workpiece(x, y, vx, vy, fx, fy, density * shares(columns, rows), state, rest)


def forge(
    block: Workpiece, material: Material, pieces: np.ndarray, safety: float, thinnest: float
) -> Forging:
    """Press the die into the block, which is changed.

    Args:
        block: At rest.
        material: Of the block.
        pieces: (4, 7) of the die.
        safety: Fraction of the longest stable step.
        thinnest: Part of the first step below which a step is too short.
    """
    frames = np.full((FRAMES, *block.x.shape, 2), np.nan)
    ledger = np.zeros(9)
    end = run(block, material, pieces, safety, thinnest, frames, ledger)
    kinetic = 0.5 * float((block.mass * (block.vx**2 + block.vy**2)).sum())
    momentum = float((block.mass * block.vx).sum()), float((block.mass * block.vy).sum())
    return Forging(frames, end, ledger, kinetic, _stored(block, material), momentum)


def _stored(block: Workpiece, material: Material) -> float:
    """Elastic energy."""
    columns, chunks = block.state.shape[:2]
    rows = block.x.shape[1] - 1
    size = -(-rows // chunks)
    filled = np.arange(TILE) < np.minimum(size, rows - size * np.arange(chunks))[:, None]
    a, b, c = np.moveaxis(block.state.reshape(columns, chunks, 4, 3, TILE), 3, 0)
    strain = (a * a + b * b - 2 * material.nu * a * b + 2 * (1 + material.nu) * c * c) / (2 * material.young)
    return float((strain.sum((0, 2)) * filled).sum()) * block.rest


@compiled
def run(
    block: Workpiece,
    material: Material,
    pieces: np.ndarray,
    safety: float,
    thinnest: float,
    frames: np.ndarray,
    ledger: np.ndarray,
) -> int:
    """Fill the frames and the ledger; how it ended."""
    tile = np.zeros(ROWS * TILE)
    tile[:TILE] = tile[4 * TILE : 5 * TILE] = 1.0  # what fills up a tile is a square at rest
    contacts = np.zeros((2 * len(block.x) - 1, 5))
    time, before, reach = 0.0, 0.0, 0.0
    first, _ = longest_step(block, material)
    ledger[SHORTEST] = 1.0
    frames[0, ..., 0], frames[0, ..., 1] = block.x, block.y
    for frame in range(1, len(frames)):
        while time < frame * INTERVAL - 1e-9:
            step, smallest = longest_step(block, material)
            if not smallest > 0.0:
                return INVERTED
            ledger[SHORTEST] = min(ledger[SHORTEST], step / first)
            if step < thinnest * first:
                return THIN
            left = frame * INTERVAL - time
            count = int(np.ceil(left / (safety * step)))
            step = left / count
            for _ in range(min(count, KEEP)):
                time += step
                ledger[STEPS] += 1
                kick = 0.5 * (before + step)
                move(block, kick, step, ledger)
                # A force moves a mass by force · kick · step: the first guess is the force of the last step.
                contacts[:, 0] *= 1.0 if reach == 0.0 else kick * step / reach
                push(block, pieces, SPEED * time, kick, step, contacts, ledger)
                ledger[PLASTIC] += resist(block, material, step, tile)
                before, reach = step, kick * step
        frames[frame, ..., 0], frames[frame, ..., 1] = block.x, block.y
    return FINISHED


@compiled
def move(block: Workpiece, kick: float, step: float, ledger: np.ndarray) -> None:
    """Velocities from the forces, places from the velocities; the floor holds the last row."""
    last = block.x.shape[1] - 1
    for i in range(len(block.x)):
        for j in range(last + 1):
            r = kick / block.mass[i, j]
            block.vx[i, j] -= r * block.fx[i, j]
            block.vy[i, j] -= r * block.fy[i, j]
        ledger[FLOOR] -= block.mass[i, last] * block.vy[i, last]
        block.vy[i, last] = 0.0
        for j in range(last + 1):
            block.x[i, j] += step * block.vx[i, j]
            block.y[i, j] += step * block.vy[i, j]


@compiled
def push(
    block: Workpiece,
    pieces: np.ndarray,
    travel: float,
    kick: float,
    step: float,
    contacts: np.ndarray,
    ledger: np.ndarray,
) -> None:
    """The die corrects the places; velocities follow, work and impulses are booked."""
    x, y = block.x[:, 0].copy(), block.y[:, 0].copy()
    ledger[LEFT] = max(ledger[LEFT], touch(block.x, block.y, block.mass, pieces, travel, contacts))
    for i in range(len(x)):
        dx, dy = (block.x[i, 0] - x[i]) / step, (block.y[i, 0] - y[i]) / step
        if dx == 0.0 and dy == 0.0:
            continue
        m = block.mass[i, 0]
        # The mean of the velocities before and after the step, the force of the elements included.
        meanx = block.vx[i, 0] + 0.5 * (dx + kick * block.fx[i, 0] / m)
        meany = block.vy[i, 0] + 0.5 * (dy + kick * block.fy[i, 0] / m)
        block.vx[i, 0] += dx
        block.vy[i, 0] += dy
        ledger[WORK] -= m * dy * SPEED
        ledger[LOSS] -= m * (dy * SPEED + dx * meanx + dy * meany)
        ledger[PUSH_X] += m * dx
        ledger[PUSH_Y] += m * dy


@compiled
def resist(block: Workpiece, material: Material, step: float, tile: np.ndarray) -> float:
    """Stresses at the end of the step and their forces on the nodes; the plastic work."""
    young, nu, limit, _ = material
    columns, chunks = block.state.shape[:2]
    rows = block.x.shape[1] - 1
    size = -(-rows // chunks)
    block.fx[:] = 0.0
    block.fy[:] = 0.0
    work = 0.0
    for i in range(columns):
        for c in range(chunks):
            a, n = c * size, min(size, rows - c * size)
            b = a + n + 1
            _modes(tile, 0, block.x[i, a:b], block.x[i + 1, a:b], 1.0)
            _modes(tile, 3, block.y[i, a:b], block.y[i + 1, a:b], 1.0)
            _modes(tile, 6, block.vx[i, a:b], block.vx[i + 1, a:b], step)
            _modes(tile, 9, block.vy[i, a:b], block.vy[i + 1, a:b], step)
            tile[12 * TILE :] = 0.0
            s = block.state[i, c]
            for k in range(4):
                xi, eta = -GAUSS if k % 2 == 0 else GAUSS, -GAUSS if k < 2 else GAUSS
                own = s[3 * k * TILE : 3 * (k + 1) * TILE]
                point(tile, own, xi, eta, young, nu, limit, block.rest)
            _spread(tile, 12, block.fx[i, a:b], block.fx[i + 1, a:b])
            _spread(tile, 15, block.fy[i, a:b], block.fy[i + 1, a:b])
            for j in range(n):
                work += tile[18 * TILE + j]
    return work


@compiled
def _modes(tile: np.ndarray, k: int, here: np.ndarray, there: np.ndarray, scale: float) -> None:
    """Modes k to k + 2 of a tile from the values at the nodes of two columns."""
    q = 0.25 * scale
    for j in range(len(here) - 1):
        a, b, c, d = here[j], there[j], there[j + 1], here[j + 1]
        tile[k * TILE + j] = q * ((c + b) - (a + d))
        tile[(k + 1) * TILE + j] = q * ((c + d) - (a + b))
        tile[(k + 2) * TILE + j] = q * ((a + c) - (b + d))


@compiled
def _spread(tile: np.ndarray, k: int, here: np.ndarray, there: np.ndarray) -> None:
    """Forces on the modes, added to those on the nodes of two columns."""
    for j in range(len(here) - 1):
        a, b, c = 0.25 * tile[k * TILE + j], 0.25 * tile[(k + 1) * TILE + j], 0.25 * tile[(k + 2) * TILE + j]
        here[j] += c - a - b
        there[j] += a - b - c
        there[j + 1] += a + b + c
        here[j + 1] += b - a - c
