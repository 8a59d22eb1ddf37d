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
from lrsa.errors import LrsaError
from lrsa.kernels.stages import why_torch
from lrsa.streaming.stream import apply_whole
from lrsa.surrogate.precision import Precision, autocast

PRODUCTS = 5
"""Matrix products in every model's turn; the fastest of the run counts."""


@dataclass
class Times:
    """One number per round."""

    forward: list[float] = field(default_factory=list)
    """The forward pass of a training step."""
    step: list[float] = field(default_factory=list)
    """Forward, backward, optimiser."""
    inference: list[float] = field(default_factory=list)
    matmul: list[float] = field(default_factory=list)
    """Operations per second of a matrix product in the shape of the model's layers."""
    backward: list[float] = field(default_factory=list)
    """The backward pass by itself; none in older results."""


class Runner:
    """A model with its data and optimiser, ready to run."""

    def __init__(self, entrant: Entrant, setting: Setting, device: str, precision: Precision) -> None:
        torch.manual_seed(0)
        self.entrant, self.setting, self.device = entrant, setting, device
        self.precision: Precision = precision
        model = entrant.build(setting)
        self.kernels = entrant.variant == "kernels"
        if self.kernels and (why := why_torch(model, device, precision)):
            raise LrsaError(why)
        self.batch: Batch = entrant.batch(setting, model).to(device)
        assert self.batch.u is not None
        self.target = self.batch.u
        self.model: nn.Module = model.to(device)
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        self.scaler = torch.amp.GradScaler(torch.device(device).type, enabled=precision == "fp16")

    def step(self) -> tuple[float, float, float]:
        """Seconds of the forward pass, of the backward pass and of the whole training step."""
        self.model.train()
        start = now(self.device)
        self.optimizer.zero_grad()
        with autocast(self.device, self.precision):
            loss = mse_loss(self._predict(), self.target)
        middle = now(self.device)
        self.scaler.scale(loss).backward()
        end = now(self.device)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return middle - start, end - middle, now(self.device) - start

    def infer(self) -> float:
        """Seconds of a prediction."""
        self.model.eval()
        start = now(self.device)
        with torch.inference_mode(), autocast(self.device, self.precision):
            self._predict()
        return now(self.device) - start

    def matmul_rate(self) -> float:
        """Operations per second that the machine gives to (B N × d) times (d × d), d the model's width."""
        rows = self.setting.batch * self.setting.points
        return matmul_rate(rows, self.entrant.width(self.setting), self.device, self.precision)

    def _predict(self) -> torch.Tensor:
        return apply_whole(self.model, self.batch.x, self.batch.f, self.batch.context, self.kernels)


def interleave(runners: Sequence[Runner], rounds: int) -> list[Times]:
    """Every model once per round, after one turn each to warm up; its matrix product in its own turns."""
    times = [Times() for _ in runners]
    for turn in range(rounds + 1):
        for runner, row in zip(runners, times, strict=True):
            matmul, (forward, backward, step) = runner.matmul_rate(), runner.step()
            inference = runner.infer()
            if turn:
                row.matmul.append(matmul)
                row.forward.append(forward)
                row.backward.append(backward)
                row.step.append(step)
                row.inference.append(inference)
    return times


def expected(entrant: Entrant, setting: Setting, device: str) -> float:
    """Seconds of a prediction at few points, to order models by; 0 for one that does not run there."""
    try:
        runner = Runner(entrant, setting.smaller(), device, "fp32")
        return min(runner.infer() for _ in range(2))  # the first one of a process warms up
    except Exception:  # whatever it is will be said where it is tried
        return 0.0


def matmul_rate(n: int, d: int, device: str, precision: Precision) -> float:
    """Operations per second of (n × d) times (d × d)."""
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
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
