"""The paper's efficiency: memory, forward and backward pass of LRSA and Transolver in three precisions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from matplotlib.figure import Figure

from lrsa.bench.memory import probe
from lrsa.bench.run import versions
from lrsa.bench.settings import RANK, SETTINGS, Entrant, Setting
from lrsa.bench.timing import Runner, interleave
from lrsa.console import console
from lrsa.experiments.experiment import Experiment
from lrsa.experiments.page import MISSING, Grid, Page, Plot, Section, Value
from lrsa.experiments.plots import bars, factors, panels
from lrsa.experiments.printed import EFFICIENCY as PRINTED
from lrsa.experiments.study import Study, Work
from lrsa.files import atomic
from lrsa.surrogate.precision import Precision

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
MODELS = {"lrsa": "LRSA", "transolver": "Transolver"}
BATCHES = {"navier-stokes": 20, "airfoil": 20, "shapenet-car": 8}
"""The paper's, which fill a GPU; a CPU is full at one case."""
ROUNDS = 3
PATIENCE = 400.0
"""Seconds for the data and two steps of a model, by itself: in half precision a CPU may take long."""
QUANTITIES = ("memory", "forward", "backward")
Measured = Mapping[tuple[str, str, str], Mapping[str, Any]]
"""(setting, model, precision) -> what was measured."""


class Efficiency(Experiment):
    """Measured, not trained: its own numbers are its record."""

    name = "efficiency"
    about = "memory, forward and backward pass in three precisions, beside Transolver in fp32"

    def measure(self, work: Work) -> None:
        for name in SETTINGS:
            known = measured(work)
            if all((name, model, precision) in known for model in MODELS for precision in PRECISIONS):
                continue
            batch = BATCHES[name] if work.study.scale == "paper" else 1
            rows = list(_measure(replace(SETTINGS[name], batch=batch), work))
            others = [dict(row) for key, row in known.items() if key[0] != name]
            with atomic(_record(work)) as temporary:
                temporary.write_text(json.dumps({"rows": [*others, *rows]}, indent=1) + "\n")

    def page(self, work: Work) -> Page:
        # Data, recipe and --matched decide nothing here: cases are synthetic and sizes the published ones.
        study, known = Study(work.study.scale), measured(work)
        figure = ratios(known)
        plots = [Plot("", "step time and memory beside Transolver", CAPTION, figure)] if figure else []
        about = sorted({f"{k} {v}" for row in known.values() for k, v in row["versions"].items()})
        notes = [
            "Ratios to Transolver in fp32 in the same process; below them the paper's, on one RTX 4090 with"
            " batches of 20, 20 and 8. Backward is the gradient alone, without the optimiser.",
            "At the small scales a batch is one case. In half precision a CPU is as fast as its units for it:"
            " the ratios say what this one does, not what a GPU would.",
            *([f"Versions: {', '.join(about)}."] if about else []),
        ]
        return Page(
            self.name,
            "Efficiency",
            "Peak memory of a training step, time of its forward and of its backward pass, as ratios to"
            " Transolver in fp32.",
            study.command(self.name),
            study.named(self.name),
            f"{study.scale} scale · synthetic cases of the published shapes",
            [Section(plots=plots, grids=[_grid(known, name) for name in SETTINGS], notes=notes)],
            {"rows": [dict(row) for row in known.values()]},
        )


CAPTION = "A training step, forward and backward, and its peak memory; Transolver in fp32 = 1."


def measured(work: Work) -> dict[tuple[str, str, str], dict[str, Any]]:
    """What is recorded."""
    path = _record(work)
    if not path.exists():
        return {}
    rows = json.loads(path.read_text())["rows"]
    return {(row["setting"], row["model"], row["precision"]): row for row in rows}


def ratio(known: Measured, setting: str, model: str, precision: str, quantity: str) -> float | None:
    """Of memory, forward, backward or step to Transolver's in fp32."""
    ours, theirs = (known.get((setting, *pair)) for pair in ((model, precision), ("transolver", "fp32")))
    if ours is None or theirs is None or not ours.get(quantity) or not theirs.get(quantity):
        return None
    return ours[quantity] / theirs[quantity]


def printed_ratio(setting: str, model: str, precision: str, quantity: str) -> float:
    """The same, of what the paper prints; a step is forward and backward."""
    return _printed(setting, model, precision)[quantity] / _printed(setting, "transolver", "fp32")[quantity]


