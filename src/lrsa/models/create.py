"""A model by name: from options, a preset, or both."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from lrsa.models.matching import matched_preset
from lrsa.models.registry import build, get

MATCHED = "-matched"
"""Behind the name of a preset: the width is that at which the model has the parameters of LRSA's preset."""


def create_model(name: str, *, preset: str | None = None, **options: Any) -> nn.Module:
    """The model `name`, from a preset (a row of its paper's configuration table), options, or both.

    >>> create_model("lrsa", coord_dim=2, in_features=1, out_features=1, width=64)
    >>> create_model("lrsa", preset="elasticity")
    >>> create_model("transolver", preset="elasticity-matched")  # with the parameters of LRSA's preset
    """
    return build(name, **{**(_preset(name, preset) if preset else {}), **options})


def _preset(name: str, preset: str) -> Mapping[str, Any]:
    if preset.endswith(MATCHED):
        return matched_preset(name, preset.removesuffix(MATCHED))
    return get(name).preset(preset)
