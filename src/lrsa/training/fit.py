"""From data to a trained surrogate: what `lrsa train` and `lrsa.fit` both do."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lrsa.blocks import checkpoint_blocks, compile_blocks, repeated
from lrsa.console import bar, console
from lrsa.data.catalogue import Benchmark, Scale, get
from lrsa.data.making import make_dataset
from lrsa.data.normalise import Normaliser
from lrsa.data.prepare import Collator
from lrsa.data.store import Dataset, Selection, is_path
from lrsa.errors import LrsaError, nearest
from lrsa.evaluation.ranges import Ranges
from lrsa.files import alone
from lrsa.machine import check_device
from lrsa.matching import matched_width, parameter_count
from lrsa.registry import create_model, model_options
from lrsa.training.checkpoint import Progress
from lrsa.training.choose import SIZES, for_benchmark, for_data
from lrsa.training.config import DataConfig, RunConfig, TrainConfig, check_new, option_names, versions
from lrsa.training.loop import Trainer, case_loss
from lrsa.training.protocols import protocol
from lrsa.training.surrogate import Surrogate, load, requirements


def fit(
    data: str | Path,
    model: str = "lrsa",
    *,
    scale: str | None = None,
    out: str | Path | None = None,
    init: str | Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    options: Mapping[str, Any] | None = None,
    matched: bool = False,
    **train: Any,
) -> Surrogate:
    """Train a surrogate and return it; the run folder keeps everything.

    >>> surrogate = lrsa.fit("my.h5", epochs=50)
    >>> surrogate = lrsa.fit("darcy", scale="demo", options={"rank": 16})

    Args:
        data: A benchmark of the catalogue, or a file of `lrsa.write_dataset`.
        model: A registered model.
        scale: demo, cpu or paper, for a benchmark (default: cpu).
        out: The run folder (default: runs/<data>-<model>).
        init: A run whose weights to start from.
        device: cpu, cuda, ...
        threads: CPU threads (default: torch's choice).
        options: Options of the model, such as width or rank.
        matched: Choose the width that gives the model as many parameters as LRSA would have here.
        train: Fields of `TrainConfig`: epochs, batch_size, max_lr, ...
    """
    run = prepare(
        str(data),
        model,
        scale,
        None if out is None else Path(out),
        init,
        device,
        threads,
        options or {},
        train,
        matched,
    )
    train_run(run)
    return load(run)


def prepare(
    data: str,
    model: str,
    scale: str | None,
    out: Path | None,
    init: str | Path | None,
    device: str,
    threads: int | None,
    options: Mapping[str, Any],
    train: Mapping[str, Any],
    matched: bool = False,
) -> Path:
    """Make the data if need be, settle every choice, and write the configuration of the run."""
    _check_names(train, option_names(TrainConfig), "training")
    _check_names(options, model_options(model), f'the model "{model}"')
    check_device(device)
    if threads is not None and threads < 1:
        raise LrsaError(f"--threads must be at least 1, not {threads}")
    run = out or Path("runs") / f"{Path(data).stem}-{model}"
    check_new(run)
    benchmark = None if is_path(data) else get(data)
    chosen = benchmark.scale(scale or "cpu") if benchmark else None
    if benchmark is None and scale:
        raise LrsaError(f"--scale belongs to the benchmarks of the catalogue; {data} is a file")
    replace(TrainConfig(), **train)  # refused before the data is made, which takes long
    _check_sizes(options)
    seen = DataConfig(str(Path(data).resolve()))
    if benchmark and chosen:
        path = make_for_scale(benchmark, chosen).resolve()
        seen = DataConfig(str(path), chosen.samples, chosen.test, chosen.stride)
    cases = Dataset(Path(seen.path), "train")
    choose = partial(for_benchmark, benchmark, chosen) if benchmark and chosen else partial(for_data, cases)
    choice = choose(model)
    config = RunConfig(
        data=seen,
        schema=cases.schema,
        model=model,
        options={**choice.model, **options},
        train=replace(TrainConfig(), **{**choice.train, **train}),
        scale=(scale or "cpu") if benchmark else None,
        init=None if init is None else str(Path(init).resolve()),
        device=device,
        threads=threads,
        command=_command(),
        versions=versions(),
    )
    config = _with_dimensions(config)
    if matched:
        config = _matched(config, choose("lrsa").model)
    _check_first_step(surrogate_of(config), config)
    settled = {**config.options, **vars(config.train)}
    shown = ", ".join(f"{k} {settled[k]}" for k in (*choice.model, *choice.train))
    console.print(f"{data}: {choice.why}: {shown}")
    config.begin(run)
    return run


def train_run(run: Path) -> Progress:
    """Train the run of this folder, or go on with it; no other process may at the same time."""
    config = RunConfig.load(run)
    if config.threads:
        torch.set_num_threads(config.threads)
    with alone(run.resolve()), bar(f"Training {config.model} on {config.schema.name}") as report:
        trainer = trainer_of(run, config)
        Ranges.of(trainer.cases).save(run)
        return trainer.train(report)


def trainer_of(run: Path, config: RunConfig) -> Trainer:
    """The trainer of a run, before its first step."""
    surrogate = surrogate_of(config)
    if config.train.checkpoint:
        checkpoint_blocks(surrogate.model)
    if config.train.compile:
        compile_blocks(surrogate.model)
    training, validation = split_cases(config)
    return Trainer(
        run,
        config.train,
        surrogate,
        protocol(config.schema.protocol),
        training,
        validation,
        Collator.of(surrogate.model, config.train.weights),
        config.device,
    )


def surrogate_of(config: RunConfig) -> Surrogate:
    """The surrogate of a run before training."""
    torch.manual_seed(config.train.seed)
    training, _ = split_cases(config)
    normaliser = _normaliser(config, training)
    surrogate = Surrogate(create_model(config.model, **config.options), normaliser, config.schema)
    surrogate.chunk = config.train.chunk
    _check_data(surrogate.model, config, training)
    if config.init is not None:
        earlier = load(config.init).state_dict()
        try:
            surrogate.load_state_dict(earlier)
        except RuntimeError as error:
            raise LrsaError(f"the weights of {config.init} are of another model or other data") from error
    return surrogate


def split_cases(config: RunConfig) -> tuple[Selection, Selection]:
    """Training and validation cases; the test cases are never seen."""
    data = Dataset(Path(config.data.path), "train")
    count = min(config.data.samples or len(data), len(data))
    order = np.random.default_rng(config.train.seed).permutation(count)
    share = config.train.validation
    kept = min(max(1, round(share * count)), count - 1) if share else 0
    return (
        Selection(data, np.sort(order[kept:]), config.data.stride),
        Selection(data, np.sort(order[:kept]), config.data.stride),
    )


def make_for_scale(benchmark: Benchmark, scale: Scale) -> Path:
    """The file with the cases of a scale; what of them is not there yet is made."""
    path = benchmark.path(scale.fidelity)
    total = scale.samples + scale.test
    if not path.exists():
        console.print(f"Making {total} cases of {benchmark.name} ({scale.fidelity}), once: {path}")
    with bar(f"Making {benchmark.name}") as report:
        make_dataset(
            benchmark,
            scale.samples,
            scale.test,
            scale.fidelity,
            progress=lambda done, all: report(done, all, "cases"),
        )
    return path


def _with_dimensions(config: RunConfig) -> RunConfig:
    """The configuration with the sizes of the model that the data decides."""
    training, _ = split_cases(config)
    if training[0].u is None:
        raise LrsaError(f"{config.data.path} has no targets to learn")
    options = dict(config.options)
    conditioned = config.schema.protocol == "time-conditioned"
    if conditioned and "time" in model_options(config.model):
        options.setdefault("time", True)
    normaliser = _normaliser(config, training)
    options |= {"coord_dim": len(normaliser.x_axes), "out_features": len(normaliser.u_shift)}
    features, g = len(normaliser.f_shift), len(normaliser.g_shift)
    # What the model takes from the context is no feature of its points.
    needs = requirements(create_model(config.model, **options, in_features=features + g + int(conditioned)))
    features += (0 if "globals" in needs else g) + int(conditioned and "time" not in needs)
    return replace(config, options={**options, "in_features": features})


def _normaliser(config: RunConfig, cases: Selection) -> Normaliser:
    history = protocol(config.schema.protocol).history
    return Normaliser.of(cases, history, config.train.coordinates)


def _matched(config: RunConfig, of_lrsa: Mapping[str, Any]) -> RunConfig:
    """The configuration at the width that gives the model the parameters of LRSA on this data."""
    ours = _with_dimensions(replace(config, model="lrsa", options=of_lrsa)).options
    width = matched_width(config.model, config.options, parameter_count("lrsa", ours))
    return replace(config, options={**config.options, "width": width})


def _check_data(model: nn.Module, config: RunConfig, cases: Selection) -> None:
    """Refuse a model that needs what the data does not have, or that cannot do what is asked of it."""
    case, needs = cases[0], requirements(model)
    if "grid" in needs and (case.grid is None or len(case.grid) != 2):
        form = next((name for name in ("local", "structured") if config.options.get(name)), None)
        cure = f"--model.{form} {'pointwise' if form == 'local' else 'False'}" if form else "--model lrsa"
        what = "no structured grid" if case.grid is None else f"a grid of {len(case.grid)} axes"
        who = f'the model "{config.model}" needs a structured grid of two axes'
        raise LrsaError(f"{who}, and {config.schema.name} has {what}. Use {cure}")
    if "time" in needs and config.schema.protocol != "time-conditioned":
        who = f'the model "{config.model}" needs a time'
        raise LrsaError(f"{who}, and {config.schema.name} has none. Use --model.time False")
    for name in ("checkpoint", "compile"):
        if getattr(config.train, name) and config.train.chunk is not None:
            raise LrsaError(f"--train.{name} does nothing in chunks of points. Leave it or --train.chunk out")
        if getattr(config.train, name) and not repeated(model):
            raise LrsaError(f'"{config.model}" has no repeated layers for --train.{name}. Leave it out')


def _check_first_step(surrogate: Surrogate, config: RunConfig) -> None:
    """Refuse what would stop the training later: a loss or model that the cases do not fit, or NaN."""
    training, validation = split_cases(config)
    for i in range(len(validation)):  # the training cases were checked for their statistics
        validation[i].check_finite(validation.label(i))
    how = protocol(config.schema.protocol)
    if not how.examples(training[0]):
        raise LrsaError(f"{config.data.path} has no frames to learn")
    cases = [training[i] for i in range(min(config.train.batch_size, len(training)))]
    first = [how.example(case, 0) for case in cases if how.examples(case)]
    batch = Collator.of(surrogate.model, config.train.weights)(first)
    # Noise that is drawn in training stops the chunks. (Norms over a batch may need more than a first one.)
    surrogate.train(config.train.chunk is not None)
    # With gradients: what is too large to train on is refused before there is a run.
    how.loss(surrogate, batch, case_loss(config.train))


def _check_sizes(options: Mapping[str, Any]) -> None:
    for name in SIZES:
        if options.get(name, 1) < 1:
            raise LrsaError(f"--model.{name} must be at least 1, not {options[name]}")


def _command() -> str:
    """What was typed; `lrsa.fit` where it was Python."""
    program = Path(sys.argv[0]).name
    return shlex.join(["lrsa", *sys.argv[1:]]) if program in ("lrsa", "cli.py") else "lrsa.fit"


def _check_names(given: Mapping[str, Any], known: Any, what: str) -> None:
    for name in given:
        if name not in known:
            raise LrsaError(f'{what} has no option "{name}".{nearest(name, known)}')
