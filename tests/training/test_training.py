"""Training: it learns, it is repeatable, it keeps its cases apart, and it takes every kind of data."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from small import (
    OPTIONS,
    WORDS,
    assert_bit_equal,
    copy_run,
    differ,
    frames,
    grid_cases,
    quick,
    ragged_cases,
    say,
    weights,
    write,
)
from torch import Tensor, nn

import lrsa
from lrsa.cli.program import main
from lrsa.context import Context, Needs
from lrsa.data.batch import AHEAD, Batch
from lrsa.data.prepare import Collator
from lrsa.data.store import Dataset
from lrsa.errors import Failure, LrsaError
from lrsa.evaluation.evaluate import evaluate
from lrsa.models.attention import LowRankSpatialAttention
from lrsa.models.registry import get, model_options, networks
from lrsa.objectives.protocols import protocol
from lrsa.pointset import Names, PointSet
from lrsa.training.budget import TIMED, WARM, Pace
from lrsa.training.checkpoint import STATE, load_standing
from lrsa.training.config import DataConfig, RunConfig, TrainConfig
from lrsa.training.fit import prepare, train_run
from lrsa.training.loop import Trainer, case_errors
from lrsa.training.survey import Survey, split_cases

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")


class PointMLP(nn.Module):
    """What a user may bring: no base class of ours, options annotated or not."""

    def __init__(self, coord_dim: int, in_features: int, out_features: int, hidden: int = 8, gain=1.0):
        """A multilayer perceptron at every point.

        Args:
            hidden: Channels of the hidden layer.
            gain: A factor before the last layer.
        """
        super().__init__()
        self.first = nn.Linear(coord_dim + in_features, hidden)
        self.last = nn.Linear(hidden, out_features)
        self.gain = gain

    def forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
        h = self.first(x if f is None else torch.cat([x, f], dim=-1)).tanh()
        return self.last(self.gain * h)


def config_of(run: str) -> RunConfig:
    return RunConfig.load(Path(run))


def test_training_gets_far_below_the_null_baselines() -> None:
    data = write(Path("easy.h5"), grid_cases(48, side=6), grid_cases(6, seed=1, side=6))
    quick(data, "run", epochs=20, max_lr=5e-3, options={"width": 32, "heads": 4})
    found = evaluate(Path("run"))
    assert found.relative_l2 < 0.25 * found.nulls["mean field"]
    assert found.relative_l2 < 0.4 * found.nulls["nearest case"]
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [row["epoch"] for row in rows] == list(range(1, 21))
    assert rows[-1]["loss"] < 0.4 * rows[0]["loss"]


def test_fit_and_the_command_give_the_same_bits(trained: Path, data: Path) -> None:
    quick(data, "run", epochs=3, threads=1)
    for kind in ("model", "last"):
        assert_bit_equal(weights(Path("run"), kind), weights(trained, kind))
    assert Path("run/metrics.jsonl").read_text() == (trained / "metrics.jsonl").read_text()


def test_the_seed_decides_everything(data: Path) -> None:
    for run, seed in (("one", 0), ("again", 0), ("other", 1)):
        quick(data, run, seed=seed, epochs=1)
    assert_bit_equal(weights(Path("one")), weights(Path("again")))
    assert differ(weights(Path("one")), weights(Path("other")))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Data sets of so many training cases."""
    folder = tmp_path_factory.mktemp("counted")
    return {n: write(folder / f"{n}.h5", grid_cases(n, side=2)) for n in (1, 2, 3, 10, 37)}


@given(
    count=st.sampled_from([1, 2, 3, 10, 37]),
    samples=st.none() | st.integers(1, 50),
    validation=st.sampled_from([0, 0.01, 0.1, 0.5, 0.9, 0.95, 0.999]),
    seed=st.integers(0, 3),
)
def test_no_case_is_both_trained_on_and_validated(
    counted: dict[int, Path], count: int, samples: int | None, validation: float, seed: int
) -> None:
    path = str(counted[count])
    train = TrainConfig(validation=validation, seed=seed)
    config = RunConfig(DataConfig(path, samples), Dataset(Path(path), "train").schema, "lrsa", {}, train)
    ours, theirs = (set(part.chosen.tolist()) for part in split_cases(config))  # pyright: ignore[reportAttributeAccessIssue]
    assert not ours & theirs
    assert ours | theirs == set(range(min(samples or count, count)))
    assert ours
    assert bool(theirs) == (validation > 0 and min(samples or count, count) > 1)