def _printed(setting: str, model: str, precision: str) -> dict[str, float]:
    memory, forward, backward = PRINTED[model, precision][setting]
    return {"memory": memory, "forward": forward, "backward": backward, "step": forward + backward}


def ratios(known: Measured) -> Figure | None:
    """Steps and memory of every setting."""
    shown = [name for name in SETTINGS if any(key[0] == name for key in known)]
    if not shown:
        return None
    figure, axes = panels(2 * len(shown), 4.0, 2.8)
    for i, name in enumerate(shown):
        time, memory = (
            {
                label: [ratio(known, name, model, p, quantity) or float("nan") for p in PRECISIONS]
                for model, label in MODELS.items()
            }
            for quantity in ("step", "memory")
        )
        factors(axes[i], f"{name}: time", PRECISIONS, time)  # half precision spans two decades on a CPU
        below = axes[len(shown) + i]
        bars(below, f"{name}: peak memory", PRECISIONS, memory)
        below.axhline(1, color="#7b8794", linewidth=0.8, linestyle=":")
    axes[0].legend()
    return figure


def _record(work: Work) -> Path:
    """Kept apart from the page, which is written anew."""
    return work.cells.parent / "efficiency" / f"{work.study.scale}-{work.device}.json"


def _measure(setting: Setting, work: Work) -> Sequence[dict[str, Any]]:
    """Models and precisions by turns in this process; memory in a process of its own each."""
    cpu = work.device == "cpu"
    entrants: dict[tuple[str, Precision], Entrant] = {
        (model, precision): Entrant(model, model, {"rank": RANK}, setting.name)
        for precision in PRECISIONS
        for model in MODELS
    }
    probes = {}
    for (model, precision), entrant in entrants.items():
        console.print(f"efficiency, {setting.name}: {model} in {precision}")
        probes[model, precision] = probe(entrant, setting, work.device, precision, work.threads, PATIENCE)
    rows = []
    # Half precision without its own units is slow: one round of it is enough.
    for group, rounds in ((("fp32", "bf16"), ROUNDS), (("fp16",), 1 if cpu else ROUNDS)):
        keys = [key for key in entrants if key[1] in group and not probes[key].refusal]
        runners = [Runner(entrants[key], setting, work.device, key[1]) for key in keys]
        for key, times in zip(keys, interleave(runners, rounds), strict=True):
            forward, backward = min(times.forward), min(times.backward)
            tried = probes[key]
            rows.append(
                {
                    "setting": setting.name,
                    "model": key[0],
                    "precision": key[1],
                    "batch": setting.batch,
                    "threads": work.threads,
                    "parameters": tried.parameters,
                    "kernels": list(tried.kernels),
                    "memory": tried.peak,
                    "forward": forward,
                    "backward": backward,
                    "step": forward + backward,
                    "versions": versions(work.device),
                }
            )
    refused = [key for key in entrants if probes[key].refusal]
    rows += [
        {
            "setting": setting.name,
            "model": model,
            "precision": precision,
            "versions": {},
            "reason": probes[model, precision].refusal,
        }
        for model, precision in refused
    ]
    return rows


def _grid(known: Measured, setting: str) -> Grid:
    head = [f"{setting}", "peak memory", "forward", "backward", "forward + backward", "forward, ms", "kernel"]
    rows = []
    for model, label in MODELS.items():
        for precision in PRECISIONS:
            row = known.get((setting, model, precision))
            places = [
                _value(
                    ratio(known, setting, model, precision, q), printed_ratio(setting, model, precision, q)
                )
                for q in (*QUANTITIES, "step")
            ]
            ms = f"{1e3 * row['forward']:.0f}" if row and "forward" in row else ""
            kernels = ", ".join(
                k.removeprefix("_scaled_dot_product_") for k in (row or {}).get("kernels", ())
            )
            note = (row or {}).get("reason", "")
            rows.append((f"{label}, {precision}", [*places, Value(ms, note=note), Value(kernels or note)]))
    return Grid(head, rows)


def _value(ours: float | None, printed: float) -> Value:
    if ours is None:
        return Value(MISSING, f"{printed:.2f}", "missing")
    return Value(f"{ours:.2f}", f"{printed:.2f}")
