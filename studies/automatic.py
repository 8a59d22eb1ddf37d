"""The automatic choice on nine data sets that have little in common, within so many minutes each.

    python studies/automatic.py --out results/automatic.md [--minutes 2] [NAME ...]

Each set is made here from a formula or one of the project's solvers, then trained by what `lrsa train FILE
--minutes M` does, on one thread. The page has the error beside every null baseline, the time asked for and
taken, and what the tool said; sets on grids are trained by other models too. Data and runs are kept under
$LRSA_HOME/automatic: a second call goes on.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import elliprd

import lrsa
from lrsa.data.store import Schema
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.verdict import verdict
from lrsa.files import atomic, data_home
from lrsa.pointset import Names, PointSet
from lrsa.problems.catalogue import get
from lrsa.report.printing import number
from lrsa.training.config import RunConfig
from lrsa.training.configure import named
from lrsa.training.fit import prepare, train_run

Case = Callable[[np.random.Generator], PointSet]
SHOWN = ("width", "depth", "rank")


def grid(rng: np.random.Generator) -> PointSet:
    """Darcy flow through a random medium, 22 x 22 points, by the project's solver."""
    problem = get("darcy")
    return problem.solver_at("fast").sample(rng)


def obstacles(rng: np.random.Generator) -> PointSet:
    """Stokes flow past one to four ellipses in a channel, 32 x 32 points, by the project's solver."""
    return get("obstacle-flow").solver_at("fast").sample(rng)


def long_channel(rng: np.random.Generator) -> PointSet:
    """A channel 11 times as long as wide, cooled at its walls: T = Σ aₖ sin kπy exp(-k²π²x/Pe), five aₖ."""
    x = rng.random((int(rng.integers(700, 1000)), 2)) * [11, 1]
    a, peclet = rng.standard_normal(5) / np.arange(1, 6), rng.uniform(20, 80)
    k = np.arange(1, 6)
    waves = a * np.sin(np.pi * x[:, 1:] * k)
    decay = np.exp(-((np.pi * k) ** 2) * x[:, :1] / peclet)
    inlet, t = waves.sum(1, keepdims=True), (waves * decay).sum(1, keepdims=True)
    names = Names(("x", "y"), ("inlet",), ("T",), ("Pe",))
    return PointSet(x, inlet, t, globals=np.array([peclet]), names=names)


def thin_surface(rng: np.random.Generator) -> PointSet:
    """Pressure on thin ellipsoids (6 : 1 : 0.05 or so) in a uniform stream, exact: v = n × (V × n)."""
    axes = np.array([rng.uniform(4, 6), rng.uniform(0.8, 1.2), rng.uniform(0.03, 0.08)])
    n = rng.standard_normal((int(rng.integers(900, 1300)), 3))
    x = axes * n / np.linalg.norm(n, axis=1, keepdims=True)
    normal = x / axes**2
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    attack, slip = rng.uniform(-0.1, 0.1), rng.uniform(-0.4, 0.4)
    stream = np.array([np.cos(attack) * np.cos(slip), np.sin(slip), np.sin(attack) * np.cos(slip)])
    squares = axes**2
    rolled = [elliprd(*np.roll(squares, -i)[[1, 2, 0]]) for i in range(3)]
    largest = stream * 2 / (2 - 2 / 3 * axes.prod() * np.array(rolled))
    tangential = largest - (normal @ largest)[:, None] * normal
    cp = 1 - (tangential**2).sum(1, keepdims=True)
    names = Names(("x", "y", "z"), ("nx", "ny", "nz"), ("cp",), ("attack", "slip"))
    return PointSet(x, normal, cp, globals=np.array([attack, slip]), names=names)


