"""`lrsa data ...`: list, make, import and show data sets."""

from pathlib import Path

from lrsa.cli.checking import at_least, words
from lrsa.errors import LrsaError


def data_list() -> None:
    """List the benchmarks: what they are, their scales, and what is on this machine already."""
    from rich.table import Table

    from lrsa.console import console
    from lrsa.problems.catalogue import CATALOGUE

    table = Table("benchmark", "what", "made here")
    for benchmark in CATALOGUE.values():
        made = [f for f in benchmark.fidelities if benchmark.path(f).exists()]
        table.add_row(benchmark.name, benchmark.about, ", ".join(made) or "-")
        for name, scale in benchmark.scales.items():
            table.add_row("", f"--scale {name}: {scale.about}", "")
    console.print(table)


def data_make(
    name: str,
    /,
    samples: int | None = None,
    test: int | None = None,
    out: Path | None = None,
    workers: int | None = None,
    seed: int = 0,
    fidelity: str = "default",
) -> None:
    """Make the data of a benchmark by solving its equation; interrupted, it goes on where it was.

    Args:
        name: The benchmark.
        samples: Training cases (default: as published). More than are there extend the set.
        test: Test cases (default: as published, but no more than training cases).
        out: The file (default: in the cache, where training finds it).
        workers: Processes (default: one for each core).
        seed: Of the whole set.
        fidelity: The resolution of the solver; `lrsa data list` shows the scales that use it.
    """
    from lrsa.console import bar, console
    from lrsa.data.making import make_dataset
    from lrsa.problems.catalogue import get

    benchmark = get(name)
    at_least(1, workers=workers)
    at_least(0, seed=seed)
    with bar(f"Making {name}") as report:
        path = make_dataset(
            benchmark,
            samples,
            test,
            fidelity,
            seed,
            workers,
            out,
            lambda done, total: report(done, total, "cases"),
        )
    console.print(f"{path}\nLook at it with `lrsa data show {path}`")


def data_import(
    source: str,
    /,
    out: Path | None = None,
    inputs: str = "",
    targets: str = "",
    globals: Path | None = None,
    derive: str = "",
    workers: int | None = None,
    stride: int | None = None,
) -> None:
    """Bring your own meshes, or the official files of a benchmark, into our format.

    With nothing but the source it lists what is there and proposes a command.

    Args:
        source: A folder, a file or a quoted glob of meshes (VTU, VTP, VTK, OpenFOAM, CGNS, XDMF, EnSight,
            STL, PLY, OBJ), NPZ, HDF5, CSV or Parquet; or the folder of a benchmark's official files.
        out: The HDF5 file to write.
        inputs: Arrays that the model is given, separated by commas.
        targets: Arrays that it is to predict, separated by commas.
        globals: Table of per-case parameters, the case in its first column.
        derive: Of normals, sdf, measure and surface, those to compute from the mesh, separated by commas.
        workers: Processes (default: one for each core).
        stride: Every so-many-th point of official files (default: as published).
    """
    from lrsa.problems.official import recognise

    at_least(1, stride=stride, workers=workers)
    official = Path(source).exists() and recognise(Path(source)) is not None
    if not (official or inputs or targets):
        _propose(source, workers)
    elif out is None:
        raise LrsaError("name the file to write with --out, e.g. --out my.h5")
    elif official:
        _import_official(Path(source), out, stride)
    else:
        _import_meshes(source, out, words(inputs), words(targets), globals, words(derive), workers)


def _propose(source: str, workers: int | None) -> None:
    from lrsa.console import bar, console
    from lrsa.mesh.importing import propose

    with bar("Reading") as report:
        found = propose(source, workers, lambda done, total: report(done, total, "files"))
    console.print(found)


def _import_official(source: Path, out: Path, stride: int | None) -> None:
    from lrsa.console import console
    from lrsa.problems.official import import_official

    name, counts = import_official(source, out, stride)
    console.print(f"{out}: {name} (official), {counts['train']} training and {counts['test']} test cases")


def _import_meshes(
    source: str,
    out: Path,
    inputs: list[str],
    targets: list[str],
    globals: Path | None,
    derive: list[str],
    workers: int | None,
) -> None:
    from lrsa.console import bar, console
    from lrsa.mesh.importing import import_meshes

    with bar("Importing") as report:
        made = import_meshes(
            source,
            out,
            inputs,
            targets,
            globals,
            derive,  # pyright: ignore[reportArgumentType] - import_meshes checks the names
            workers,
            lambda done, total: report(done, total, "cases"),
        )
    for note in made.notes:
        console.print(note)
    splits = " and ".join(f"{count} {split}" for split, count in made.counts.items())
    console.print(f"{out}: {splits} cases. Look with `lrsa data show {out}`, go on with `lrsa train {out}`")


def data_show(data: str, /, picture: Path | None = None) -> None:
    """Print the shapes, ranges and provenance of a data set, and draw a few cases.

    Args:
        data: A benchmark whose data is made, or a file.
        picture: Where to draw (default: beside the file).
    """
    from lrsa.console import console
    from lrsa.data.store import open_dataset
    from lrsa.report.datacard import card, draw

    train = open_dataset(data)
    console.print(card(train))
    console.print(f"picture: {draw(train, picture)}")
