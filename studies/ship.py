"""Makes a surrogate that comes with the package out of a finished run.

    python studies/ship.py RUN NAME

copies what prediction needs (`config.json` without the places of this machine, `model.safetensors`,
`ranges.json`) to src/lrsa/surrogates/NAME, and writes its card: data, error beside the null baselines,
command of the training. The run is evaluated for it, so its data must be there.
"""

import argparse
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import lrsa
from lrsa.errors import LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.evaluation.outcome import Evaluation
from lrsa.report.printing import number
from lrsa.surrogate.shipped import CARD, HOME
from lrsa.training.config import RunConfig

FILES = ("model.safetensors", "ranges.json")


def ship(run: Path, name: str, home: Path = HOME, replace: bool = False) -> Path:
    """The folder that was made; whole or not at all."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise LrsaError(f'"{name}" is no name of a surrogate: small letters, digits and dashes')
    folder = home / name
    if folder.exists() and not replace:
        raise LrsaError(f"{folder} is there already. --replace takes its place")
    config, evaluation = RunConfig.load(run), evaluate(run)
    lrsa.load(run)  # refused where it is not finished
    values = without_places(json.loads((run / "config.json").read_text()))
    values["command"] = _command(values["command"])
    made = home / f".{name}.new"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for file in FILES:
        shutil.copyfile(run / file, made / file)
    (made / "config.json").write_text(json.dumps(values, indent=1))
    size = sum(file.stat().st_size for file in made.iterdir())
    (made / CARD).write_text(card(name, config, evaluation, str(values["command"]), size))
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)
    return folder


def without_places(value: Any) -> Any:
    """The same with every path from the root on cut to its last part."""
    if isinstance(value, dict):
        return {key: without_places(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_places(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _command(typed: str) -> str:
    """What was typed, without the folders that were named."""
    return shlex.join(without_places(shlex.split(typed)))


def card(name: str, config: RunConfig, evaluation: Evaluation, command: str, size: int) -> str:
    """What is to be known of it."""
    schema, names = config.schema, config.schema.names
    fields = ", ".join(evaluation.fields)
    inputs = ", ".join((*names.coords, *names.inputs, *names.globals))
    made = {k: v for k, v in schema.provenance.items() if k in ("version", "fidelity", "seed")}
    origin = ", ".join(f"{k} {v}" for k, v in made.items()) or "no solver of ours"
    rows = [("this surrogate", evaluation.relative_l2), *evaluation.nulls.items()]
    options = ", ".join(f"{k} {v}" for k, v in config.options.items())
    versions = ", ".join(f"{k} {v}" for k, v in config.versions.items())
    lines = [
        f"# {name}",
        "",
        f'`lrsa predict {name} INPUT --out OUTPUT`, `lrsa.load("{name}")`, `lrsa train my.h5 --init {name}`',
        "",
        f"- From {inputs} to {fields}: {schema.protocol} protocol, physical units.",
        f"- Data: {schema.name} ({schema.source}; {origin}), {config.data.samples or 'all'} training cases,"
        f" stride {config.data.stride}.",
        f"- Model: {config.model} ({options}); {size / 1e6:.1f} MB.",
        f"- Training: `{command}`, {config.train.epochs} epochs, recipe {config.recipe}, seed"
        f" {config.train.seed}; {versions}.",
        "- It holds for cases like those of its training; `lrsa predict` names a case outside their range.",
        "",
        f"Relative L2 on {evaluation.cases} test cases of {evaluation.points} points that it has not seen:",
        "",
        "| | relative L2 |",
        "|---|---|",
        *(f"| {row} | {number(value)} |" for row, value in rows),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--replace", action="store_true")
    options = parser.parse_args()
    folder = ship(options.run, options.name, replace=options.replace)
    print((folder / CARD).read_text())


if __name__ == "__main__":
    main()
