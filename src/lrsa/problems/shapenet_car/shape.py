"""Parametric cars: a superellipsoid in a box, bent to bonnet, cabin and boot. No wheels, no mirrors.

The box [-1, 1]³ is rounded by X = s / (|s_x|ⁿ + |s_y|ⁿ + |s_z|ⁿ)^(1/n) and then moved axis by axis: z by Z
alone, y by Y and Z, x by all three, each of them growing with its own. So no car crosses itself, and as the
quadrilaterals of the box share their corners, each is watertight. x is across, y up, z along the stream.
"""

from dataclasses import dataclass, fields

import numpy as np

QUADS = (20, 12, 50)
"""Of the box across, up and along: 3680 with 3682 corners, as many as the surfaces of published cars have."""


@dataclass(frozen=True)
class Car:
    """Lengths in metres; places along the car and heights as shares of it."""

    length: float
    width: float
    height: float
    """From the underbody to the roof."""
    clearance: float
    """Below the underbody."""
    bonnet: float
    """Its height."""
    boot: float
    """Its height; 1 has an upright back."""
    screen: float
    """Where the windscreen begins, from the nose on."""
    screen_length: float
    window: float
    """Where the rear window ends, from the tail on."""
    window_length: float
    nose: float
    """By how much it is narrower than the middle."""
    tail: float
    """Likewise."""
    lean: float
    """Of the sides above the bonnet: by how much the roof is narrower."""
    diffuser: float
    """By how much of the height the underbody rises behind."""
    roundness: float
    """n: 2 would be an ellipsoid, many a box."""

    @staticmethod
    def draw(rng: np.random.Generator) -> "Car":
        return Car(**{field.name: rng.uniform(*RANGES[field.name]) for field in fields(Car)})

    def surface(self, finer: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """(N, 3) points and (Q, 4) quadrilaterals, counter-clockwise from outside.

        Those that are `finer` have the points of the others, too.
        """
        box, quads = box_surface(tuple(finer * n for n in QUADS))
        round_ = box / (np.abs(box) ** self.roundness).sum(1, keepdims=True) ** (1 / self.roundness)
        return self.bent(round_), quads

    def bent(self, box: np.ndarray) -> np.ndarray:
        """(N, 3) points of [-1, 1]³ where they are in the car."""
        x, y, z = box.T
        along = (z + 1) / 2
        slim = 1 - self.nose * (1 - along) ** 4 - self.tail * along**4
        front = self.bonnet + (1 - self.bonnet) * _step((along - self.screen) / self.screen_length)
        back = self.boot + (1 - self.boot) * _step((1 - self.window - along) / self.window_length)
        top = np.minimum(front, back)
        bottom = self.diffuser * _step((along - 0.7) / 0.3)
        share = bottom + (y + 1) / 2 * (top - bottom)
        leaning = 1 - self.lean * np.clip((share - self.bonnet) / (1 - self.bonnet), 0, 1) ** 1.5
        return np.column_stack(
            [
                x * self.width / 2 * slim * leaning,
                self.clearance + self.height * share,
                z * self.length / 2,
            ]
        )


RANGES: dict[str, tuple[float, float]] = {
    "length": (3.6, 5.0),
    "width": (1.6, 2.0),
    "height": (1.1, 1.6),
    "clearance": (0.15, 0.3),
    "bonnet": (0.45, 0.65),
    "boot": (0.5, 1.0),
    "screen": (0.15, 0.3),
    "screen_length": (0.1, 0.25),
    "window": (0.0, 0.15),
    "window_length": (0.1, 0.3),
    "nose": (0.0, 0.25),
    "tail": (0.0, 0.2),
    "lean": (0.05, 0.3),
    "diffuser": (0.0, 0.15),
    "roundness": (4.0, 8.0),
}


def box_surface(cells: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The surface of [-1, 1]³ in so many quadrilaterals along each axis, counter-clockwise from outside."""
    grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, n + 1) for n in cells), indexing="ij"), axis=-1)
    number = np.arange(grid[..., 0].size).reshape(grid.shape[:3])
    quads = []
    for axis in range(3):
        for end in (0, -1):
            face = np.take(number, end, axis=axis)
            if (axis == 1) == (end == -1):  # the other two axes turn the other way round
                face = face.T
            quads.append(np.stack([face[:-1, :-1], face[1:, :-1], face[1:, 1:], face[:-1, 1:]], axis=-1))
    chosen, quads = np.unique(np.concatenate([q.reshape(-1, 4) for q in quads]), return_inverse=True)
    return grid.reshape(-1, 3)[chosen], quads.reshape(-1, 4)


def stl(points: np.ndarray, quads: np.ndarray) -> bytes:
    """Two triangles of each quadrilateral, in the binary format."""
    triangles = points[np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])]
    rows = np.zeros(len(triangles), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    rows["corners"] = triangles
    rows["normal"] = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    return bytes(80) + np.uint32(len(rows)).tobytes() + rows.tobytes()


def _step(x: np.ndarray) -> np.ndarray:
    """From 0 to 1 with a level start and end."""
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)
