"""The time of a training step of a model beside one of LRSA, the two taking turns."""

import time
from dataclasses import replace
from pathlib import Path

import torch

from lrsa.experiments.job import Job
from lrsa.training.fit import trainer_of
from lrsa.training.loop import Trainer

ROUNDS = 5
"""In which LRSA and another model take turns; the fastest step of each counts."""


def step_times(job: Job, folder: Path, device: str = "cpu") -> dict[str, float]:
    """Seconds of the model and of LRSA at the same scale, in the scale's batches."""
    train = {name: value for name, value in job.train.items() if name != "batch_size"}
    own = replace(job, model="lrsa", options={}, train=train, matched=False)
    theirs = _trainer(job, folder, device)
    if own == job:
        fastest = min([_seconds(theirs, k) for k in range(1 + ROUNDS)][1:])
        return {"model": fastest, "lrsa": fastest}
    ours = _trainer(own, folder, device)
    pairs = [(_seconds(theirs, k), _seconds(ours, k)) for k in range(1 + ROUNDS)][1:]
    return {"model": min(t[0] for t in pairs), "lrsa": min(t[1] for t in pairs)}


def _trainer(job: Job, folder: Path, device: str) -> Trainer:
    """Before its first step, with steps for all rounds."""
    config, normaliser = job.resolved()
    long = replace(config.train, epochs=max(config.train.epochs, 1 + ROUNDS))
    return trainer_of(folder, replace(config, train=long, device=device), normaliser)


def _seconds(trainer: Trainer, k: int) -> float:
    """One training step on the cases of the k-th."""
    batches = trainer.batches(0)
    batch = trainer.batch(batches[k % len(batches)]).to(trainer.device)
    # One thread is timed by the processor: on a busy machine it waits for others.
    alone = torch.device(trainer.device).type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    started = clock()
    trainer.step(batch)
    return clock() - started
