"""Lift of airfoils and drag of cars: the error of the number itself, and whether its intervals hold.

    python studies/coefficients.py --out results/coefficients.md [airfoils] [airfrans] [cars]

Each set is made and trained by commands that a user would type; the page names them. Beside the error of
each quantity stand its rank correlation, the best null baseline, and for how many test cases the interval
holds, with the range in which 95 % of such counts lie where the promise is exact (binomial). Data and runs
are kept under $LRSA_HOME/coefficients: a second call goes on. Cars and AirfRANS need OpenFOAM.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lrsa
from lrsa.files import atomic, data_home
from lrsa.problems.catalogue import get
from lrsa.report.printing import number

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Set:
    """One of them: what it is, and how it is made, trained and evaluated."""

    about: str
    make: tuple[str, ...]
    train: str
    """Without --out."""
    data: str = ""
    """Of more test cases than the training knows of: where `lrsa evaluate --data` finds them."""


SETS = {
    "airfoils": Set(
        "Random NACA profiles at random angles in an ideal flow, curves of 72 to 110 points: those of the"
        " tutorial. The lift is the integral of the predicted pressure.",
        (
            "python docs/tutorial/airfoils.py airfoils --cases 400 --seed 0",
            "lrsa data import airfoils --targets cp --globals airfoils/cases.csv --derive measure"
            " --out airfoils.h5",
        ),
        "lrsa train airfoils.h5 --train.epochs 40 --ensemble 2"
        " --quantity lift=force:cp,across=u_inlet:v_inlet --quantity suction=min:cp --threads 1",
    ),
    "airfrans": Set(
        "Airfoils in turbulent flow by OpenFOAM (generated, fidelity fast); lift and drag by the benchmark's"
        " own metric, from velocities and pressure at the wall.",
        ("lrsa data make airfrans --samples 60 --test 20 --fidelity fast --workers 1",),
        "lrsa train airfrans --scale demo --ensemble 3 --threads 1",
    ),
    "cars": Set(
        "Parametric cars by OpenFOAM (generated, fidelity fast); drag by the benchmark's own metric, from the"
        " pressure on the surface.",
        ("lrsa data make shapenet-car --samples 24 --test 16 --fidelity fast --workers 1",),
        "lrsa train shapenet-car --scale demo --ensemble 3 --threads 1",
        str(get("shapenet-car").path("fast")),
    ),
}


def typed(command: str, folder: Path) -> None:
    """Run a command as it stands on the page, in a folder."""
    program, *rest = shlex.split(command)
    start = [sys.executable] if program == "python" else [sys.executable, "-m", "lrsa"]
    rest = [str(ROOT / word) if word.startswith("docs/") else word for word in rest]
    print(f"$ {command}", flush=True)
    subprocess.run([*start, *rest], cwd=folder, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def commands(name: str) -> list[str]:
    """Those of a set, as they are typed."""
    one = SETS[name]
    found = [*one.make, f"{one.train} --out runs/{name}"]
    return [*found, f"lrsa evaluate runs/{name} --data {one.data}"] if one.data else found


def measured(name: str, folder: Path) -> dict[str, Any]:
    """The evaluation of the run, which is trained where it is not there yet."""
    one, run = SETS[name], folder / "runs" / name
    found = run / (f"evaluation-{Path(one.data).stem}.json" if one.data else "evaluation.json")
    made = commands(name)
    if not found.exists() and (run / "config.json").exists():
        typed(f"lrsa resume runs/{name}", folder)
        made = made[len(one.make) + 1 :]
    if not found.exists():
        for command in made:
            typed(command, folder)
    return json.loads(found.read_text())


def section(name: str, found: dict[str, Any]) -> list[str]:
    """Of one set on the page."""
    null = min(found["nulls"], key=found["nulls"].get)
    shown = [line.replace(str(data_home().parent), "$LRSA_HOME") for line in commands(name)]
    lines = ["", f"## {name}", "", SETS[name].about, "", "```sh", *shown, "```", ""]
    lines += [
        f"{found['cases']} test cases of {found['points']} points, {found['members']} members: relative L2"
        f" {number(found['relative_l2'])}, the best null baseline ({null}) {number(found['nulls'][null])}.",
        "",
        "| quantity | mean absolute error | relative | rank correlation | best null baseline | interval |",
        "|---|---|---|---|---|---|",
    ]
    for quantity, errors in found["quantities"].items():
        best = min(errors["nulls"], key=errors["nulls"].get)
        cells = [number(errors[key]) for key in ("mean_absolute", "relative", "spearman")]
        lines.append(
            f"| {quantity} | {' | '.join(cells)} | {number(errors['nulls'][best])} ({best}) |"
            f" ± {number(errors['width'])} |"
        )
    lines += [
        "",
        "| interval of | holds for | promised | 95 % of counts by chance | inside |",
        "|---|---|---|---|---|",
    ]
    for what, c in found["coverage"].items():
        low, high, inside = round(c["low"] * c["cases"]), round(c["high"] * c["cases"]), c["inside"]
        promised = f"{c['level']:.0%}, by {c['calibrated_on']} validation cases"
        verdict = "yes" if low <= inside <= high else "**no**"
        lines.append(f"| {what} | {inside} of {c['cases']} | {promised} | {low} to {high} | {verdict} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(SETS)} (default: all)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder = data_home().parent / "coefficients"
    folder.mkdir(parents=True, exist_ok=True)
    names = options.names or list(SETS)
    lines = [
        "# Lift and drag by surrogates, with intervals",
        "",
        *[line for line in (__doc__ or "").splitlines()[4:] if line],
        "",
        f"`python studies/coefficients.py {' '.join([*options.names, ''])}--out {options.out}`, lrsa"
        f" {lrsa.__version__}, seed 0, one thread.",
    ]
    if missing := [name for name in SETS if name not in names]:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    for name in names:
        lines += section(name, measured(name, folder))
        with atomic(options.out) as temporary:
            temporary.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
