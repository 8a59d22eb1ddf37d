"""From the configuration of a run to its surrogate and its trainer."""

import sys
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import nn

from lrsa.context import needs_of
from lrsa.data.normalise import Normaliser
from lrsa.data.prepare import Collator
from lrsa.data.store import Dataset, Selection
from lrsa.errors import LrsaError
from lrsa.models.create import create_model
from lrsa.models.pod import FittedModel
from lrsa.objectives.protocols import Protocol, Windows
from lrsa.parallel.ranks import Ranks
from lrsa.streaming.stream import check_streams
from lrsa.surrogate.surrogate import Surrogate, load
from lrsa.training.config import RunConfig
from lrsa.training.fitted import check_fit
from lrsa.training.loop import Trainer
from lrsa.training.repeated_layers import compile_blocks, recompute_blocks, repeated
from lrsa.training.survey import normaliser_of, split_cases


def trainer_of(
    run: Path, config: RunConfig, normaliser: Normaliser | None = None, ranks: Ranks | None = None
) -> Trainer:
    """The trainer of a run, before its first step; of one process of several, where there are ranks."""
    surrogate = surrogate_of(config, normaliser or normaliser_of(run, config))
    shared = None if ranks is None else ranks.shared
    if config.train.recompute and (config.train.kernels or shared):
        surrogate.chunk = sys.maxsize  # one chunk: of a walk by chunks the input of each block is kept
    elif config.train.recompute:
        recompute_blocks(surrogate.model)
    if config.train.compile:
        compile_blocks(surrogate.model)
    training, validation = split_cases(config)
    if shared is not None:
        check_shared(surrogate.model, config, shared.size)
    return Trainer(
        run,
        config.train,
        surrogate,
        protocol_of(surrogate, config),
        training,
        validation,
        Collator.of(surrogate.model, config.train.weights, surrogate.normaliser),
        config.device,
        ranks,
    )


def protocol_of(surrogate: Surrogate, config: RunConfig) -> Protocol:
    """How it is trained: as it predicts, but where a step takes single frames."""
    if not config.train.windows:
        if config.train.noise:
            raise LrsaError(
                "--train.noise is for steps of single frames: add --train.windows, or leave it out"
            )
        return surrogate.protocol
    if config.schema.protocol != "autoregressive":
        what = f"{config.schema.name} is {config.schema.protocol}"
        raise LrsaError(f"--train.windows is for data of frames that follow from each other, and {what}")
    return Windows()


def surrogate_of(config: RunConfig, normaliser: Normaliser) -> Surrogate:
    """The surrogate of a run before training."""
    torch.manual_seed(config.train.seed)
    training, validation = split_cases(config)
    model = create_model(config.model, **config.options)
    if needs_of(model).time_axis:
        normaliser.frames = torch.tensor(common_times(config, training, validation))
    surrogate = Surrogate(model, normaliser, config.schema, config.weighted, config.train.precision)
    surrogate.chunk, surrogate.kernels = config.train.chunk, bool(config.train.kernels)
    _check_data(surrogate.model, config, training)
    if config.init is not None:
        earlier = load(config.init).state_dict()
        try:
            surrogate.load_state_dict(earlier)
        except RuntimeError as error:
            raise LrsaError(f"the weights of {config.init} are of another model or other data") from error
    return surrogate


def _check_data(model: nn.Module, config: RunConfig, cases: Selection) -> None:
    """Refuse a model that needs what the data does not have, or that cannot do what is asked of it."""
    if isinstance(model, FittedModel):
        check_fit(config, cases)
    case, needs = cases[0], needs_of(model)
    if needs.grid and (case.grid is None or len(case.grid) != 2):
        form = next((name for name in ("local", "structured") if config.options.get(name)), None)
        cure = f"--model.{form} {'pointwise' if form == 'local' else 'False'}" if form else "--model lrsa"
        what = "no structured grid" if case.grid is None else f"a grid of {len(case.grid)} axes"
        who = f'the model "{config.model}" needs a structured grid of two axes'
        raise LrsaError(f"{who}, and {config.schema.name} has {what}. Use {cure}")
    if needs.time and config.schema.protocol != "time-conditioned":
        who = f'the model "{config.model}" needs a time'
        raise LrsaError(f"{who}, and {config.schema.name} has none. Use --model.time False")
    if config.train.points is not None and (needs.grid or needs.geometry or needs.sensors or needs.domains):
        raise LrsaError(f'"{config.model}" needs all points of a case. Use --train.points None')
    for name in ("recompute", "compile"):
        if getattr(config.train, name) and config.train.chunk is not None:
            raise LrsaError(f"--train.{name} does nothing in chunks of points. Leave it or --train.chunk out")
        if getattr(config.train, name) and not repeated(model):
            raise LrsaError(f'"{config.model}" has no repeated layers for --train.{name}. Leave it out')


def common_times(config: RunConfig, *cases: Selection) -> np.ndarray:
    """(T,) the times of all cases, for a model that has them as an axis."""
    times = cases[0][0].times
    who, cure = f'the model "{config.model}" has time as an axis', "Use --model.time-axis False"
    if config.schema.protocol != "time-conditioned" or times is None:
        raise LrsaError(f"{who}, and {config.schema.name} has no times that are asked for. {cure}")
    if not all(np.array_equal(np.asarray(case.times), times) for case in chain(*cases)):
        raise LrsaError(f"{who}, and the cases of {config.schema.name} differ in their times. {cure}")
    return times


def check_shared(model: nn.Module, config: RunConfig, processes: int) -> None:
    """Refuse what needs all points of a case in one process, and more processes than points."""
    if config.train.gradient_weight:
        raise LrsaError("the gradient term needs the whole grid. Set --train.gradient-weight 0")
    if config.train.compile:
        raise LrsaError(
            "what is compiled are whole blocks, which processes interrupt. Leave out --train.compile"
        )
    try:
        check_streams(model)
    except LrsaError as error:
        raise LrsaError(f'the points of a case cannot be shared with "{config.model}": {error}') from error
    training, _ = split_cases(config)
    assert isinstance(training.cases, Dataset)
    smallest = training[int(training.cases.sizes[training.chosen].argmin())]
    if (count := min(len(smallest), config.train.points or len(smallest))) < processes:
        raise LrsaError(f"{processes} processes cannot share a case of {count} points. Lower --shard-points")
