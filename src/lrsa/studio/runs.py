"""The runs of a folder: what each is, how good, and how far its training has come."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from lrsa.errors import LrsaError
from lrsa.files import is_made_now
from lrsa.studio.words import short
from lrsa.surrogate.record import FILE
from lrsa.training.budget import duration
from lrsa.training.checkpoint import STATE, Standing, load_standing
from lrsa.training.config import RunConfig

DEPTH = 3
"""Folders below the one that is asked for."""
TRACES = ("metrics.jsonl", "model.safetensors", "checkpoint")
"""What a folder has that was a run."""
WATCHED = (FILE, "evaluation.json", "metrics.jsonl", "model.safetensors", "last.safetensors", STATE)


@dataclass(frozen=True)
class Run:
    """A row of the table."""

    name: str
    path: Path
    state: str
    """training, done, stopped or broken."""
    reason: str = ""
    """Why it is broken."""
    data: str = ""
    model: str = ""
    error: float = math.nan
    """Mean relative L2 over the test cases, where it was evaluated; the best validation error before."""
    evaluated: bool = False
    nulls: dict[str, float] = field(default_factory=dict)
    parameters: int = 0
    seconds: float = 0.0
    epoch: int = 0
    epochs: int = 0
    left: float = 0.0
    """Seconds that the training still takes."""
    usable: bool = False
    """Whether there are weights to explore."""

    def row(self) -> dict[str, Any]:
        """As words, for the page."""
        known = not math.isnan(self.error)
        return {
            "name": self.name,
            "path": str(self.path),
            "state": self.state,
            "reason": self.reason,
            "data": self.data,
            "model": self.model,
            "error": short(self.error, 3) if known else "",
            "kind": "" if self.evaluated else "validation" if known else "not evaluated",
            "nulls": [f"{name} {short(value, 3)}" for name, value in self.nulls.items()],
            "parameters": f"{self.parameters:,}".replace(",", " ") if self.parameters else "",
            "time": duration(self.seconds) if self.seconds else "",
            "epoch": self.epoch,
            "epochs": self.epochs,
            "done": round(100 * self.epoch / self.epochs) if self.epochs else 0,
            "left": f"{duration(self.left)} left" if self.state == "training" and self.epoch else "",
            "usable": self.usable,
        }


class Runs:
    """Those of a folder, read again where a file of theirs has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[Any, Run]] = {}

    def table(self) -> list[Run]:
        """Every run, in the order of their names; those in training first."""
        rows = [self._run(path) for path in sorted(self._paths(self.folder, DEPTH))]
        return sorted(rows, key=lambda run: run.state != "training")

    def _run(self, path: Path) -> Run:
        stamp = (tuple(_changed(path / name) for name in WATCHED), is_made_now(path.resolve()))
        if path not in self._known or self._known[path][0] != stamp or stamp[1]:
            self._known[path] = stamp, self._read(path, stamp[1])
        return self._known[path][1]

    def _read(self, path: Path, training: bool) -> Run:
        name = path.relative_to(self.folder).as_posix() if path != self.folder else path.resolve().name
        try:
            return _read(name, path, training)
        except LrsaError as error:
            return Run(name, path, "broken", reason=str(error))

    def _paths(self, folder: Path, depth: int) -> Iterator[Path]:
        if (folder / FILE).is_file() or any((folder / trace).exists() for trace in TRACES):
            yield folder
        elif depth:
            for inner in folder.iterdir():
                if inner.is_dir() and not inner.name.startswith("."):
                    yield from self._paths(inner, depth - 1)


def _read(name: str, path: Path, training: bool) -> Run:
    config = RunConfig.load(path)
    standing = load_standing(path / STATE) if (path / STATE).exists() else Standing()
    evaluation = _evaluation(path)
    error = evaluation.get("relative_l2")
    error = error if error is not None else standing.best if standing.best_epoch else math.nan
    done = standing.epoch >= config.train.epochs
    usable = (path / "model.safetensors").exists()
    return Run(
        name,
        path,
        "training" if training and not done else "done" if done and usable else "stopped",
        data=f"{config.schema.name} ({config.schema.source})",
        model=config.model,
        error=float(error),
        evaluated=evaluation.get("relative_l2") is not None,
        nulls={k: v for k, v in evaluation.get("nulls", {}).items() if v is not None},
        parameters=_parameters(path),
        seconds=standing.seconds,
        epoch=standing.epoch,
        epochs=config.train.epochs,
        left=_left(path, standing, config.train.epochs),
        usable=usable,
    )


def _left(path: Path, standing: Standing, epochs: int) -> float:
    """By the mean time of the epochs so far, less what has passed of the next one."""
    if not standing.epoch:
        return 0.0
    each = standing.seconds / standing.epoch
    passed = min(max(time.time() - (path / STATE).stat().st_mtime, 0.0), each)
    return max(each * (epochs - standing.epoch) - passed, 0.0)


def _evaluation(path: Path) -> dict[str, Any]:
    try:
        found = json.loads((path / "evaluation.json").read_text())
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _parameters(path: Path) -> int:
    """By the header of the weights, which are not read."""
    for name, prefix in (("model.safetensors", "model."), (str(STATE), "surrogate.model.")):
        try:
            with safe_open(path / name, "pt") as file:
                keys: Sequence[str] = [key for key in file.keys() if key.startswith(prefix)]  # noqa: SIM118
                return sum(math.prod(file.get_slice(key).get_shape()) for key in keys)
        except OSError:
            continue
        except SafetensorError as error:
            raise LrsaError(f"{path / name} is damaged ({error}). Train again") from error
    return 0


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
