"""Equal budgets: the width at which a model has as many parameters as another."""

import math
from collections.abc import Mapping
from typing import Any

import torch

from lrsa.errors import LrsaError
from lrsa.models.registry import DATA_ARGUMENTS, build, get, model_options

STEP = 8
"""Widths are multiples of this, and of the heads."""
WIDEST = 4096


def parameter_count(model: str, options: Mapping[str, Any]) -> int:
    """Of a model that is never filled with numbers."""
    with torch.device("meta"):
        return sum(p.numel() for p in build(model, **options).parameters())


def matched_preset(model: str, benchmark: str) -> dict[str, Any]:
    """The published options of the model for the benchmark at the matched width.

    Where none are published: its own, at the shape of the data. A mixer in our backbone takes LRSA's.
    """
    ours = get("lrsa").preset(benchmark)
    options_of = model_options(model).keys()
    taken = options_of if get(model).family == "backbone" else {"time"} & options_of
    known = (*DATA_ARGUMENTS, *taken)
    options: Mapping[str, Any] = {name: value for name, value in ours.items() if name in known}
    if benchmark in get(model).all_presets():
        options = get(model).preset(benchmark)
    return {**options, "width": matched_width(model, options, parameter_count("lrsa", ours))}


def matched_width(model: str, options: Mapping[str, Any], count: int) -> int:
    """The width at which the model, otherwise of these options, comes nearest to `count` parameters.

    Parameters grow with the width, so halving the interval finds it.
    """
    if "width" not in model_options(model):
        raise LrsaError(f'the model "{model}" has no option "width" to match its parameters by')
    unit = math.lcm(STEP, int(options.get("heads", _default_heads(model))))

    def count_at(multiple: int) -> int:
        return parameter_count(model, {**options, "width": unit * multiple})

    low, high = 1, WIDEST // unit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count_at(middle) <= count else (low, middle)
    return unit * min((low, high), key=lambda multiple: abs(count_at(multiple) - count))


def _default_heads(model: str) -> int:
    heads = model_options(model).get("heads")
    return 1 if heads is None else int(heads.default)