def test_the_test_cases_are_never_read_in_training(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[str, int]] = []
    whole = Dataset.__getitem__

    def watched(self: Dataset, index: int) -> PointSet:
        read.append((self.split, index))
        return whole(self, index)

    monkeypatch.setattr(Dataset, "__getitem__", watched)
    quick(data, "run")
    assert {split for split, _ in read} == {"train"}


@pytest.fixture
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """No steps but those of the training itself."""
    monkeypatch.setattr(Pace, "of", lambda trainer: Pace(1e-3))


@pytest.mark.usefixtures("_unmeasured")
def test_batches_hold_training_cases_only(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[Tensor] = []
    step = Trainer.step

    def watched(self: Trainer, batch: Batch) -> float:
        learned.extend(batch.u)  # pyright: ignore[reportArgumentType]
        return step(self, batch)

    monkeypatch.setattr(Trainer, "step", watched)
    quick(data, "run", epochs=2, validation=0.3, batch_size=3)
    training, validation = split_cases(config_of("run"))
    expected = [case.u.tobytes() for case in training]  # pyright: ignore[reportOptionalMemberAccess]
    seen = [u.numpy().tobytes() for u in learned]
    assert sorted(seen) == sorted(expected * 2)
    assert not {case.u.tobytes() for case in validation} & set(seen)  # pyright: ignore[reportOptionalMemberAccess]


def test_statistics_are_of_the_training_cases_only(data: Path) -> None:
    quick(data, "run", validation=0.3, epochs=1)
    config = config_of("run")
    before = Survey.of(config).normaliser.state_dict()
    kept = split_cases(config)[1].chosen
    cases = list(Dataset(data, "train"))
    for i in kept:
        cases[int(i)] = replace(cases[int(i)], u=100 * cases[int(i)].u, f=100 * cases[int(i)].f)  # pyright: ignore[reportOperatorIssue]
    other = write(Path("other.h5"), cases, grid_cases(1))
    after = Survey.of(replace(config, data=DataConfig(str(other)))).normaliser.state_dict()
    assert_bit_equal(before, after)


def test_the_best_and_the_last_epoch_are_both_kept(data: Path) -> None:
    """The error of either, measured again, is that of its row in the log."""
    quick(data, "run", epochs=6, validation=0.3, max_lr=0.1)
    config, rows = config_of("run"), Path("run/metrics.jsonl").read_text().splitlines()
    logged = [json.loads(row)["validation"] for row in rows]
    assert min(logged) < logged[-1], "this seed should have its best epoch before the last"
    for kind, expected in (("best", min(logged)), ("last", logged[-1])):
        surrogate = lrsa.load("run", kind)  # pyright: ignore[reportArgumentType]
        _, validation = split_cases(config)
        collate = Collator.of(surrogate.model, True)
        errors = case_errors(surrogate, protocol("static"), validation, collate, config.train, "cpu")
        assert float(errors.mean()) == expected


def test_without_validation_the_last_epoch_is_kept(data: Path) -> None:
    quick(data, "run", validation=0)
    assert_bit_equal(weights(Path("run")), weights(Path("run"), "last"))
    assert "validation" not in json.loads(Path("run/metrics.jsonl").read_text().splitlines()[0])


def test_where_no_validation_error_is_finite_the_last_epoch_is_kept(data: Path) -> None:
    class NanInValidation(PointMLP):
        def forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
            u = super().forward(x, f, context)
            return u if self.training else u * float("nan")

    lrsa.register("nan-in-validation", NanInValidation)
    lrsa.fit(data, "nan-in-validation", out="run", epochs=2)
    rows = [json.loads(row) for row in Path("run/metrics.jsonl").read_text().splitlines()]
    assert np.isnan([row["validation"] for row in rows]).all()
    assert_bit_equal(weights(Path("run")), weights(Path("run"), "last"))


@pytest.mark.usefixtures("_unmeasured")
def test_a_loss_that_is_not_a_number_is_a_clear_failure(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Breaks(PointMLP):
        steps = 0

        def forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
            self.steps += self.training
            return super().forward(x, f, context) * (float("nan") if self.steps > 4 else 1)

    lrsa.register("breaks", Breaks)
    with pytest.raises(Failure, match=r"the loss became nan in epoch 2\. Lower --train.max-lr"):
        lrsa.fit(data, "breaks", out="run", epochs=3)
    assert main(["train", str(data), "--model", "breaks", "--out", "again", "--train.epochs", "3"]) == 1
    line = capsys.readouterr().err
    assert line.startswith("lrsa: the loss became nan in epoch 2")
    assert line.count("\n") == 1


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains_weights_of_full_precision(data: Path, precision: str) -> None:
    quick(data, "run", epochs=6, precision=precision, max_lr=5e-3)
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["loss"] < 0.9 * rows[0]["loss"]
    kept = weights(Path("run"))
    assert all(v.dtype == torch.float32 for v in kept.values() if v.is_floating_point())
    quick(data, "full", epochs=6, max_lr=5e-3)
    assert differ(kept, weights(Path("full")))


def test_init_starts_from_the_weights_of_another_run(trained: Path, data: Path) -> None:
    x, f = grid_cases(1)[0].x, grid_cases(1)[0].f
    settings = {"epochs": 1, "max_lr": 1e-12, "weight_decay": 0, "recipe": "paper"}
    ours = quick(data, "run", init=trained, **settings).predict(x, f)
    np.testing.assert_allclose(ours, lrsa.load(trained, "best").predict(x, f), atol=1e-6)
    with pytest.raises(LrsaError, match="of another model or other data"):
        quick(data, "wider", init=trained, options={"width": 32})
    assert not Path("wider").exists()


def test_the_gradient_term_takes_part_on_grids(data: Path) -> None:
    for run, weight in (("with", 0.5), ("without", 0.0)):
        quick(data, run, epochs=1, gradient_weight=weight)
    assert differ(weights(Path("with")), weights(Path("without")))


def test_the_gradient_term_is_refused_on_points_before_anything_is_written() -> None:
    points = write(Path("points.h5"), ragged_cases(5))
    with pytest.raises(LrsaError, match=r"structured grid.*gradient-weight 0"):
        quick(points, "run", gradient_weight=0.1)
    assert not Path("run").exists()


def with_weights(cases: list[PointSet]) -> list[PointSet]:
    rng = np.random.default_rng(5)
    return [replace(case, weights=rng.uniform(0.1, 2, len(case)).astype(np.float32)) for case in cases]


def test_quadrature_weights_are_used_unless_refused_and_the_run_knows() -> None:
    plain, weighted = grid_cases(6), with_weights(grid_cases(6))
    write(Path("plain.h5"), plain, grid_cases(2, seed=1))
    write(Path("weighted.h5"), weighted, with_weights(grid_cases(2, seed=1)))
    for run, data, used in (
        ("used", "weighted", True),
        ("refused", "weighted", False),
        ("none", "plain", True),
    ):
        quick(Path(f"{data}.h5"), run, weights=used)
        assert config_of(run).train.weights == used
    assert_bit_equal(weights(Path("refused")), weights(Path("none")))
    assert differ(weights(Path("used")), weights(Path("none")))
    errors = {run: evaluate(Path(run), "weighted.h5").relative_l2 for run in ("used", "refused", "none")}
    assert errors["refused"] == evaluate(Path("refused"), "plain.h5").relative_l2
    with pytest.raises(LrsaError, match="trained with quadrature weights, and the case has neither"):
        evaluate(Path("used"), "plain.h5")


@pytest.mark.parametrize("model", [name for name in networks() if "points" in get(name).data])
def test_every_model_of_points_trains_on_cases_of_different_sizes(model: str) -> None:
    data = write(Path("ragged.h5"), ragged_cases(8), ragged_cases(3, seed=1))
    sizes = {**OPTIONS, "modes": (4, 4) if model == "geo-fno" else 8}
    if model == "deeponet":
        sizes["width"] = 64  # a sum of 16 products fits next to nothing of 40 points
    options = {name: value for name, value in sizes.items() if name in model_options(model)}
    surrogate = lrsa.fit(
        data, model, out="run", recipe="paper", epochs=15, max_lr=5e-3, batch_size=3, options=options
    )
    losses = [json.loads(row)["loss"] for row in Path("run/metrics.jsonl").read_text().splitlines()]
    assert losses[-1] < 0.9 * losses[0]
    points = [len(case) for case in ragged_cases(3, seed=1)]
    assert evaluate(Path("run")).points == f"{min(points)} to {max(points)}"
    case = ragged_cases(1, seed=1)[0]
    again = surrogate.predict(case)
    np.testing.assert_allclose(surrogate.predict(case.x, case.f), again, rtol=1e-4, atol=1e-5)


def driven_cases(count: int, seed: int) -> list[PointSet]:
    """u = f + 3 g₀: not to be known without the parameter of the case."""
    rng = np.random.default_rng(seed)
    names = Names(("x", "y"), ("a",), ("p",), ("gain", "idle"))
    made = []
    for case in grid_cases(count, seed, side=4):
        g = rng.uniform(-1, 1, 2).astype(np.float32)
        made.append(replace(case, u=case.f + 3 * g[0], globals=g, names=names))
    return made


def test_parameters_of_the_case_become_features() -> None:
    data = write(Path("driven.h5"), driven_cases(24, 0), driven_cases(4, 1))
    surrogate = quick(data, "run", epochs=15, max_lr=5e-3)
    assert config_of("run").options["in_features"] == 3
    found = evaluate(Path("run"))
    assert found.relative_l2 < 0.6 * min(found.nulls[name] for name in ("mean field", "nearest case"))
    case = driven_cases(1, 2)[0]
    assert case.globals is not None
    ours, turned = (surrogate.predict(case.x, case.f, globals=g) for g in (case.globals, -case.globals))
    assert np.linalg.norm(ours - turned) > 0.3 * np.linalg.norm(ours)
    with pytest.raises(LrsaError, match=r"2 globals \(gain, idle\), but 0 are given"):
        surrogate.predict(case.x, case.f)


def rising(case: PointSet) -> PointSet:
    """u(t) = u + 3 t at four times: not to be known without the time."""
    times = np.linspace(0, 1, 4, dtype=np.float32)
    return replace(case, u=case.u + 3 * times[:, None, None], times=times)  # pyright: ignore[reportOptionalOperand]


@pytest.mark.parametrize("own_time", [True, False])
def test_time_conditioned_cases_are_learned_at_every_time(own_time: bool) -> None:
    train, test = ([rising(case) for case in grid_cases(n, seed, side=4)] for n, seed in ((12, 0), (2, 1)))
    data = write(Path("timed.h5"), train, test, "time-conditioned")
    surrogate = quick(data, "run", epochs=8, max_lr=1e-2, options={"time": own_time})
    assert config_of("run").options["in_features"] == (1 if own_time else 2)
    found = evaluate(Path("run"))
    assert found.relative_l2 < 0.7 * min(found.nulls[name] for name in ("mean field", "nearest case"))
    early, late = (surrogate.predict(test[0].x, test[0].f, time=t) for t in (0.0, 1.0))
    assert early.shape == (16, 1)
    assert (late - early).min() > 1


@pytest.mark.usefixtures("_unmeasured")
def test_time_conditioned_cases_train_on_every_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once an epoch, each with its time."""
    learned: list[tuple[float, bytes]] = []
    step = Trainer.step

    def watched(self: Trainer, batch: Batch) -> float:
        times = batch.context.need("time", "it").tolist()
        learned.extend((t, u.numpy().tobytes()) for t, u in zip(times, batch.u, strict=True))  # pyright: ignore[reportArgumentType]
        return step(self, batch)

    monkeypatch.setattr(Trainer, "step", watched)
    data = write(Path("timed.h5"), [rising(case) for case in grid_cases(5, side=4)], (), "time-conditioned")
    quick(data, "run", epochs=2, batch_size=3)
    training, _ = split_cases(config_of("run"))
    expected = [(float(t), u.tobytes()) for case in training for t, u in zip(case.times, case.u, strict=True)]  # pyright: ignore[reportArgumentType]
    assert sorted(learned) == sorted(2 * expected)


@pytest.mark.parametrize("windows", [False, True], ids=["all frames", "single frames"])
def test_autoregressive_cases_train_and_roll_out(windows: bool) -> None:
    cases = [frames(case, 13) for case in grid_cases(6, side=4)]
    data = write(Path("rolling.h5"), cases, cases[:2], "autoregressive")
    quick(data, "run", epochs=8, max_lr=5e-3, windows=windows, options={"depth": 2})
    assert config_of("run").options["in_features"] == 11
    found = evaluate(Path("run"))
    assert found.relative_l2 < 0.5 * found.nulls["mean field"]


@pytest.mark.parametrize(
    ("kind", "count", "words"),
    [("autoregressive", 10, "more than 10 frames"), ("static", 4, "protocol is static")],
)
def test_frames_that_the_protocol_cannot_use_are_refused(kind: str, count: int, words: str) -> None:
    cases = [frames(case, count) for case in grid_cases(4, side=4)]
    data = write(Path("frames.h5"), cases, protocol=kind)
    with pytest.raises(LrsaError, match=words):
        quick(data, "run")
    assert not Path("run").exists()


def test_single_frames_are_for_data_that_is_predicted_frame_by_frame(data: Path) -> None:
    with pytest.raises(LrsaError, match="is for data of frames that follow from each other"):
        quick(data, "run", windows=True)
    assert not Path("run").exists()


def test_noise_is_for_single_frames() -> None:
    data = write(
        Path("frames.h5"), [frames(case, 12) for case in grid_cases(4, side=4)], protocol="autoregressive"
    )
    with pytest.raises(LrsaError, match=r"add --train\.windows"):
        quick(data, "run", noise=0.1)
    assert not Path("run").exists()


def test_training_by_chunks_of_points_is_the_same_training() -> None:
    data = write(Path("ragged.h5"), ragged_cases(6), ragged_cases(2, seed=1))
    losses = []
    for out, chunk in (("whole", None), ("chunked", 7)):
        quick(data, out, epochs=3, chunk=chunk)
        rows = (Path(out) / "metrics.jsonl").read_text().splitlines()
        losses.append([(json.loads(row)["loss"], json.loads(row)["validation"]) for row in rows])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert differ(weights(Path("chunked")), weights(Path("whole"))), "the sums of chunks round otherwise"


def test_the_command_says_how_much_of_the_steps_was_waiting(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = say(capsys, "train", data, "--out", "run", "--train.epochs", "2", *WORDS)
    progress = load_standing(Path("run") / STATE)
    assert 0 < progress.waiting <= progress.stepping <= progress.seconds
    share = f"{progress.waiting / progress.stepping:.1%} of the training steps was waiting for data"
    assert f"Trained 2 epochs in {progress.seconds:.0f} s; {share}" in " ".join(said.split())


def test_of_runs_that_kept_no_time_of_steps_the_waiting_is_that_of_the_whole(
    trained: Path, tmp_path: Path
) -> None:
    path = copy_run(trained, tmp_path / "old") / STATE
    with safe_open(path, "pt") as file:
        kept = json.loads(file.metadata()["state"])
    del kept["progress"]["stepping"]
    save_file(load_file(path), path, {"state": json.dumps(kept)})
    old = load_standing(path)
    assert old.stepping == 0
    assert old.waiting_share == old.waiting / old.seconds
    assert train_run(tmp_path / "old").stepping == old.seconds


@pytest.mark.usefixtures("_unmeasured")
def test_training_with_checkpoints_gives_the_same_bits(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And computes the layer again in the backward pass of each of the six steps."""
    calls: list[bool] = []
    compress = LowRankSpatialAttention.compress

    def watched(self: LowRankSpatialAttention, *inputs: Any) -> Tensor:
        calls.append(torch.is_grad_enabled())
        return compress(self, *inputs)

    monkeypatch.setattr(LowRankSpatialAttention, "compress", watched)
    steps = []
    for out, checkpoint in (("kept", False), ("computed", True)):
        calls.clear()
        quick(data, out, recompute=checkpoint)
        steps.append(sum(calls))
    assert_bit_equal(weights(Path("kept")), weights(Path("computed")))
    assert steps[1] == steps[0] + 6


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("lrsa", {"local": "depthwise"}, "cannot stream"),
        ("transolver-plus", {}, "train without --train.chunk"),
        ("backbone-transolver-plus", {"local": "pointwise"}, "train without --train.chunk"),
    ],
)
def test_a_model_that_cannot_go_by_chunks_is_refused_before_it_is_trained(
    data: Path, model: str, options: dict[str, Any], words: str
) -> None:
    sizes = {"width": 16, "depth": 1, "heads": 2, "rank": 4}
    with pytest.raises(LrsaError, match=words):
        lrsa.fit(data, model, out="run", chunk=7, options={**sizes, **options})
    assert not Path("run").exists()


