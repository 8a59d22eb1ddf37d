"""Processes that share cases, or the points of cases, train as one process would."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import together
from safetensors.torch import load_file, save_file
from small import copy_run, ragged_cases, write
from torch import Tensor

from lrsa.data.batch import Batch
from lrsa.errors import LrsaError
from lrsa.parallel.ranks import Ranks, bytes_sent, joined
from lrsa.pointset import PointSet
from lrsa.training.config import RunConfig
from lrsa.training.fit import prepare, trainer_of
from lrsa.training.loop import Trainer

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

SIZES: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2, "rank": 5}
STEPS = 3


def weighted(case: PointSet, seed: int) -> PointSet:
    rng = np.random.default_rng(seed)
    known = rng.random((len(case), 1)) < 0.8
    return replace(case, weights=rng.uniform(0.1, 3, len(case)).astype(np.float32), u_mask=known)


def run_of(folder: Path, model: str, **train: Any) -> Path:
    """A run on ragged cases with weights and unknown targets, before its first step."""
    cases = [weighted(case, i) for i, case in enumerate(ragged_cases(8))]
    data = write(folder / f"{model}.h5", cases[1:], cases[:1])
    given = {"epochs": 3, "batch_size": 3, "validation": 0.3, **train}
    return prepare(str(data), model, out=folder / f"run-{model}", options=SIZES, train=given)


def stepped(run: Path, ranks: Ranks | None, dtype: torch.dtype) -> dict[str, Tensor]:
    """Weights after three steps, the first loss and gradient, and the errors of the validation cases."""
    trainer = trainer_in(run, ranks, dtype)
    found: dict[str, Tensor] = {}
    for step, keys in enumerate([*trainer.batches(0), *trainer.batches(1)][:STEPS]):
        loss = trainer.step(trainer.batch(keys))
        if not step:
            gradients = {
                n: p.grad.clone() for n, p in trainer.surrogate.named_parameters() if p.grad is not None
            }
            found |= {"loss": torch.tensor(loss, dtype=torch.float64)}
            found |= {f"gradient.{n}": g for n, g in gradients.items()}
    found["validation"] = trainer._validation_errors()
    return found | {f"weight.{n}": p.detach().clone() for n, p in trainer.surrogate.named_parameters()}


def trainer_in(run: Path, ranks: Ranks | None, dtype: torch.dtype) -> Trainer:
    """Of a run, with weights and batches of this type."""
    trainer = trainer_of(run, RunConfig.load(run), ranks=ranks)
    trainer.surrogate.to(dtype)
    made = trainer.collate
    trainer.collate = lambda cases: cast(made(cases), dtype)
    return trainer


def cast(batch: Batch, dtype: torch.dtype) -> Batch:
    def converted(part: Any) -> dict[str, Tensor]:
        tensors = {k: v for k, v in vars(part).items() if isinstance(v, Tensor) and v.is_floating_point()}
        return {k: v.to(dtype) for k, v in tensors.items()}

    return replace(batch, **converted(batch), context=replace(batch.context, **converted(batch.context)))


def work(runs: list[Path], shard_points: int, out: Path) -> None:
    """What every process does; the last one keeps what it found, as the first would have."""
    with joined(shard_points) as ranks:
        assert ranks.everyone is not None
        for run in runs:
            for dtype in (torch.float64, torch.float32):
                found = stepped(run, ranks, dtype)
                if ranks.everyone.rank == ranks.everyone.size - 1:
                    save_file(found, out / f"{run.name}-{dtype}.safetensors")


@pytest.mark.parametrize(
    ("size", "shard_points"),
    [(4, 2), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((3, 3), (2, 1), (2, 2)))],
)
def test_processes_train_as_one(size: int, shard_points: int, home: Path) -> None:
    """Uneven shares, masks, weights, ragged cases, batches of 3; AdamW and Muon; all ways of training."""
    runs = [
        run_of(home / "whole", "lrsa", optimiser="muon"),
        run_of(home / "chunks", "backbone-transolver", optimiser="adamw", chunk=7, loss="mse"),
        run_of(home / "by torch", "backbone-flare", optimiser="adamw"),
        run_of(home / "again", "backbone-galerkin", optimiser="adamw", recompute=True),
    ]
    together(size, work, runs, shard_points, home)
    for run in runs:
        for dtype, of_gradient, of_weight in ((torch.float64, 1e-10, 1e-9), (torch.float32, 1e-5, None)):
            ours, alone = load_file(home / f"{run.name}-{dtype}.safetensors"), stepped(run, None, dtype)
            assert ours.keys() == alone.keys()
            allowed = {
                "loss": of_gradient,
                "validation": 1e-6,
                "gradient": of_gradient,
                "weight": of_weight,
            }
            for kind, tolerance in allowed.items():
                if tolerance is not None:
                    assert distance(ours, alone, kind) < tolerance, (run.name, dtype, kind)


def distance(ours: dict[str, Tensor], alone: dict[str, Tensor], kind: str) -> float:
    """The largest difference of two tensors over the largest norm."""
    names = [name for name in alone if name.split(".")[0] == kind]
    assert names
    largest = max(float(alone[name].norm()) for name in names)
    return max(float((ours[name] - alone[name]).norm()) for name in names) / largest


def exchange(run: Path, out: Path) -> None:
    with joined(2) as ranks:
        assert ranks.shared is not None
        trainer, counts = trainer_of(run, RunConfig.load(run), ranks=ranks), []
        for repeats in (1, 5):
            keys = [trainer.keys[0]]
            batch = trainer.batch(keys)
            x, f = (v.repeat(1, repeats, 1) for v in (batch.x, batch.f) if v is not None)
            before = bytes_sent([ranks.shared])
            trainer.surrogate(x, f).sum().backward()
            counts.append(bytes_sent([ranks.shared]) - before)
        if ranks.first:
            save_file({"sent": torch.tensor(counts)}, out / "sent.safetensors")


def test_what_is_sent_does_not_grow_with_the_points(home: Path) -> None:
    """Per layer: M maxima and M (1 + d_h) sums of each head forwards, the gradients of the sums backwards."""
    run = run_of(home / "whole", "lrsa", weights=False)
    together(2, exchange, run, home)
    heads, rank, width, depth = (SIZES[k] for k in ("heads", "rank", "width", "depth"))
    sums = heads * rank * (1 + width // heads)
    assert (
        load_file(home / "sent.safetensors")["sent"].tolist() == [4 * depth * (heads * rank + 2 * sums)] * 2
    )


def test_what_needs_all_points_is_refused_by_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LrsaError, match="--nproc 2"), joined(2):
        pass
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(LrsaError, match="lacks RANK"), joined():
        pass
    for name, value in {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LrsaError, match="--shard-points 2 does not divide 3 processes"), joined(2):
        pass
    monkeypatch.setenv("LRSA_PATIENCE", "soon")
    with pytest.raises(LrsaError, match="LRSA_PATIENCE is a number of seconds"), joined(3):
        pass


class Stopped(Exception):
    """In the middle of an epoch."""


def begin(runs: dict[torch.dtype, Path]) -> None:
    """Train two epochs and a step of the third."""
    with joined(2) as ranks:
        for dtype, run in runs.items():
            trainer = trainer_in(run, ranks, dtype)

            def report(done: int, total: int, words: str, after: int = 2 * trainer.steps) -> None:
                if done > after:
                    raise Stopped

            with pytest.raises(Stopped):
                trainer.train(report)


def test_what_two_processes_began_one_ends(home: Path) -> None:
    """Their checkpoint does not depend on their number: it goes on as if one had done all of it.

    Losses agree in both precisions, weights in double: in single, steps of Muon enlarge rounding.
    """
    begun = {
        dtype: run_of(home / str(dtype), "lrsa", optimiser="muon") for dtype in (torch.float32, torch.float64)
    }
    alone = {dtype: copy_run(run, run.parent / "alone") for dtype, run in begun.items()}
    together(2, begin, begun)
    for dtype, run in begun.items():
        assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
        for each in (run, alone[dtype]):
            trainer_in(each, None, dtype).train(lambda done, total, words: None)
        ours, theirs = (
            [json.loads(row) for row in (each / "metrics.jsonl").read_text().splitlines()]
            for each in (run, alone[dtype])
        )
        assert len(ours) == len(theirs) == 3
        for row, same in zip(ours, theirs, strict=True):
            assert row == pytest.approx(same, rel=1e-5 if dtype == torch.float32 else 1e-9)
    ours, theirs = (
        {f"weight.{k}": v for k, v in load_file(run / "last.safetensors").items() if v.is_floating_point()}
        for run in (begun[torch.float64], alone[torch.float64])
    )
    assert distance(ours, theirs, "weight") < 1e-9
