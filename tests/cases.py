"""Cases of every kind for the tests of the data room: random arrays in each field that is asked for."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lrsa.pointset import Names, PointSet

OPTIONAL = ("f", "u_mask", "weights", "surface", "globals", "cells", "times", "time", "f_mask", "residual")
NAMES = Names(("x", "y"), ("a", "b"), ("p", "T"), ("Re",), {"p": "Pa", "T": "K", "Re": "1"}, "y")
FRAMES = 3


def make_case(seed: int, points: int, fields: Iterable[str] = ("f",), **more: Any) -> PointSet:
    """A float32 case of two coordinates and two targets, with the optional `fields`; `more` replaces."""
    rng, n, there = np.random.default_rng(seed), points, set(fields)
    frames = (FRAMES,) if "times" in there else ()

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    every: dict[str, Any] = {
        "f": normal(n, 2),
        "u_mask": rng.random((n, 2)) < 0.7,
        "weights": rng.random(n).astype(np.float32) + 0.1,
        "surface": rng.random(n) < 0.5,
        "globals": normal(1),
        "cells": rng.integers(-1, n, (int(rng.integers(0, 4)), 3)),
        "times": np.cumsum(rng.random(FRAMES)).astype(np.float32),
        "time": np.asarray(rng.random(), np.float32),
        "f_mask": rng.random((n, 2)) < 0.7,
        "residual": np.asarray(rng.random(), np.float32),
    }
    there -= {"f_mask"} if "f" not in there else set()
    kept = {name: value for name, value in every.items() if name in there}
    if "cells" in kept and "cells" not in more:
        kept["cell_types"] = rng.integers(1, 35, len(kept["cells"])).astype(np.uint8)
    return PointSet(**{"x": normal(n, 2), "u": normal(*frames, n, 2), "names": NAMES, **kept, **more})


@st.composite
def case_lists(
    draw: st.DrawFn, fields: Iterable[str] = OPTIONAL, ragged: bool | None = None
) -> list[PointSet]:
    """Up to six cases with the same fields, of one number of points or of different ones."""
    there = draw(st.sets(st.sampled_from(sorted(fields))))
    count, seed = draw(st.integers(1, 6)), draw(st.integers(0, 2**16))
    points = st.integers(1, 9)
    uneven = draw(st.booleans()) if ragged is None else ragged
    sizes = draw(st.lists(points, min_size=count, max_size=count)) if uneven else [draw(points)] * count
    return [make_case(seed + i, n, there) for i, n in enumerate(sizes)]


def assert_equal(actual: PointSet, expected: PointSet) -> None:
    """All arrays, the grid and the names, bit for bit."""
    assert actual.arrays().keys() == expected.arrays().keys()
    for name, value in expected.arrays().items():
        read = actual.arrays()[name]
        assert read.dtype == value.dtype, name
        assert np.array_equal(read, value), name
    assert actual.grid == expected.grid
    assert actual.names == expected.names