@pytest.mark.parametrize("option", ["recompute", "compile"])
def test_an_option_that_would_do_nothing_is_refused(data: Path, option: str) -> None:
    with pytest.raises(LrsaError, match=f"--train.{option} does nothing in chunks"):
        lrsa.fit(data, out="run", chunk=7, **{option: True}, options={"width": 16, "depth": 1, "heads": 2})  # pyright: ignore[reportArgumentType]
    with pytest.raises(LrsaError, match=f'"deeponet" has no repeated layers for --train.{option}'):
        lrsa.fit(data, "deeponet", out="run", **{option: True}, options={"width": 16})  # pyright: ignore[reportArgumentType]
    assert not Path("run").exists()


def test_a_case_too_large_to_train_on_is_refused_before_there_is_a_run(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrsa.models.baselines.graph.memory", lambda: 1000)
    with pytest.raises(LrsaError, match="edges in training take at least"):
        lrsa.fit(data, "mesh-graph-net", out="run", options={"width": 8, "depth": 1})
    assert not Path("run").exists()


def test_a_model_of_the_users_own_works_in_fit_and_in_the_command(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lrsa.register("mine", PointMLP)
    x, f = grid_cases(1)[0].x, grid_cases(1)[0].f
    surrogate = lrsa.fit(data, "mine", out="run", epochs=2, options={"hidden": 5, "gain": 0.5})
    assert isinstance(surrogate.model, PointMLP)
    assert surrogate.model.first.out_features == 5
    words = ["--model", "mine", "--model.hidden", "5", "--model.gain", "0.5", "--train.epochs", "2"]
    assert main(["train", str(data), "--out", "typed", *words]) == 0
    assert_bit_equal(weights(Path("run")), weights(Path("typed")))
    np.testing.assert_array_equal(lrsa.load("typed").predict(x, f), surrogate.predict(x, f))
    assert main(["train", "--model", "mine", "--help"]) == 0
    assert "Channels of the hidden layer" in " ".join(capsys.readouterr().out.split())


def test_a_model_that_takes_parameters_from_the_context_gets_them_there() -> None:
    class Scaled(PointMLP):
        needs = Needs(globals=True)

        def forward(self, x: Tensor, f: Tensor | None, context: Context) -> Tensor:
            return super().forward(x, f, context) * context.need("globals", "it")[:, :1, None]

    lrsa.register("scaled", Scaled)
    data = write(Path("driven.h5"), driven_cases(6, 0), driven_cases(2, 1))
    surrogate = lrsa.fit(data, "scaled", out="run", epochs=1)
    assert config_of("run").options["in_features"] == 1
    case, mean = driven_cases(1, 2)[0], surrogate.normaliser.g_shift.numpy()
    below, flat, above = (surrogate.predict(case.x, case.f, globals=mean + g) for g in (-1, 0, 1))
    np.testing.assert_allclose(flat, flat.mean(), rtol=1e-6)
    np.testing.assert_allclose(above - flat, flat - below, atol=1e-5)
    assert np.ptp(above) > 0.01


def test_what_is_asked_for_is_what_is_kept(data: Path, trained: Path) -> None:
    """In Python, and as typed."""
    settings: dict[str, Any] = {"epochs": 1, "batch_size": 3, "max_lr": 2e-3, "validation": 0.2, "seed": 7}
    quick(data, "run", **settings)
    config = config_of("run")
    assert {name: getattr(config.train, name) for name in settings} == settings
    typed = RunConfig.load(trained)
    assert (typed.threads, typed.train.epochs) == (1, 3)
    for kept in (config, typed):
        assert {name: kept.options[name] for name in OPTIONS} == OPTIONS
        assert Path(kept.data.path) == data


def test_the_training_data_is_passed_over_once_before_the_first_step(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write(home / "many.h5", grid_cases(60), grid_cases(2, seed=1))
    read: list[int] = []
    item = Dataset.__getitem__
    monkeypatch.setattr(Dataset, "__getitem__", lambda self, i: (read.append(i), item(self, i))[1])
    run = prepare(str(data), "lrsa", options=OPTIONS, train={"batch_size": 2, "epochs": 1})
    # Each once (54 for training, 6 for validation), a look at a few, and the cases of the first step
    # and of those that are timed.
    assert sorted(set(read)) == list(range(60))
    assert len(read) <= 60 + 8 + 2 * (1 + WARM + TIMED) + 4
    read.clear()

    def stop(self: Trainer, batch: Batch) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        train_run(run)
    assert len(read) <= 2 * (AHEAD + 2) + 4, "the batches that are read ahead, and no more"
