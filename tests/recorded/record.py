"""Record what must not change: tiny data files, one-epoch trainings on them, their errors and predictions.

    python tests/recorded/record.py

writes into this folder data/*.h5, runs/NAME/ and expected.json. What lies here was made by version 0.1.0,
before its parts were moved into rooms; the tests train, load, evaluate and predict the same again. Record
anew only what a commit changes on purpose, and say why there.
"""

import contextlib
import json
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lrsa

HERE = Path(__file__).parent
SIDE = 17
"""Points along each axis of the grid: LSM halves it four times."""
SIZES: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2, "rank": 4}
OPTIONS: dict[str, dict[str, Any]] = {
    "f-fno": {"modes": (4, 4)},
    "f-fno-linear": {"modes": (4, 4)},
    "lrsa-fourier": {"modes": 3},
    "fno": {"width": 8, "modes": 3},
    "lsm": {"width": 4, "tokens": 2, "bases": 3, "norm": "instance"},
    "norm": {"modes": 6},
    "hpm": {"modes": 6},
    "backbone-hpm": {"modes": 6},
    "backbone-norm": {"modes": 6},
    "flare": {"kv_layers": 1, "ffn_layers": 1},
    "lno": {"mlp_layers": 1},
    "perceiver-io": {"frequencies": 2},
    "geo-fno": {"width": 6, "modes": (3, 3), "grid": (8, 8), "deformation_width": 8},
    "deeponet": {"branch_depth": 3, "trunk_depth": 3},
    "mesh-graph-net": {"depth": 2},
    "gno": {"kernel_width": 12, "depth": 2},
    "graph-unet": {"width": 8, "radii": (0.5, 1.0)},
}
"""Of the models for which the sizes are not all."""
MORE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lrsa-local": ("lrsa", "grid", {"local": "depthwise", "frequencies": 2}),
    "lrsa-mesh": ("lrsa", "mesh", {}),
    "lrsa-frames": ("lrsa", "frames", {}),
    "lrsa-times": ("lrsa", "times", {}),
    "transolver-structured": ("transolver", "grid", {"structured": True}),
    "transolver-times": ("transolver", "times", {}),
    "mesh-graph-net-frames": ("mesh-graph-net", "frames", {}),
}
"""Runs besides one of every model: model, data, options."""
TRAINING: dict[str, Any] = {"epochs": 1, "batch_size": 2, "threads": 1, "kernels": False}


