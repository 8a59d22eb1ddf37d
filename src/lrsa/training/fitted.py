"""Runs of models that are fitted to all cases at once: no steps, no epochs, the same files."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lrsa.data.prepare import Collator
from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.machine import check_fits
from lrsa.models.pod import FittedModel
from lrsa.objectives.protocols import protocol
from lrsa.pointset import PointSet, corresponding, scattered
from lrsa.surrogate.surrogate import Surrogate
from lrsa.training.checkpoint import Standing, save_model
from lrsa.training.config import RunConfig
from lrsa.training.loop import case_errors


def check_fit(config: RunConfig, cases: Sequence[PointSet]) -> None:
    """Refuse cases that cannot be fitted at once."""
    who, name = f'"{config.model}"', config.schema.name
    if config.init is not None:
        raise LrsaError(f"{who} is fitted at once: it starts from nothing. Leave out --init")
    if config.schema.protocol == "autoregressive":
        raise LrsaError(
            f"{who} gives whole fields, and those of {name} follow from frames before. Use --model lrsa"
        )
    if not corresponding(cases) or scattered(cases):
        raise LrsaError(
            f"{who} needs cases of one mesh (points, cells and known targets), and those of {name} differ."
            " Use --model lrsa"
        )
    first = cases[0]
    if first.times is not None and any(not torch.equal(_times(case), _times(first)) for case in cases):
        raise LrsaError(f"{who} needs the same times in all cases, and {name} has others. Use --model lrsa")
    if config.train.points is not None:
        raise LrsaError(f"{who} needs all points of a case. Leave out --train.points")
    check_fits(4 * sum(v.size for v in first.arrays().values()) * len(cases), f"all of {name} at once")


def fit_at_once(
    run: Path,
    config: RunConfig,
    surrogate: Surrogate,
    cases: Sequence[PointSet],
    validation: Sequence[PointSet],
) -> Standing:
    """Fit the surrogate in place and write what a trained run has."""
    started = time.perf_counter()
    model, normaliser = surrogate.model, surrogate.normaliser
    assert isinstance(model, FittedModel)
    inputs, targets = [], []
    for case in cases:
        batch = surrogate.collate([case])
        assert batch.u is not None
        inputs.append(surrogate.normalise(batch.x, batch.f, batch.context))
        # A target that is constant has no scale, and needs none.
        scale = torch.where(normaliser.u_scale > 0, normaliser.u_scale, 1.0)
        u = (batch.u - normaliser.u_shift) / scale
        if batch.known is not None:
            u = u.where(batch.known if u.ndim == 3 else batch.known[:, None], 0.0)
        targets.append(u)
    times = None if cases[0].times is None else normaliser.time(_times(cases[0]))
    x = torch.cat([x for x, _, _ in inputs])
    f, g = _stacked([f for _, f, _ in inputs]), _stacked([context.globals for _, _, context in inputs])
    model.fit(x, f, g, torch.cat(targets), times)
    surrogate.eval()
    row = {"epoch": 1, "loss": model.error}
    standing = Standing(epoch=1)
    if validation:
        collate = Collator.of(model, config.train.weights, normaliser)
        how = protocol(config.schema.protocol)
        errors = case_errors(surrogate, how, validation, collate, config.train, config.device)
        row["validation"] = standing.best = float(errors.mean())
        standing.best_epoch = 1
    for name in ("last", "model"):
        save_model(run / f"{name}.safetensors", surrogate)
    with atomic(run / "metrics.jsonl") as temporary:
        temporary.write_text(json.dumps(row) + "\n")
    standing.seconds = time.perf_counter() - started
    return standing


def _stacked(parts: Sequence[Tensor | None]) -> Tensor | None:
    there = [part for part in parts if part is not None]
    return torch.cat(there) if there else None


def _times(case: PointSet) -> Tensor:
    return torch.from_numpy(np.array(case.times, np.float32))
