"""The record of a run (`config.json`), as far as prediction needs it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrsa.data.store import Schema
from lrsa.errors import LrsaError
from lrsa.surrogate.precision import Precision
from lrsa.typed import conforms

FORMAT = 1
FILE = "config.json"
TUNING = "tune.json"
"""What a folder has in which several models are tried; the best of them makes it a run."""


@dataclass(frozen=True)
class Record:
    """What a trained model is, on what it was trained, and how."""

    schema: Schema
    """Of the training data."""
    model: str
    options: Mapping[str, Any]
    weighted: bool | None
    """True: it was trained with quadrature weights that differ, and needs them. None: it takes them where
    they are given. False: it was told not to use any."""
    precision: Precision
    ensemble: int = 1
    """Members that share the folder."""
    kernels: bool = False
    """What a run was trained by computes its predictions, too: kernels, or plain torch."""

    @staticmethod
    def load(run: Path) -> "Record":
        values = read_config(run)
        with naming_damage(run):
            record = Record(
                schema=Schema.from_json(json.dumps(values["schema"])),
                model=values["model"],
                options=dict(values["options"]),
                weighted=(values.get("weighted") or None) if values["train"]["weights"] else False,
                precision=values["train"]["precision"],
                ensemble=values.get("ensemble", 1),
                kernels=bool(values["train"].get("kernels")),
            )
            if not conforms(record, Record) or not 1 <= record.ensemble <= 64:
                raise TypeError("an entry is of another type")
        return record


def read_config(run: Path) -> dict[str, Any]:
    """What a run's `config.json` says, if it is of this format."""
    path = run / FILE
    if not path.is_file() and (run / TUNING).is_file():
        raise LrsaError(f"{run} is not a run yet: its tuning is not finished. Run the same `lrsa tune` again")
    if not path.is_file():
        raise LrsaError(f"{run} is not a run: it has no {FILE}. `lrsa train` makes one")
    with naming_damage(run):
        values = json.loads(path.read_text())
        found = values.pop("format", None)
    if found != FORMAT:
        raise LrsaError(f"{run} was written in run format {found}; this lrsa reads {FORMAT}. Train again")
    return values


def unfinished(run: Path) -> list[str]:
    """A line for those who use the weights of a training that has not come to its end."""
    # Of a surrogate that comes with the package, or was copied without its checkpoint, there is no more.
    if not (run / "checkpoint").is_dir() or (run / "last.safetensors").exists():
        return []
    return [
        f"{run} is not trained to its end: these are its best weights so far. Go on with `lrsa resume {run}`"
    ]


@contextmanager
def naming_damage(run: Path) -> Iterator[None]:
    """A configuration that is not one is named as damaged, whatever it trips over."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, LrsaError) as error:
        raise LrsaError(f"{run / FILE} is damaged: train again ({error})") from error
