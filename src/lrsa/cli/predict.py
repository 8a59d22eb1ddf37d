"""`lrsa predict` and `export`: a trained surrogate at work, here and elsewhere."""

from pathlib import Path
from typing import Literal

from lrsa.cli.checking import at_least, words
from lrsa.errors import LrsaError


def predict(
    run: Path,
    input: str,
    /,
    out: Path,
    inputs: str = "",
    globals: Path | None = None,
    at: Path | None = None,
    time: str = "",
    nproc: int = 1,
) -> None:
    """Predict new cases: what is in the input comes out, with the predicted fields beside it.

    Args:
        run: The run folder, or the name of a surrogate that comes with lrsa.
        input: A mesh, table, array file or data set; or a folder or quoted glob of them.
        out: A file for one case, a folder for many.
        inputs: The arrays that are the inputs, in the order of training, separated by commas (default: the
            same names).
        globals: Table of per-case parameters, the case in its first column.
        at: CSV of query points (x,y[,z], and inputs by name where known); the output is a CSV.
        time: Times to predict, separated by commas, of a time-conditioned run (default: those of the file).
        nproc: Processes of this machine that share the points of one mesh: a .pvtu, of which each reads and
            writes its pieces, or a .vtu. The output is a .pvtu. For several machines use
            `torchrun ... -m lrsa predict`.
    """
    from lrsa.console import bar, console
    from lrsa.parallel.ranks import joined, processes, started
    from lrsa.surrogate.doubts import quantity_lines, write_rows
    from lrsa.surrogate.predict_files import predict_path
    from lrsa.surrogate.predict_shared import predict_shared

    at_least(1, nproc=nproc)
    try:
        times = [float(word) for word in words(time)]
    except ValueError:
        raise LrsaError(f"--time takes numbers separated by commas, not {time}") from None
    if nproc > 1 and not started():
        _in_processes(run, input, out, inputs, globals, at, time, nproc)
        return
    with joined(processes()) as ranks, bar("Predicting") as report:
        console.quiet = not ranks.first
        if ranks.everyone is None:
            summary = predict_path(run, input, out, words(inputs), globals, at, times, report)
        else:
            _check_alone(at)
            summary = predict_shared(run, Path(input), out, ranks, words(inputs), globals, times, report)
    for line in (*summary.notes, *summary.warnings):
        console.print(line)
    for line in quantity_lines(summary.quantities):
        console.print(line)
    if summary.quantities and out.is_dir():
        write_rows(out / "quantities.csv", summary.quantities)
        console.print(f"quantities: {out / 'quantities.csv'}")
    where = summary.written[0] if len(summary.written) == 1 else out
    console.print(f"{where}: {summary.cases} {'case' if summary.cases == 1 else 'cases'} predicted")


def _in_processes(
    run: Path,
    input: str,
    out: Path,
    inputs: str,
    globals: Path | None,
    at: Path | None,
    time: str,
    nproc: int,
) -> None:
    """Let so many processes of this machine predict; what cannot be shared is refused before."""
    from lrsa.parallel.launch import launch
    from lrsa.surrogate.predict_shared import check_shares

    _check_alone(at)
    check_shares(run, Path(input), out, nproc)
    given = {"--inputs": inputs, "--globals": globals, "--time": time}
    more = [word for name, value in given.items() if value for word in (name, str(value))]
    launch(nproc, ["predict", str(run), input, "--out", str(out), *more], restarts=0)


def _check_alone(at: Path | None) -> None:
    if at is not None:
        raise LrsaError("--at is answered by one process. Leave out --nproc")


def export(run: Path, /, format: Literal["torch", "onnx"], out: Path | None = None) -> None:
    """Write a trained surrogate as a program that runs without lrsa, and check it against the surrogate.

    Physical units in and out, the normalisation is inside. The numbers of cases and points are free; models
    that need a grid keep that of their training.

    Args:
        run: The run folder.
        format: torch (torch.export, .pt2) or onnx.
        out: The file (default: model.pt2 or model.onnx in the run folder).
    """
    from lrsa.console import console
    from lrsa.exporting.export import export_run

    made = export_run(run, format, out)
    for name, shape in made.signature.shapes.items():
        console.print(f"input {name} ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})")
    if made.signature.grid is not None:
        grid = " × ".join(map(str, made.signature.grid))
        console.print(f"The model needs its grid: the points are those of {grid}, in this order")
    sizes = ", ".join(f"{batch} × {points}" for batch, points in made.checked)
    console.print(f"Checked on {sizes} points: the largest relative difference is {made.difference:.1e}")
    if made.members > 1:
        console.print(f"The program is the first of {made.members} members, without their mean and spread")
    console.print(f"program: {made.path}")
