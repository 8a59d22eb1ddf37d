"""Options of speed and memory that act on the repeated layers of any model, from outside it.

Both leave the parameters, their names and the results as they are (compilation up to rounding).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def compile_blocks(model: nn.Module, backend: str = "inductor") -> nn.Module:
    """Compile the repeated layers of `model` in place: once for all depths and numbers of points.

    It happens at the first training step and again at the first prediction, for batches of one and of more,
    takes a minute or so each time, and on the CPU needs a C++ compiler.
    """
    for block in repeated(model):
        block.forward = partial(_unviewed, torch.compile(block.forward, dynamic=True, backend=backend))
    return model


def recompute_blocks(model: nn.Module) -> nn.Module:
    """Keep only the input of each repeated layer for the backward pass, and compute the rest again there.

    Layers with running statistics stay as they are: computing them again would count every batch twice.
    """
    for block in repeated(model):
        if not any(isinstance(part, _BatchNorm) and part.track_running_stats for part in block.modules()):
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    return model


def repeated(model: nn.Module) -> list[nn.Module]:
    """The blocks of an operator; of another model, the layers of its outermost lists."""
    if isinstance(blocks := getattr(model, "blocks", None), nn.ModuleList):
        return list(blocks)
    found: list[nn.Module] = []
    for child in model.children():
        found += list(child) if isinstance(child, nn.ModuleList) else repeated(child)
    return found


def _unviewed(compiled: Callable[..., Any], h: Tensor, *rest: Any) -> Any:
    # The lift returns a view, a block does not: the first block would be compiled apart from the others.
    return compiled(h.clone() if h._is_view() else h, *rest)
