"""Checkpoints: everything that is needed to go on as if nothing had happened, in one file."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from lrsa.errors import LrsaError
from lrsa.files import atomic
from lrsa.typed import conforms

STATE = Path("checkpoint") / "state.safetensors"
"""Where it is in the folder of a run."""


@dataclass
class Standing:
    """Where a run stands at the end of an epoch."""

    epoch: int = 0
    """Epochs done."""
    best: float = float("inf")
    """Smallest validation error."""
    best_epoch: int = 0
    metrics_bytes: int = 0
    """Length of metrics.jsonl; what a killed run wrote beyond is written again."""
    seconds: float = 0.0
    """Training time so far."""
    stepping: float = 0.0
    """Of it, training steps: waiting for data, moving it, and the step itself."""
    waiting: float = 0.0
    """Of these, waiting for data."""

    @property
    def waiting_share(self) -> float:
        """Of the training steps, the part that is waiting for data."""
        # Runs from before `stepping` was kept have the time of the whole training only.
        return self.waiting / max(self.stepping or self.seconds, 1e-9)


def save_model(path: Path, surrogate: nn.Module) -> None:
    """Weights and normalisation statistics."""
    write_tensors(path, surrogate.state_dict())


def save_checkpoint(
    path: Path,
    surrogate: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    scaler: torch.amp.GradScaler,
    progress: Standing,
) -> None:
    tensors: dict[str, Tensor] = {f"surrogate.{k}": v for k, v in surrogate.state_dict().items()}
    state = optimizer.state_dict()
    for index, values in state["state"].items():
        tensors |= {f"optimizer.{index}.{name}": torch.as_tensor(value) for name, value in values.items()}
    metadata = {
        "progress": asdict(progress),
        "groups": state["param_groups"],
        "scheduler": {k: v for k, v in scheduler.state_dict().items() if not k.startswith("_get")},
        "scaler": scaler.state_dict(),
    }
    write_tensors(path, tensors, {"state": json.dumps(metadata)})


def load_checkpoint(
    path: Path,
    surrogate: nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    scaler: torch.amp.GradScaler,
) -> Standing:
    with _reading(path) as file:
        metadata = json.loads(file.metadata()["state"])
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dictionary
    steps = scheduler.state_dict().get("total_steps")
    try:
        surrogate.load_state_dict(
            {k.removeprefix("surrogate."): v for k, v in tensors.items() if k.startswith("surrogate.")}
        )
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("optimizer."):
                _, index, name = key.split(".")
                state.setdefault(int(index), {})[name] = value
        optimizer.load_state_dict({"state": state, "param_groups": metadata["groups"]})
        scheduler.load_state_dict(metadata["scheduler"])
        scaler.load_state_dict(metadata["scaler"])
        standing = Standing(**metadata["progress"])
    except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise LrsaError(f"{path} is of another run: train again") from error
    if scheduler.state_dict().get("total_steps") != steps or not conforms(standing, Standing):
        raise LrsaError(f"{path} is of another run, or of other settings: train again")
    return standing


def load_standing(path: Path) -> Standing:
    """Of a checkpoint, only where the run stands."""
    with _reading(path) as file:
        return Standing(**json.loads(file.metadata()["state"])["progress"])


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise LrsaError(f"{path} is damaged: train again") from error


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Whole or not at all; a full disk names the file."""
    data = save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata)
    try:
        with atomic(path, len(data)) as temporary:
            temporary.write_bytes(data)
    except OSError as error:  # a full disk does not say which file it was
        raise OSError(error.errno, error.strerror, str(path)) from error
