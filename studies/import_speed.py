"""How fast `lrsa data import` reads, beside a plain PyVista read of the same files in the same run.

    python studies/import_speed.py --cases 1000 --points 10000

Each case is a triangulated unit square of about that many points in random places, with two scalars and a
vector, written as PyVista writes VTU by default. MB are those of the files. The plain read only opens each
file in one process; the import also checks it, derives the measures, and writes the data set.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyvista as pv

from lrsa.mesh.importing import import_meshes
from lrsa.mesh.roles import Derived


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, help="where to put the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        size = write_cases(folder / "cases", options.cases, options.points)
        files = sorted((folder / "cases").glob("*.vtu"))
        print(f"{options.cases} VTU files of {options.points} points, {size / 1e6:.0f} MB\n")
        print("| what | processes | seconds | MB/s | cases/s |\n|---|---|---|---|---|")
        # The first pass over the files fills the cache of the disk for both.
        for path in files:
            path.read_bytes()
        report("plain `pyvista.read`", 1, options.cases, size, lambda: [pv.read(path) for path in files])
        for workers in sorted({1, options.workers}):
            choices: tuple[list[Derived], ...] = ([], ["measure"])
            for derive in choices:
                what = "`lrsa data import`" + (" `--derive measure`" if derive else "")
                out = folder / f"out{workers}{len(derive)}.h5"
                report(
                    what,
                    workers,
                    options.cases,
                    size,
                    lambda out=out, derive=derive, workers=workers: import_meshes(
                        folder / "cases", out, ["a"], ["p", "U"], derive=derive, workers=workers
                    ),
                )
                out.unlink()


def write_cases(folder: Path, cases: int, points: int) -> int:
    """Write the files; their bytes."""
    folder.mkdir(parents=True)
    side = round(points**0.5)
    square = pv.ImageData(dimensions=(side, side, 1), spacing=(1 / side, 1 / side, 1)).triangulate()
    grid = square.cast_to_unstructured_grid()
    regular = np.array(grid.points)
    for i in range(cases):
        rng = np.random.default_rng(i)
        grid.points = regular + [1, 1, 0] * rng.uniform(-0.3 / side, 0.3 / side, regular.shape)
        x, y, _ = grid.points.T
        grid["a"] = np.sin(3 * x + i)
        grid["p"] = np.cos(5 * y - i) * x
        grid["U"] = np.stack([x * y, x - y, 0 * x], axis=1) * rng.uniform(0.5, 2)
        grid.save(folder / f"case_{i:04d}.vtu")
    return sum(path.stat().st_size for path in folder.iterdir())


def report(what: str, processes: int, cases: int, size: int, work: Callable[[], object]) -> None:
    """Time the work and print its row."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(
        f"| {what} | {processes} | {seconds:.1f} | {size / 1e6 / seconds:.1f} | {cases / seconds:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
