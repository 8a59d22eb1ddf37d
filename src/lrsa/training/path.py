"""What computes the blocks of a run, kernels where they can, else torch; its configuration says which."""

import logging
from dataclasses import replace
from pathlib import Path

from torch import nn

from lrsa.console import console
from lrsa.context import needs_of
from lrsa.kernels.stages import why_torch
from lrsa.training.checkpoint import STATE
from lrsa.training.config import RunConfig

log = logging.getLogger(__name__)


def on_a_path(config: RunConfig, model: nn.Module) -> RunConfig:
    """The configuration with what will compute the blocks of this model, and why."""
    why = why_torch(model, config.device, config.train.precision)
    for off, reason in (
        (config.train.kernels is False, "it was asked for"),
        (config.train.compile, "compiled blocks are torch's"),
        (config.train.recompute and needs_of(model).grid, "a grid is not computed again by chunks"),
    ):
        why = reason if off else why
    path = "kernels" if why is None else f"torch: {why}"
    return replace(config, train=replace(config.train, kernels=why is None), path=path)


def check_path(run: Path, config: RunConfig, model: nn.Module, first: bool) -> None:
    """Say what computes the blocks; and where a run goes on by torch that kernels began, that bits differ."""
    why = why_torch(model, config.device, config.train.precision) if config.train.kernels else None
    log.debug("blocks by %s", config.path or "torch: an older run" if why is None else f"torch: {why}")
    if why is not None and first and (run / STATE).exists():
        console.print(f"{run} was trained by kernels and goes on by torch ({why}): not to the same bits")
        replace(config, path=f"{config.path}, then torch: {why}").save(run)
