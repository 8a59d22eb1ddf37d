"""Which weights of the baselines Muon should take, and how: spectral weights, convolutions, plain networks.

    nice python studies/optimiser_weights.py --out results/optimiser-weights.md [--only fno lsm]

Each row trains one model with one way of treating some of its weights, everything else equal: AdamW for all
weights; Muon with AdamW for those in question; Muon for these too, in one form or another. Where that is
better, AdamW gets the time that it took, by more epochs. The learning rates are those of the demo scale.
"""

import argparse
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

import lrsa
from lrsa.models.hidden import Declared, Matrices, per_mode, whole
from lrsa.models.registry import get
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare, trainer_of
from lrsa.training.loop import Trainer

CASES, VALIDATION, ROUNDS = 200, 0.25, 12
ADAMW, REST = "all weights by AdamW", "AdamW"


def modes_below(weight: Tensor) -> Tensor:
    """(modes ..., rows, columns, 2): one complex matrix, its modes one below the other."""
    return torch.view_as_complex(weight).flatten(0, -2)[None]


def modes_beside(weight: Tensor) -> Tensor:
    """(rows, columns, modes ..., 2): one complex matrix, its modes side by side."""
    return torch.view_as_complex(weight).flatten(1)[None]


def modes_last(weight: Tensor) -> Tensor:
    """(rows, columns, modes ..., 2): one complex matrix for every mode."""
    return torch.view_as_complex(weight).flatten(2).permute(2, 0, 1)


@dataclass(frozen=True)
class Study:
    """A model, the weights in question, and the ways to treat them."""

    data: str
    weights: str
    ways: Mapping[str, Matrices | None]
    options: Mapping[str, Any] = field(default_factory=dict)

    def declared(self, way: str) -> Declared:
        return dict.fromkeys(self.weights.split(), self.ways[way])


MODES: dict[str, Matrices | None] = {
    REST: None,
    "Muon, every mode a matrix": per_mode,
    "Muon, all modes one matrix": modes_below,
}
TRAILING: dict[str, Matrices | None] = {
    REST: None,
    "Muon, every mode a matrix": modes_last,
    "Muon, all modes one matrix": modes_beside,
}
TAPS: dict[str, Matrices | None] = {REST: None, "Muon, all taps one matrix": whole}
EIGEN: dict[str, Matrices | None] = {REST: None, "Muon, every mode a matrix": lambda weight: weight}
LAYERS: dict[str, Matrices | None] = {REST: None, "Muon": whole}
STUDIES = {
    "fno": Study("darcy", "spectral.*", MODES, {"width": 32}),
    "f-fno": Study("darcy", "spectral.*", MODES),
    "lsm": Study("darcy", "down.*.[03].weight up.*.[03].weight", TAPS, {"width": 16}),
    "transolver": Study("darcy", "*.project.conv.weight", TAPS),
    "norm": Study("darcy", "blocks.*.mix.weight", EIGEN),
    "geo-fno": Study("elasticity", "spectral.*", TRAILING),
    "lno": Study("elasticity", "*.hidden.*.weight", LAYERS),
    "deeponet": Study("elasticity", "points.[2-9].weight branch.*.weight trunk.[2-9].weight", LAYERS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--epochs", type=int, default=6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.only:
        with TemporaryDirectory() as folder:
            rows = study(name, Path(folder), options.epochs)
        write(options.out, name, rows)


def study(name: str, folder: Path, epochs: int) -> list[str]:
    """The rows of a model."""
    ways = [ADAMW, *STUDIES[name].ways]
    costs = step_costs({way: trainer(name, way, folder / "costs", 1) for way in ways})
    rows, found = [], {}

    def train(way: str, epochs: int) -> None:
        run = trainer(name, way, folder, epochs)
        run.train(lambda *_: None)
        last = json.loads((run.run / "metrics.jsonl").read_text().splitlines()[-1])
        found[way] = last["validation"]
        errors = f"{last['validation']:.4f} | {last['loss']:.4f}"
        rows.append(f"| {name} | {STUDIES[name].data} | {way} | {costs[way]:.2f} | {epochs} | {errors} |")
        print(rows[-1], flush=True)

    for way in ways:
        train(way, epochs)
    best = min(ways, key=lambda way: found[way])
    longer = round(epochs * costs[best] / costs[REST])
    if best not in (ADAMW, REST) and longer > epochs:
        train(REST, longer)
    return rows


def trainer(name: str, way: str, folder: Path, epochs: int) -> Trainer:
    """The training of a model that declares its weights in this way."""
    study, known = STUDIES[name], get(name)
    model, optimiser = name, "adamw"
    if way != ADAMW:
        build = known.build()
        assert isinstance(build, type)
        model, optimiser = "in-question", "muon"
        ours = study.declared(way)
        # What a model says of all its weights is in question too.
        others = {k: v for k, v in getattr(build, "matrices", {}).items() if k not in ours and k != "*"}
        kind: Any = type("InQuestion", (build,), {"matrices": {**ours, **others}})
        lrsa.register(model, kind, known.all_presets())
    run = folder / f"{name}-{way}-{epochs}"
    settings = {"epochs": epochs, "validation": VALIDATION, "optimiser": optimiser}
    prepare(
        study.data,
        model,
        scale="demo",
        recipe="paper",
        out=run,
        threads=1,
        options=study.options,
        train=settings,
    )
    config = RunConfig.load(run)
    return trainer_of(run, replace(config, data=replace(config.data, samples=CASES)))


def step_costs(trainers: Mapping[str, Trainer]) -> dict[str, float]:
    """CPU time of a step of each, over that of AdamW: the medians of rounds in which all take turns."""
    batch = trainers[ADAMW].batch(trainers[ADAMW].keys[:4])
    spent = [{way: _seconds(each, batch) for way, each in trainers.items()} for _ in range(ROUNDS)]
    medians = {way: statistics.median(times[way] for times in spent[2:]) for way in trainers}
    return {way: median / medians[ADAMW] for way, median in medians.items()}


def _seconds(trainer: Trainer, batch: Any) -> float:
    trainer.surrogate.train()
    started = time.process_time()
    trainer.step(batch)
    return time.process_time() - started


def write(path: Path, name: str, rows: list[str]) -> None:
    """The page with these rows, what it has of other models, and the notes below."""
    there = path.read_text().splitlines() if path.exists() else []
    last = max((i for i, line in enumerate(there) if line.startswith("|")), default=len(there))
    kept = [line for line in there if line.startswith("| ")]
    others = [line for line in kept if not line.startswith(("| model |", f"| {name} |"))]
    path.write_text("\n".join([PAGE, *others, *rows, *there[last + 1 :]]) + "\n")


PAGE = f"""# Which weights of the baselines Muon takes

`python studies/optimiser_weights.py --out results/optimiser-weights.md` (`--only`, `--epochs` as in the
table), lrsa {lrsa.__version__}, generated data, seed 0, one thread. Trained on 150 cases of the demo scale,
with its options and learning rates (2e-3 for AdamW, 0.01 for Muon, neither tuned for these weights); FNO is
32 wide, LSM 16. The error is the relative L2 of 50 other training cases after the last epoch. But in the
first row of a model, linear layers go by Muon. A step is in units of AdamW's, on CPU, batch 4, in turns.
Where Muon was best on the weights in question, AdamW also gets the same time, by more epochs.

| model | data | weights in question | step | epochs | error | training loss |
|---|---|---|---|---|---|---|"""


if __name__ == "__main__":
    main()