def ragged_airfoils(rng: np.random.Generator) -> PointSet:
    """Joukowski profiles with lift, 500 to 900 points around each: velocity and pressure of exact flow."""
    centre = complex(-rng.uniform(0.05, 0.15), rng.uniform(0.0, 0.15))
    radius, attack = abs(1 - centre), rng.uniform(-0.1, 0.2)
    count = int(rng.integers(500, 900))
    r = radius * (1 + 1.5 * rng.random(count) ** 2)
    r[: count // 4] = radius
    zeta = centre + r * np.exp(1j * rng.uniform(0.1, 2 * np.pi - 0.1, count))
    circulation = 4 * np.pi * radius * np.sin(attack + np.arcsin(centre.imag / radius))
    turned = (zeta - centre) * np.exp(-1j * attack)
    w = np.exp(-1j * attack) * (1 - radius**2 / turned**2 + 1j * circulation / (2 * np.pi * turned))
    w /= 1 - 1 / zeta**2
    z = zeta + 1 / zeta
    x, u = np.stack([z.real, z.imag], 1), np.stack([w.real, -w.imag, 1 - abs(w) ** 2], 1)
    surface = (r == radius)[:, None].astype(float)
    names = Names(("x", "y"), ("wall",), ("u", "v", "cp"), ("attack",))
    return PointSet(x, surface, u, globals=np.array([attack]), names=names)


def two_parameters(rng: np.random.Generator) -> PointSet:
    """A developing channel flow and its temperature on one mesh: nothing differs but two numbers."""
    along, across = np.meshgrid(np.linspace(0, 4, 40), np.linspace(0, 1, 15), indexing="ij")
    x, y = along.ravel(), across.ravel()
    a, b = rng.uniform(1, 3), rng.uniform(0.5, 2)
    u = np.stack([4 * a * y * (1 - y) * (1 - np.exp(-x / b)), np.exp(-x * b / a) * np.sin(np.pi * y)], 1)
    names = Names(("x", "y"), (), ("u", "T"), ("a", "b"))
    return PointSet(np.stack([x, y], 1), u=u, globals=np.array([a, b]), names=names)


def twenty_cases(rng: np.random.Generator) -> PointSet:
    """-Δu = f on a square with u = 0 at its rim, f of 16 waves, 24 x 24 points."""
    side = (np.arange(24) + 0.5) / 24
    k = np.arange(1, 5)
    waves = np.sin(np.pi * np.outer(side, k))
    a = rng.standard_normal((4, 4)) / np.add.outer(k, k)
    f, u = (waves @ c @ waves.T for c in (a, a / (np.pi**2 * np.add.outer(k**2, k**2))))
    x = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    names = Names(("x", "y"), ("f",), ("u",))
    return PointSet(x, f.reshape(-1, 1), u.reshape(-1, 1), grid=(24, 24), names=names)


def many_points(rng: np.random.Generator) -> PointSet:
    """Four hot spots at 100 000 points, and what diffusion has made of them."""
    x = rng.random((100_000, 2))
    centres, heights = rng.uniform(0.1, 0.9, (4, 2)), rng.uniform(-1, 1, 4)
    away = ((x[:, None] - centres) ** 2).sum(-1)
    early, late = 0.003, 0.02
    f = np.exp(-away / early) @ heights
    u = np.exp(-away / late) @ heights * early / late
    return PointSet(x, f[:, None], u[:, None], names=Names(("x", "y"), ("early",), ("late",)))


def time_series(rng: np.random.Generator) -> PointSet:
    """Heat that spreads in a square from six waves, eight times, at a conductivity of each case's own."""
    x, times = rng.random((400, 2)), np.linspace(0, 1, 8)
    waves = [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (2, 1)]
    shapes = np.stack([np.cos(np.pi * i * x[:, 0]) * np.cos(np.pi * j * x[:, 1]) for i, j in waves], 1)
    a, nu = rng.standard_normal(6), rng.uniform(0.02, 0.2)
    decay = np.exp(-nu * np.pi**2 * times[:, None] * [i * i + j * j for i, j in waves])
    u = (shapes * a) @ decay.T
    names = Names(("x", "y"), ("start",), ("T",), ("nu",))
    return PointSet(x, u[:, :1], u.T[:, :, None], times=times, globals=np.array([nu]), names=names)


SETS: dict[str, tuple[Case, int, int]] = {
    "grid": (grid, 200, 50),
    "obstacles": (obstacles, 200, 50),
    "long-channel": (long_channel, 160, 40),
    "thin-surface": (thin_surface, 100, 25),
    "ragged-airfoils": (ragged_airfoils, 150, 40),
    "two-parameters": (two_parameters, 120, 40),
    "twenty-cases": (twenty_cases, 20, 20),
    "many-points": (many_points, 24, 6),
    "time-series": (time_series, 100, 25),
}
"""How a case is made, how many to learn from, how many to test."""
ON_GRIDS = ("grid", "obstacles", "twenty-cases")
OTHERS = ("lrsa", "fno")
"""What these are trained by as well, for the same time."""


def made(name: str, folder: Path) -> Path:
    """The data set."""
    path = folder / f"{name}.h5"
    if not path.exists():
        case, train, test = SETS[name]
        cases = [case(np.random.default_rng([0, i])) for i in range(train + test)]
        protocol = "static" if cases[0].times is None else "time-conditioned"
        schema = Schema(name, "generated", protocol, cases[0].names, {"seed": 0})
        lrsa.write_dataset(path, {"train": cases[:train], "test": cases[train:]}, schema)
    return path


def measured(name: str, folder: Path, minutes: float, model: str | None = None) -> dict[str, Any]:
    """What came of it, from the file where it was measured before."""
    run = folder / "-".join([name, f"{minutes:g}", *([model] if model else [])])
    kept = run.with_name(f"{run.name}.json")
    if kept.exists():
        return json.loads(kept.read_text())
    data = made(name, folder)
    started, worked = time.perf_counter(), time.process_time()
    if not (run / "config.json").exists():
        chosen = named(str(data), model, {}, None)
        prepare(str(data), chosen, out=run, threads=1, options={}, train={"minutes": minutes})
    standing = train_run(run)
    taken, worked = time.perf_counter() - started, time.process_time() - worked
    config, found = RunConfig.load(run), evaluate(run)
    said = verdict(config, found)
    train = config.train
    cure = "" if said is None else said.cure.replace(f"{folder}/", "")
    row = {
        "points": found.points,
        "error": found.relative_l2,
        "nulls": found.nulls,
        "minutes": taken / 60,
        "share": worked / taken,
        "said": "" if said is None else f"{said.text} {cure}".strip(),
        "chosen": ", ".join(f"{k} {config.options[k]}" for k in SHOWN if k in config.options)
        + f", batch {train.batch_size}, {standing.epoch} epochs"
        + (f", {train.points} points a step" if train.points else "")
        + (f", {config.model}" if config.model != "lrsa" else "")
        + (", coordinates by axis" if train.coordinates == "axis" else ""),
    }
    with atomic(kept) as temporary:
        temporary.write_text(json.dumps(row, indent=1))
    return row


def page(rows: dict[str, dict[str, Any]], minutes: float, out: Path) -> str:
    """The table."""
    nulls = list(dict.fromkeys(name for row in rows.values() for name in row["nulls"]))
    lines = [
        "# The automatic choice on nine data sets",
        "",
        "The sets are made by formulas and two solvers (see the script), seed 0, and trained by what",
        f"`lrsa train FILE --minutes {minutes:g}` chooses. Relative L2 on the test cases; a dash where a",
        "rule does not apply.",
        "",
        f"`python studies/automatic.py --minutes {minutes:g} --out {out}`, lrsa {lrsa.__version__}, one",
        "thread. The share is that of a core which the thread had while it prepared and trained: below 100 %",
        "other work had the rest. The pace of the first steps settles their number: where other work came on",
        "meanwhile, it took longer than was asked for.",
        "",
        f"| data | points | lrsa, automatic | {' | '.join(nulls)} | minutes asked | taken | share |",
        "|" + "---|" * (len(nulls) + 6),
    ]
    for name, row in rows.items():
        cells = [number(row["nulls"][null]) if null in row["nulls"] else "-" for null in nulls]
        share = f"{row['share']:.0%}" if "share" in row else "-"
        lines.append(
            f"| {name} | {row['points']} | **{number(row['error'])}** | {' | '.join(cells)} | {minutes:g} |"
            f" {row['minutes']:.1f} | {share} |"
        )
    if others := {name: row["others"] for name, row in rows.items() if "others" in row}:
        lines += ["", "On grids, models that were named, for the same time:", ""]
        lines += [f"| data | automatic | {' | '.join(OTHERS)} |", "|" + "---|" * (len(OTHERS) + 2)]
        for name, found in others.items():
            errors = " | ".join(number(found[model]) for model in OTHERS)
            lines.append(f"| {name} | {number(rows[name]['error'])} | {errors} |")
    lines += ["", "| data | what was chosen | what it said |", "|---|---|---|"]
    lines += [f"| {name} | {row['chosen']} | {row['said']} |" for name, row in rows.items()]
    lines += ["", "What the sets are:", ""]
    for name in rows:
        case, train, test = SETS[name]
        lines.append(
            f"- **{name}**: {(case.__doc__ or '').strip()} {train} cases to learn from, {test} to test."
        )
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(SETS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder = data_home().parent / "automatic"
    rows: dict[str, dict[str, Any]] = {}
    for name in options.names or SETS:
        rows[name] = measured(name, folder, options.minutes)
        if name in ON_GRIDS:
            found = {model: measured(name, folder, options.minutes, model)["error"] for model in OTHERS}
            rows[name] = {**rows[name], "others": found}
        with atomic(options.out) as temporary:
            temporary.write_text(page(rows, options.minutes, options.out))
    print(page(rows, options.minutes, options.out))


if __name__ == "__main__":
    main()
