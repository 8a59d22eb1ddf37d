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
            cost = benchmark.cost(scale.fidelity, scale.samples + scale.test)
            table.add_row("", f"--scale {name}: {scale.about}{cost}", "")
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
    cluster: str | None = None,
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
        cluster: Address of a Dask scheduler, whose workers make them instead of processes here.
    """
    from lrsa.console import bar, console
    from lrsa.problems.catalogue import get
    from lrsa.problems.making import make_dataset, wanted

    problem = get(name)
    at_least(1, workers=workers)
    at_least(0, seed=seed)
    total = sum(wanted(problem, samples, test).values())
    if cost := problem.cost(fidelity, total):
        console.print(f"{total} cases{cost}, less those that are there")
    with bar(f"Making {name}") as report:
        path = make_dataset(
            problem,
            samples,
            test,
            fidelity,
            seed,
            workers,
            out,
            report,
            cluster,
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
    split: str = "",
    patches: str = "",
    input_points: str = "",
    workers: int | None = None,
    problem: str | None = None,
    stride: int | None = None,
    cluster: str | None = None,
) -> None:
    """Bring your own meshes, or the official files of a benchmark, into our format.

    With nothing but the source it lists what is there and proposes a command. Official files are registered:
    `lrsa train NAME --source official` finds them.

    Args:
        source: A folder, a file or a quoted glob of meshes (VTU, VTP, VTK, OpenFOAM, CGNS, XDMF, EnSight,
            STL, PLY, OBJ), NPZ, HDF5, CSV or Parquet; or the folder of a benchmark's official files.
        out: The HDF5 file to write (official files: the place where training finds them).
        inputs: Arrays that the model is given, separated by commas.
        targets: Arrays that it is to predict, separated by commas.
        globals: Table of per-case parameters, the case in its first column.
        derive: Of normals, sdf, measure and surface, those to compute from the mesh, separated by commas.
        split: Which cases are for the test: train=train/*,test=test/* by path, column=NAME or group=NAME by a
            column of the table, group=folder by folder (default: a random fifth).
        patches: Blocks of the meshes to read, separated by commas: patches of OpenFOAM, zones of CGNS. They
            become named parts; with internalMesh among them they are its surface (default: all blocks; of
            OpenFOAM the internal mesh).
        input_points: The inputs are known at other points than the targets: a second file of each case, {}
            for its name, such as "{}_sensors.csv" or "../boundary/{}.vtp".
        workers: Processes (default: one for each core).
        problem: The benchmark whose official files these are (default: the one that has such files).
        stride: Every so-many-th point of official files (default: as published).
        cluster: Address of a Dask scheduler, whose workers read the meshes instead of processes here: from a
            disk that they see under the same path.
    """
    from lrsa.problems.official import recognise

    at_least(1, stride=stride, workers=workers)
    if not source.strip():
        raise LrsaError('an empty name is no file and no folder. For the current folder name "."')
    official = problem or (recognise(Path(source)) if Path(source).exists() else None)
    if official:
        _import_official(Path(source), official, out, stride)
    elif not (inputs or targets):
        _propose(source, workers)
    elif out is None:
        raise LrsaError("name the file to write with --out, e.g. --out my.h5")
    else:
        _import_meshes(
            source,
            out,
            words(inputs),
            words(targets),
            globals,
            words(derive),
            workers,
            split,
            words(patches),
            input_points,
            cluster,
        )


def _propose(source: str, workers: int | None) -> None:
    from lrsa.console import bar, console
    from lrsa.mesh.importing import propose

    with bar("Reading") as report:
        found = propose(source, workers, report)
    console.print(found)


def _import_official(source: Path, name: str, out: Path | None, stride: int | None) -> None:
    from lrsa.console import console
    from lrsa.problems.catalogue import get
    from lrsa.problems.official import import_official

    path, counts = import_official(source, get(name), out, stride)
    cases = f"{counts['train']} training and {counts['test']} test"
    train = f"{path}" if out else f"{name} --source official --scale paper"
    console.print(f"{path}: {name} (official), {cases} cases. Go on with `lrsa train {train}`")


def _import_meshes(
    source: str,
    out: Path,
    inputs: list[str],
    targets: list[str],
    globals: Path | None,
    derive: list[str],
    workers: int | None,
    split: str,
    patches: list[str],
    input_points: str,
    cluster: str | None,
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
            report,
            split,
            patches,
            input_points,
            cluster,
        )
    for note in made.notes:
        console.print(note)
    splits = " and ".join(f"{count} {split}" for split, count in made.counts.items())
    console.print(f"{out}: {splits} cases. Look with `lrsa data show {out}`, go on with `lrsa train {out}`")


def data_show(data: str, /, picture: Path | None = None, up: str = "auto") -> None:
    """Print the shapes, ranges and provenance of a data set, and draw a few cases.

    Args:
        data: A benchmark whose data is made, or a file.
        picture: Where to draw (default: beside the file).
        up: The axis that points upwards in pictures of bodies in space: x, y, z, or auto to find it.
    """
    from lrsa.console import console
    from lrsa.problems.catalogue import open_dataset
    from lrsa.report.axes import choose_up
    from lrsa.report.datacard import card, draw

    choose_up(up)
    train = open_dataset(data)
    console.print(card(train))
    console.print(f"picture: {draw(train, picture)}")
