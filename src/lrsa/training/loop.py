"""The training loop: one for every model and every protocol.

Everything random in an epoch is seeded by (seed, epoch), and a checkpoint closes every epoch: a run killed
at any moment and resumed ends with the same bits as one that was not.
"""

import json
import math
import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lrsa.console import Advance
from lrsa.data.batch import Batch, order, prefetch
from lrsa.data.symmetry import Symmetry
from lrsa.errors import Failure, LrsaError
from lrsa.objectives.losses import Total, gradient_error, loss_of, relative_l2
from lrsa.objectives.protocols import Loss, Protocol
from lrsa.objectives.words import labels
from lrsa.parallel.ranks import Ranks
from lrsa.pointset import PointSet
from lrsa.surrogate.precision import autocast
from lrsa.surrogate.surrogate import Surrogate
from lrsa.training.checkpoint import STATE, Standing, load_checkpoint, save_checkpoint, save_model
from lrsa.training.config import TrainConfig
from lrsa.training.examples import noisy, thinned
from lrsa.training.optimisers import make_optimiser

Collate = Callable[[Sequence[PointSet]], Batch]
DRAWS = 7
"""Sets the random numbers that choose symmetries apart from those that order the cases."""


class Trainer:
    """Trains a surrogate in place, from the last checkpoint of its run folder if there is one."""

    def __init__(
        self,
        run: Path,
        config: TrainConfig,
        surrogate: Surrogate,
        protocol: Protocol,
        cases: Sequence[PointSet],
        validation: Sequence[PointSet],
        collate: Collate,
        device: str = "cpu",
        ranks: Ranks | None = None,
    ) -> None:
        self.run, self.config, self.device, self.ranks = run, config, device, ranks or Ranks()
        surrogate.sharing = self.ranks.shared
        self.surrogate, self.protocol, self.collate = surrogate.to(device), protocol, collate
        self.cases, self.validation = cases, validation
        examples = protocol.examples(cases[0])
        self.keys = [(i, k) for i in range(len(cases)) for k in range(examples)]
        whole = math.ceil(len(self.keys) / config.batch_size)
        self.steps = min(whole, config.steps or whole)
        self.optimizer = make_optimiser(
            config.optimiser, surrogate.model, config.max_lr, config.muon_lr, config.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            [group["lr"] for group in self.optimizer.param_groups],
            total_steps=(total := self.steps * config.epochs + 1),
            pct_start=_rising(config.warmup, total),
        )
        # A modest first scale: a step skipped for overflow would shift the schedule.
        self.scaler = torch.amp.GradScaler(
            torch.device(device).type, init_scale=2.0**10, enabled=config.precision == "fp16"
        )
        self.case_loss = case_loss(config, self.surrogate)
        self.symmetry = Symmetry.of(config.symmetry, cases)
        self.progress = Standing()

    def train(self, report: Advance) -> Standing:
        """Run to the last epoch; `model.safetensors` holds the best one by validation, `last` the last."""
        state = (self.surrogate, self.optimizer, self.scheduler, self.scaler)
        checkpoint = self.run / STATE
        if checkpoint.exists():
            self.progress = load_checkpoint(checkpoint, *state)
            # Where it was not kept yet: the waiting so far must not count against the steps to come alone.
            self.progress.stepping = self.progress.stepping or self.progress.seconds
        self.ranks.wait()  # until all have read the checkpoint
        if self.ranks.first:
            _truncate(self.run / "metrics.jsonl", self.progress.metrics_bytes)
            for unfinished in self.run.rglob(".*.safetensors.*.tmp"):  # of a killed run
                unfinished.unlink()
        with closing(self._reading()) as batches:
            while self.progress.epoch < self.config.epochs:
                started = time.perf_counter()
                self._epoch(batches, report)
                self.progress.seconds += time.perf_counter() - started
                if self.ranks.first:
                    save_checkpoint(checkpoint, *state, self.progress)
        if self.ranks.first:
            save_model(self.run / "last.safetensors", self.surrogate)
        if self.ranks.first and not self.progress.best_epoch:  # no validation, or none that was finite
            save_model(self.run / "model.safetensors", self.surrogate)
        if self.ranks.first and not (self.run / "model.safetensors").exists():
            raise LrsaError(
                f"{self.run} is trained to its end, but the weights of its best epoch (model.safetensors) are"
                " gone: put them back, or train again"
            )
        return self.progress

    def _epoch(self, batches: Generator[Batch], report: Advance) -> None:
        epoch, config = self.progress.epoch, self.config
        torch.manual_seed(1_000_003 * config.seed + epoch)
        total, seen, started = 0.0, 0, time.perf_counter()
        self.surrogate.train()
        for step, keys in enumerate(self.batches(epoch), 1):
            asked = time.perf_counter()
            batch = next(batches)
            self.progress.waiting += time.perf_counter() - asked
            loss = self.step(batch.to(self.device))
            self.progress.stepping += time.perf_counter() - asked
            total, seen = total + loss * len(keys), seen + len(keys)
            rate = seen / (time.perf_counter() - started)
            words = f"epoch {epoch + 1} loss {total / seen:.4f}{self._best()}"
            report(epoch * self.steps + step, self.steps * config.epochs, f"{words} {rate:.0f} cases/s")
        self._close_epoch(
            {"epoch": epoch + 1, "lr": float(self.scheduler.get_last_lr()[0]), "loss": total / seen}
        )

    def batches(self, epoch: int) -> list[list[tuple[int, int]]]:
        """The keys of every step of an epoch: all examples, or those that fit into so many steps."""
        keys = [self.keys[i] for i in order(len(self.keys), self.config.seed, epoch)]
        keys = keys[: self.steps * self.config.batch_size]
        return [keys[i :: self.steps] for i in range(self.steps)]

    def _reading(self) -> Generator[Batch]:
        """All that is to come: the next epoch is read while this one is validated and saved."""
        epochs = range(self.progress.epoch, self.config.epochs)
        to_come = ((epoch, keys) for epoch in epochs for keys in self.batches(epoch))
        return prefetch(lambda one: self.batch(one[1], epoch=one[0]), to_come)

    def batch(self, keys: Sequence[tuple[int, int]], epoch: int | None = None) -> Batch:
        """What this process holds of these (case, index) keys, each moved by a symmetry of the epoch's."""
        epoch = self.progress.epoch if epoch is None else epoch
        mine = self.ranks.dealt(keys)
        # Where there are fewer cases than processes, one of them again, which does not count.
        batch = self._held(self.collate([self._example(epoch, i, k) for i, k in mine or keys[:1]]))
        return replace(batch, share=len(mine) / len(keys), total=self.total)

    @property
    def total(self) -> Total | None:
        """Of the errors of cases, where others hold the rest of their points."""
        return None if self.ranks.shared is None else self.ranks.shared.common

    def _held(self, batch: Batch) -> Batch:
        """The points of this process."""
        return batch if self.ranks.shared is None else batch.at(self.ranks.part(batch.x.shape[1]))

    def _example(self, epoch: int, i: int, k: int) -> PointSet:
        example = self.protocol.example(self.cases[i], k)
        key = [epoch, i, k]
        rng = np.random.default_rng([DRAWS, self.config.seed, *key])
        moved = self.symmetry.draw(example, rng)(example)
        return thinned(noisy(moved, self.protocol.history, self.config, key), self.config, key)

    def step(self, batch: Batch) -> float:
        """One step of the optimiser; the loss before it."""
        self.optimizer.zero_grad()
        with autocast(self.device, self.config.precision):
            loss = self.protocol.loss(self.surrogate, batch, self.case_loss)
            loss = loss if self.ranks.everyone is None else loss * batch.share
        value = float(self.ranks.sum_over_cases(loss.detach()))
        if not math.isfinite(value):
            rates = "--train.max-lr" + (" or --train.muon-lr" if self.config.optimiser == "muon" else "")
            raise Failure(f"the loss became {value} in epoch {self.progress.epoch + 1}. Lower {rates}")
        self.scaler.scale(loss).backward()
        self.ranks.sum_gradients(self.surrogate.model)
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.surrogate.model.parameters(), self.config.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.scheduler.step()
        return value

    def _close_epoch(self, row: dict[str, float]) -> None:
        progress = self.progress
        progress.epoch += 1
        last = progress.epoch == self.config.epochs
        if self.validation and (last or not progress.epoch % self.config.every):
            row["validation"] = float(self._validation_errors().mean())
            if row["validation"] < progress.best:
                progress.best, progress.best_epoch = row["validation"], progress.epoch
                if self.ranks.first:
                    save_model(self.run / "model.safetensors", self.surrogate)
        if not self.ranks.first:
            return
        with open(self.run / "metrics.jsonl", "a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
            progress.metrics_bytes = file.tell()

    def _validation_errors(self) -> Tensor:
        """(S,) of the validation cases, of which each process predicts its part."""
        mine = self.ranks.dealt(range(len(self.validation)))
        errors = torch.zeros(len(self.validation))
        if mine:
            found = case_errors(
                self.surrogate,
                self.protocol,
                [self.validation[i] for i in mine],
                lambda cases: replace(self._held(self.collate(cases)), total=self.total),
                self.config,
                self.device,
            )
            errors[list(mine)] = found.to(errors.dtype)
        return self.ranks.sum_over_cases(errors)

    def _best(self) -> str:
        return f" validation {self.progress.best:.4f}" if self.progress.best_epoch else ""


def _rising(warmup: float, total: int) -> float:
    """The share of the steps before the peak: OneCycleLR divides by their number less one."""
    return float(warmup if abs(warmup * total - 1) > 1e-6 else 1.5 / total)


def case_loss(config: TrainConfig, surrogate: Surrogate) -> Loss:
    """What is minimised, case by case."""
    scale = surrogate.normaliser.u_scale
    named = loss_of(config.loss, labels(surrogate.schema.names.targets, len(scale)), scale)
    if not config.gradient_weight:
        return named

    def loss(prediction: Tensor, truth: Tensor, batch: Batch) -> Tensor:
        error = named(prediction, truth, batch)
        return error + config.gradient_weight * gradient_error(prediction, truth, batch.context.grid)

    return loss


@torch.inference_mode()
def case_errors(
    surrogate: Surrogate,
    protocol: Protocol,
    cases: Sequence[PointSet],
    collate: Collate,
    config: TrainConfig,
    device: str,
) -> Tensor:
    """(S,) relative L2 of every case, predicted as at test time."""
    surrogate.eval()
    size = config.batch_size
    groups = [range(i, min(i + size, len(cases))) for i in range(0, len(cases), size)]
    errors = []
    for batch in prefetch(lambda group: collate([cases[i] for i in group]), groups):
        batch = batch.to(device)
        with autocast(device, config.precision):
            prediction = protocol.predict(surrogate, batch)
        errors.append(relative_l2(prediction.float(), protocol.truth(batch), batch.known, batch.total))
    return torch.cat(errors).cpu()


def _truncate(path: Path, size: int) -> None:
    """Forget the rows that a killed run wrote after its last checkpoint."""
    path.touch()
    os.truncate(path, min(size, path.stat().st_size))
