"""A surrogate of your own solver: cases in, trained model out, predictions in physical units."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import lrsa

rng = np.random.default_rng(0)


def solve(points: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Stands for your solver: the potential of a charge at `source`, at scattered points."""
    return 1 / np.sqrt(0.05 + ((points - source) ** 2).sum(1, keepdims=True))


def case() -> lrsa.PointSet:
    points, source = rng.random((rng.integers(150, 250), 2)), rng.random(2)
    names = lrsa.Names(("x", "y"), (), ("potential",), ("source_x", "source_y"))
    return lrsa.PointSet(x=points, u=solve(points, source), globals=source, names=names)


with TemporaryDirectory() as folder:
    lrsa.write_dataset(Path(folder, "charge.h5"), [case() for _ in range(100)])
    surrogate = lrsa.fit(
        Path(folder, "charge.h5"),
        out=Path(folder, "run"),
        options={"width": 32, "depth": 2, "heads": 4, "rank": 16},
        epochs=15,
        max_lr=3e-3,
    )

new = case()
predicted = surrogate.predict(new.x, globals=new.globals)
error = np.linalg.norm(predicted - new.u) / np.linalg.norm(new.u)  # pyright: ignore
print(f"relative error of a new case: {error:.3f}")
