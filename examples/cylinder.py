"""A surrogate with sliders: the flow around a cylinder, by the speed of the stream and the circulation.

    u - iv = U (1 - 1/z²) + iΓ / (2πz),    p = (U² - u² - v²) / 2

is the potential flow around the unit circle. Sixty cases are learned in about a minute; then

    lrsa studio runs

shows the run, and the flow at any speed and circulation. The lift on the cylinder is U Γ, which the page
integrates from the pressure.
"""

import sys
from pathlib import Path

import numpy as np

import lrsa
from lrsa.data.store import Schema

NAMES = lrsa.Names(
    ("x", "y"),
    (),
    ("u", "v", "p"),
    ("speed", "circulation"),
    {"x": "m", "y": "m", "u": "m/s", "v": "m/s", "p": "m²/s²", "speed": "m/s", "circulation": "m²/s"},
)


def cylinder(speed: float, circulation: float, rings: int = 20, spokes: int = 48) -> lrsa.PointSet:
    """The flow on `rings` circles of `spokes` points, from the cylinder to five radii away."""
    radius, angle = np.geomspace(1, 5, rings), 2 * np.pi * np.arange(spokes) / spokes
    z = np.outer(radius, np.exp(1j * angle)).ravel()
    velocity = speed * (1 - 1 / z**2) + 1j * circulation / (2 * np.pi * z)
    u, v = velocity.real, -velocity.imag
    p = (speed**2 - u**2 - v**2) / 2
    index = np.arange(rings * spokes).reshape(rings, spokes)
    after = np.roll(index, -1, axis=1)
    corners = (index[:-1], index[1:], after[1:], after[:-1])
    return lrsa.PointSet(
        np.stack([z.real, z.imag], axis=1).astype(np.float32),
        u=np.stack([u, v, p], axis=1).astype(np.float32),
        cells=np.stack([c.ravel() for c in corners], axis=1),
        surface=np.repeat(np.arange(rings) == 0, spokes),
        globals=np.array([speed, circulation], np.float32),
        names=NAMES,
    )


def write(path: Path, train: int = 60, test: int = 8, **mesh: int) -> Path:
    """A data set of cases at random parameters."""
    rng = np.random.default_rng(0)
    cases = [cylinder(*draw, **mesh) for draw in rng.uniform([0.5, -3], [2, 3], (train + test, 2))]
    lrsa.write_dataset(path, {"train": cases[test:], "test": cases[:test]}, Schema(path.stem, names=NAMES))
    return path


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs")
    surrogate = lrsa.fit(
        write(folder / "cylinder.h5"),
        out=folder / "cylinder",
        options={"width": 48, "depth": 3, "heads": 4, "rank": 16},
        epochs=60,
    )
    case = cylinder(1.2, 2.0)
    assert case.u is not None
    error = np.linalg.norm(surrogate.predict(case) - case.u) / np.linalg.norm(case.u)
    print(f"relative L2 of a new case: {error:.3f}")
