"""The solver of Pipe Turbulence: CPU time of a case, and what finer meshes and steps change.

    python studies/pipe_turbulence_study.py [--cases 3] [--out results/pipe-turbulence.md]

Minutes a case: what was solved is kept in $LRSA_HOME/pipe-turbulence-study and not solved again. CPU seconds
are those of pimpleFoam. The benchmark is the map from a frame to a later one. Its error is therefore taken
from one first frame: that of the coarser mesh, whose cells hand their values to the four that they are cut
into, advanced on the finer mesh with half the step. Differences are relative L2, at the benchmark's nodes.
"""

import argparse
import re
import resource
from pathlib import Path

import numpy as np

from lrsa.console import bar
from lrsa.files import atomic, data_home, scratch
from lrsa.numerics.openfoam import read_field, run
from lrsa.problems.pipe_turbulence.solver import Inflow, PipeTurbulence, pipe
from lrsa.training.config import versions

SIZES = {"fast": (0, 0.04), "default": (1, 0.02)}
"""Refinement and step."""
STATE = ("U", "p", "k", "omega", "nut")
Run = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # pyright: ignore
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/pipe-turbulence.md"))
    options = parser.parse_args()
    flows = {}
    with bar("Solving") as report:
        for done, (name, seed) in enumerate((name, seed) for name in SIZES for seed in range(options.cases)):
            report(done, len(SIZES) * options.cases, "flows")
            flows[seed, name] = kept(f"{seed}-{name}", seed, *SIZES[name])
    rows = []
    with bar("Solving finer") as report:
        for done, (seed, name) in enumerate(sorted(flows, key=lambda flow: SIZES[flow[1]])):
            report(done, len(flows), "flows")
            size = (SIZES[name][0] + 1, SIZES[name][1] / 2)
            finer = kept(f"{seed}-{name}-finer", seed, *size, flows[seed, name])
            rows.append(row(seed, name, flows[seed, name], finer))
            write(options.out, options.cases, rows, flows)  # the finest take long: what is there is told
    print(options.out.read_text())


def write(out: Path, cases: int, rows: list[str], flows: dict[tuple[int, str], Run]) -> None:
    rest = ["; ".join(apart(flows, seed, frame) for seed in range(cases)) for frame in ("f", "u")]
    words = ", ".join(f"{name} {value}" for name, value in versions().items())
    with atomic(out) as temporary:
        head, foot = HEAD.format(cases=cases), FOOT.format(first=rest[0], second=rest[1])
        temporary.write_text(f"{head}{''.join(rows)}{foot}\nVersions: {words}.\n")


def kept(name: str, seed: int, refinement: int, step: float, first: Run | None = None) -> Run:
    """A flow that was solved before, or is now."""
    path = data_home().parent / "pipe-turbulence-study" / f"{name}.npz"
    if not path.exists():
        made = solved(seed, refinement, step, first)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, **made)  # pyright: ignore[reportArgumentType]
    with np.load(path) as file:
        return dict(file)


def solved(seed: int, refinement: int, step: float, first: Run | None) -> Run:
    """Both frames of a case, its state in the cells at the first one, CPU seconds and the worst residual.

    From rest, or from the state of a flow on the mesh that is coarser by one refinement.
    """
    solver = PipeTurbulence(refinement=refinement, step=step)
    inflow = Inflow.draw(np.random.default_rng(seed), solver.start)
    if first is not None:
        speed = float(inflow.at(np.array([solver.start]))[0])
        solver = PipeTurbulence(refinement=refinement, step=step, start=0.0)
        inflow = Inflow(speed, (0.0,) * len(inflow.amplitudes), inflow.phases, 0.0)
    with scratch("pipe-turbulence-study") as folder:
        solver.write(folder, inflow)
        for name in STATE if first is not None else ():
            write_values(folder / "0" / name, np.tile(first[name].T, 4).T)  # pyright: ignore
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        log = run(folder, "pimpleFoam")
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        frames = solver.read(folder, log)
        state = {name: read_field(folder / f"{solver.start:g}" / name) for name in STATE}
    case = solver.case_of(inflow, frames).arrays()
    return {
        "f": case["f"],
        "u": case["u"],
        "seconds": np.array(seconds),
        "residual": case["residual"],
    } | state


def write_values(path: Path, values: np.ndarray) -> None:
    """Replace the uniform values in the cells of a field."""
    kind = "vector" if values.ndim == 2 else "scalar"
    lines = [f"({' '.join(map(str, v))})" if kind == "vector" else str(v) for v in values.tolist()]
    text = f"internalField nonuniform List<{kind}> {len(values)}\n(\n" + "\n".join(lines) + "\n);"
    path.write_text(re.sub(r"internalField uniform [^;]*;", lambda _: text, path.read_text(), count=1))


def row(seed: int, name: str, first: Run, finer: Run) -> str:
    cells, size = len(pipe(SIZES[name][0]).triangles), SIZES[name][1]
    numbers = [relative(first["u"], first["f"]), relative(first["u"], finer["u"])]
    said = [str(seed), name, f"{cells}", f"{size:g}", f"{first['seconds']:.0f}", f"{first['residual']:.1e}"]
    return f"| {' | '.join([*said, *(f'{100 * number:.1f} %' for number in numbers)])} |\n"


def apart(flows: dict[tuple[int, str], Run], seed: int, frame: str) -> str:
    return f"{100 * relative(flows[seed, 'fast'][frame], flows[seed, 'default'][frame]):.0f} %"


def relative(value: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(value - truth) / np.linalg.norm(truth))


HEAD = """\
# The solver of Pipe Turbulence

Made by `python studies/pipe_turbulence_study.py --cases {cases}`: CPU seconds of pimpleFoam on one thread,
the worst residual of any equation in any step, how much the flow changes from the first frame to the second,
and the relative L2 difference of the second frame, at the nodes of the benchmark, to that of a mesh with four
times as many cells and half the step, from the same first frame.

| case | fidelity | cells | step, s | CPU s | worst residual | first to second frame | finer, from there |
|---|---|---|---|---|---|---|---|
"""
FOOT = """
From rest, over 12 s, the shear layers behind the bends run out of step: the first frames of the two
fidelities differ by {first}, the second ones by {second}. They are two flows of one kind, not an
approximation of one by the other.
"""

if __name__ == "__main__":
    main()
