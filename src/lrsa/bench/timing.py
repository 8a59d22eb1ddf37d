"""Seconds of training steps and of inference, the models taking turns in one process.

On a shared machine a time means little; the ratio of two minima over the rounds of one run means more, since
what disturbs a round only makes it slower. The spread says how much there was of that.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.functional import mse_loss

from lrsa.bench.settings import Entrant, Setting
from lrsa.data.batch import Batch
from lrsa.training.loop import autocast

PRODUCTS = 5
"""Matrix products before every model's turn; the fastest of the run counts."""


@dataclass
class Times:
    """One number per round."""

    forward: list[float] = field(default_factory=list)
    """The forward pass of a training step."""
    step: list[float] = field(default_factory=list)
    """Forward, backward, optimiser."""
    inference: list[float] = field(default_factory=list)


class Runner:
    """A model with its data and optimiser, ready to run."""

    def __init__(self, entrant: Entrant, setting: Setting, device: str, precision: str) -> None:
        torch.manual_seed(0)
        self.entrant, self.device, self.precision = entrant, device, precision
        model = entrant.build(setting)
        self.batch: Batch = entrant.batch(setting, model).to(device)
        assert self.batch.u is not None
        self.target = self.batch.u
        self.model: nn.Module = model.to(device)
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        self.scaler = torch.amp.GradScaler(torch.device(device).type, enabled=precision == "fp16")

    def step(self) -> tuple[float, float]:
        """Seconds of the forward pass and of the whole training step."""
        self.model.train()
        start = now(self.device)
        self.optimizer.zero_grad()
        with autocast(self.device, self.precision):
            loss = mse_loss(self._predict(), self.target)
        middle = now(self.device)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return middle - start, now(self.device) - start

    def infer(self) -> float:
        """Seconds of a prediction."""
        self.model.eval()
        start = now(self.device)
        with torch.inference_mode(), autocast(self.device, self.precision):
            self._predict()
        return now(self.device) - start

    def _predict(self) -> torch.Tensor:
        return self.model(self.batch.x, self.batch.f, self.batch.context)


def interleave(runners: Sequence[Runner], setting: Setting, rounds: int) -> tuple[list[Times], float]:
    """Every model once per round, after one turn each to warm up; and the machine's matmul rate meanwhile."""
    times, rates = [Times() for _ in runners], []
    for turn in range(rounds + 1):
        for runner, row in zip(runners, times, strict=True):
            rates.append(matmul_rate(setting, runner.device, runner.precision))
            (forward, step), inference = runner.step(), runner.infer()
            if turn:
                row.forward.append(forward)
                row.step.append(step)
                row.inference.append(inference)
    return times, max(rates, default=0.0)


def matmul_rate(setting: Setting, device: str, precision: str) -> float:
    """Operations per second of (B N × d) times (d × d), what the machine gives to the shape of a layer."""
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    n, d = setting.batch * setting.points, setting.width
    a, b = torch.rand(n, d, dtype=kind, device=device), torch.rand(d, d, dtype=kind, device=device)
    out = torch.empty(n, d, dtype=kind, device=device)
    seconds = []
    for _ in range(PRODUCTS):
        start = now(device)
        torch.mm(a, b, out=out)
        seconds.append(now(device) - start)
    return 2 * n * d * d / min(seconds)


def now(device: str) -> float:
    """The clock, when all work that was asked for is done."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()