def smooth(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f = Σ aₖ cos(k·πx) and u, the same smoothed, for six random aₖ: (N, 1) each."""
    waves = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0)]
    shapes = np.stack([np.cos(np.pi * i * x[:, 0]) * np.cos(np.pi * j * x[:, 1]) for i, j in waves])
    a = rng.standard_normal(len(waves))
    damped = a / np.array([1 + i * i + j * j for i, j in waves])
    return (a @ shapes)[:, None].astype(np.float32), (damped @ shapes)[:, None].astype(np.float32)


def lattice(side: int) -> np.ndarray:
    axis = np.linspace(0, 1, side, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def grid_case(rng: np.random.Generator) -> lrsa.PointSet:
    x = lattice(SIDE)
    return lrsa.PointSet(x, *smooth(rng, x), grid=(SIDE, SIDE))


def mesh_case(rng: np.random.Generator) -> lrsa.PointSet:
    """Triangles, weights, a parameter of the case, targets that are unknown at some points."""
    from scipy.spatial import Delaunay

    x = rng.random((int(rng.integers(30, 40)), 2)).astype(np.float32)
    f, u = smooth(rng, x)
    known, weights = rng.random((len(x), 1)) < 0.9, rng.random(len(x)).astype(np.float32) + 0.5
    parameter = rng.random(1).astype(np.float32)
    cells = Delaunay(x).simplices.astype(np.int64)
    return lrsa.PointSet(x, f, parameter * u, known, weights, cells, globals=parameter)


def frames_case(rng: np.random.Generator, count: int = 12) -> lrsa.PointSet:
    """A field that decays in time, on 6 × 6 points."""
    x = lattice(6)
    times = np.linspace(0, 1, count, dtype=np.float32)
    _, u = smooth(rng, x)
    return lrsa.PointSet(x, u=np.exp(-times)[:, None, None] * u, times=times, grid=(6, 6))


def times_case(rng: np.random.Generator) -> lrsa.PointSet:
    case = frames_case(rng, 3)
    assert case.u is not None
    return lrsa.PointSet(case.x, case.u[0], case.u, times=case.times, grid=case.grid)


def write_data() -> None:
    from lrsa.data.store import Schema

    kinds = {
        "grid": (grid_case, "static"),
        "mesh": (mesh_case, "static"),
        "frames": (frames_case, "autoregressive"),
        "times": (times_case, "time-conditioned"),
    }
    for name, (make, protocol) in kinds.items():
        rng = np.random.default_rng(0)
        splits = {split: [make(rng) for _ in range(count)] for split, count in (("train", 6), ("test", 2))}
        lrsa.write_dataset(HERE / "data" / f"{name}.h5", splits, Schema(name, protocol=protocol))


def plans() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Every run: its model, its data, its options."""
    from lrsa.models.registry import get, model_options, names

    made: dict[str, tuple[str, str, dict[str, Any]]] = {}
    for model in names():
        known = model_options(model)
        options = {k: v for k, v in {**SIZES, **OPTIONS.get(model, {})}.items() if k in known}
        made[model] = (model, "mesh" if "mesh" in get(model).data else "grid", options)
    for name, (model, data, options) in MORE.items():
        made[name] = (model, data, {**made[model][2], **options})
    return made


def record_run(name: str, model: str, data: str, options: dict[str, Any]) -> dict[str, Any]:
    from lrsa.evaluation.evaluate import evaluate

    run = HERE / "runs" / name
    path = HERE / "data" / f"{data}.h5"
    shutil.rmtree(run, ignore_errors=True)
    surrogate = lrsa.fit(path, model, out=run, options=options, **TRAINING)
    error = evaluate(run).relative_l2
    case = lrsa.open_dataset(path, "test")[0]
    prediction = surrogate.predict(case)
    shutil.rmtree(run / "checkpoint")
    (run / "last.safetensors").unlink()
    config = json.loads((run / "config.json").read_text())
    config["data"]["path"], config["command"] = path.name, "lrsa.fit"
    (run / "config.json").write_text(json.dumps(config, indent=1))
    return {
        "model": model,
        "data": data,
        "options": options,
        "relative_l2": error,
        "prediction": prediction.ravel()[:8].tolist(),
    }


def record_interrupted() -> None:
    """A run that was stopped after the first of two epochs, and the weights that it ends with."""
    from lrsa.console import Advance
    from lrsa.data.batch import Batch
    from lrsa.training.loop import Trainer

    run, path = HERE / "runs" / "interrupted", HERE / "data" / "grid.h5"
    shutil.rmtree(run, ignore_errors=True)
    settings = {**TRAINING, "epochs": 2, "options": SIZES}
    lrsa.fit(path, out=run, **settings)
    whole = (run / "last.safetensors").read_bytes()
    shutil.rmtree(run)
    epoch = Trainer._epoch

    def stop(self: Trainer, batches: Generator[Batch], report: Advance) -> None:
        if self.progress.epoch == 1:
            raise KeyboardInterrupt
        epoch(self, batches, report)

    Trainer._epoch = stop
    with contextlib.suppress(KeyboardInterrupt):
        lrsa.fit(path, out=run, **settings)
    Trainer._epoch = epoch
    (run / "uninterrupted.safetensors").write_bytes(whole)
    config = json.loads((run / "config.json").read_text())
    config["data"]["path"], config["command"] = path.name, "lrsa.fit"
    (run / "config.json").write_text(json.dumps(config, indent=1))


def processor() -> str:
    """What the bits depend on besides the code."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return f"{model}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


if __name__ == "__main__":
    shutil.rmtree(HERE / "data", ignore_errors=True)
    write_data()
    expected = {name: record_run(name, *plan) for name, plan in plans().items()}
    record_interrupted()
    (HERE / "expected.json").write_text(json.dumps({"processor": processor(), "runs": expected}, indent=1))
