"""What the surrogates that come with the package are worth on 50 cases of something else.

    python studies/fine_tuning.py --out results/fine-tuning.md [--epochs 40] [NAME ...]

Each is trained on 50 cases of its own problem with one number of the physics changed (the contrast of the
medium, the load, the Mach number, the yield limit), once from nothing and once from the shipped weights: the
same model, steps and recipe. Beside both, the shipped surrogate as it is, and the null baselines. What was
measured is kept under $LRSA_HOME/fine-tuning: a second call goes on.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

import lrsa
from lrsa.console import console
from lrsa.data.store import Schema
from lrsa.evaluation.evaluate import evaluate, truth
from lrsa.files import atomic, data_home
from lrsa.objectives.metrics import relative_l2
from lrsa.problems.catalogue import get
from lrsa.report.printing import number
from lrsa.surrogate.shipped import located, shipped
from lrsa.training.config import RunConfig
from lrsa.training.fit import train_run

CHANGED: dict[str, dict[str, Any]] = {
    "darcy": {"high": 8.0},
    "elasticity": {"traction": 60.0},
    "airfoil": {"mach": 0.7},
    "plasticity": {"limit": 100.0},
}
TRAIN, TEST, SEED = 50, 40, 7


def made(name: str, folder: Path) -> Path:
    """50 training and 40 test cases of the changed problem, sampled as the surrogate was trained."""
    path = folder / f"{name}.h5"
    if path.exists():
        return path
    config, problem = RunConfig.load(located(name)), get(name)
    scale = problem.scale(config.scale or "cpu")
    assert problem.solver is not None
    solver = problem.solver(**{**problem.fidelities[scale.fidelity], **CHANGED[name]})
    console.print(f"Making {TRAIN + TEST} cases of {name} with {CHANGED[name]}")
    cases = [
        solver.sample(np.random.default_rng([SEED, i])).strided(scale.stride["generated"])
        for i in range(TRAIN + TEST)
    ]
    schema = Schema(
        name, "generated", problem.protocol, solver.names, {"changed": CHANGED[name], "seed": SEED}
    )
    lrsa.write_dataset(path, {"train": cases[:TRAIN], "test": cases[TRAIN:]}, schema)
    return path


def measured(name: str, folder: Path, epochs: int) -> dict[str, Any]:
    """The errors, from the file where they were measured before."""
    kept = folder / f"{name}-{epochs}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    data, config = made(name, folder), RunConfig.load(located(name))
    surrogate = lrsa.load(name)
    tests = lrsa.open_dataset(data, "test")
    how = surrogate.protocol
    errors = [relative_l2(surrogate.predict(case), truth(how, case), case.u_mask) for case in tests]
    row: dict[str, Any] = {"as shipped": float(np.mean(errors))}
    settings = {k: getattr(config.train, k) for k in ("batch_size", "weights", "gradient_weight", "symmetry")}
    sizes = {k: v for k, v in config.options.items() if k not in ("coord_dim", "in_features", "out_features")}
    for label, init in (("from nothing", None), ("from the shipped weights", name)):
        run = folder / f"{name}-{epochs}-{'init' if init else 'new'}"
        if not (run / "last.safetensors").exists():
            train = {**settings, "coordinates": config.train.coordinates, "epochs": epochs, "validation": 0.0}
            if (run / "config.json").exists():
                train_run(run)
            else:
                lrsa.fit(data, config.model, out=run, init=init, options=sizes, threads=1, **train)
        found = evaluate(run)
        row[label], row["nulls"] = found.relative_l2, found.nulls
    with atomic(kept) as temporary:
        temporary.write_text(json.dumps(row, indent=1))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder = data_home().parent / "fine-tuning"
    folder.mkdir(parents=True, exist_ok=True)
    there = [name for name in options.names or CHANGED if name in shipped()]
    rows = {name: measured(name, folder, options.epochs) for name in there}
    lines = [
        "# Fine-tuning the shipped surrogates on 50 cases",
        "",
        *[line for line in (__doc__ or "").splitlines()[4:] if line],
        "",
        f"`python studies/fine_tuning.py --epochs {options.epochs} --out {options.out}"
        f"{''.join(f' {name}' for name in options.names)}`: relative L2 over"
        f" {TEST} test cases, generated, seed {SEED}, one thread, lrsa {lrsa.__version__}.",
        "",
        "| problem | changed | as shipped | from nothing | from the shipped weights | best null baseline |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        null = min(row["nulls"], key=row["nulls"].get)
        changed = ", ".join(f"{k} {v:g}" for k, v in CHANGED[name].items())
        cells = [number(row[k]) for k in ("as shipped", "from nothing", "from the shipped weights")]
        lines.append(f"| {name} | {changed} | {' | '.join(cells)} | {number(row['nulls'][null])} ({null}) |")
    if missing := [name for name in shipped() if name not in rows]:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    options.out.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
