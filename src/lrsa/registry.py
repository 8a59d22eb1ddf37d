"""One registry for LRSA and every baseline: any model, by name, in every command."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from lrsa.errors import LrsaError, nearest

DATA_ARGUMENTS = ("coord_dim", "in_features", "out_features")
"""What the data decides; every model's constructor takes them first."""


@dataclass(frozen=True)
class Entry:
    """A registered model: its class, or `module:Class`, imported when asked for, and its presets."""

    target: str | Callable[..., nn.Module]
    presets: str | Mapping[str, Any] = field(default_factory=dict)

    def build(self) -> Callable[..., nn.Module]:
        return _import(self.target) if isinstance(self.target, str) else self.target

    def preset(self, name: str) -> Mapping[str, Any]:
        rows = _import(self.presets) if isinstance(self.presets, str) else self.presets
        if name not in rows:
            raise LrsaError(
                f'no preset "{name}".{nearest(name, rows)} There are: {", ".join(rows) or "none"}'
            )
        return getattr(rows[name], "model", rows[name])


_MODELS: dict[str, Entry] = {
    "lrsa": Entry("lrsa.operator:LRSA", "lrsa.presets:PRESETS"),
}


def register(
    name: str, model: Callable[..., nn.Module], presets: Mapping[str, Mapping[str, Any]] | None = None
) -> None:
    """Make `model(coord_dim, in_features, out_features, ...)` known as `name` to every command.

    Its further arguments, annotated and with defaults, become its options; `presets` names sets of them.
    """
    missing = [word for word in DATA_ARGUMENTS if word not in inspect.signature(model).parameters]
    if missing:
        raise LrsaError(
            f'the model "{name}" must take {", ".join(DATA_ARGUMENTS)}; it lacks {", ".join(missing)}'
        )
    _MODELS[name] = Entry(model, presets or {})


def list_models() -> list[str]:
    """The names of all models."""
    return sorted(_MODELS)


def create_model(name: str, *, preset: str | None = None, **options: Any) -> nn.Module:
    """The model `name`, from a preset (a row of its paper's configuration table), options, or both.

    >>> create_model("lrsa", coord_dim=2, in_features=1, out_features=1, width=64)
    >>> create_model("lrsa", preset="elasticity")
    """
    entry = get(name)
    options = {**(entry.preset(preset) if preset else {}), **options}
    known = inspect.signature(entry.build()).parameters
    for option in options:
        if option not in known:
            raise LrsaError(f'the model "{name}" has no option "{option}".{nearest(option, known)}')
    for word in DATA_ARGUMENTS:
        if word not in options:
            raise LrsaError(f'the model "{name}" needs {word}, or a preset')
    return entry.build()(**options)


def get(name: str) -> Entry:
    """The entry of a model, or a line that names the nearest one."""
    if name not in _MODELS:
        raise LrsaError(f'no model "{name}".{nearest(name, _MODELS)} There are: {", ".join(list_models())}')
    return _MODELS[name]


def model_options(name: str) -> dict[str, inspect.Parameter]:
    """The options of a model beyond what the data decides."""
    parameters = inspect.signature(get(name).build()).parameters
    return {key: value for key, value in parameters.items() if key not in DATA_ARGUMENTS}


def _import(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
