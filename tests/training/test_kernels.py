"""Training by kernels: what a run says of it, that it resumes to the bit, and what stays plain torch."""

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small import WORDS, assert_bit_equal, differ, quick, ragged_cases, weights, write

import lrsa
from lrsa.cli.program import main
from lrsa.evaluation.evaluate import evaluate
from lrsa.experiments.job import Job
from lrsa.training.config import RunConfig
from lrsa.training.loop import Trainer

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("kernels", "home")


def losses(run: Path) -> list[str]:
    return (run / "metrics.jsonl").read_text().splitlines()


@pytest.fixture
def ragged(tmp_path: Path) -> Path:
    return write(tmp_path / "ragged.h5", ragged_cases(8), ragged_cases(2, seed=1))


@pytest.mark.parametrize("settings", [{}, {"chunk": 10}, {"recompute": True}])
def test_a_training_by_kernels_is_one_by_torch_up_to_rounding(ragged: Path, settings: dict[str, Any]) -> None:
    runs = {kernels: Path(f"kernels-{kernels}") for kernels in (True, False)}
    made = {kernels: quick(ragged, run, kernels=kernels, **settings) for kernels, run in runs.items()}
    assert [RunConfig.load(run).path for run in runs.values()] == ["kernels", "torch: it was asked for"]
    assert differ(weights(runs[True]), weights(runs[False]))
    errors = [evaluate(run).relative_l2 for run in runs.values()]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
    case = lrsa.open_dataset(ragged, "test")[0]
    by_kernels = made[True].predict(case)
    made[True].kernels = False
    np.testing.assert_allclose(by_kernels, made[True].predict(case), rtol=1e-3, atol=1e-5)


def test_kernels_are_the_default_and_the_configuration_says_so(data: Path) -> None:
    surrogate = quick(data, "run", epochs=1)
    assert surrogate.kernels
    config = RunConfig.load(Path("run"))
    assert (config.train.kernels, config.path) == (True, "kernels")


def stop_after_one_epoch(monkeypatch: pytest.MonkeyPatch, data: Path, run: str) -> None:
    epoch = Trainer._epoch

    def stopped(self: Trainer, *given: Any) -> None:
        if self.progress.epoch == 1:
            raise KeyboardInterrupt
        epoch(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_epoch", stopped)
        with pytest.raises(KeyboardInterrupt):
            quick(data, run)


def test_a_run_by_kernels_resumes_to_the_bit(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick(data, "whole")
    stop_after_one_epoch(monkeypatch, data, "stopped")
    assert main(["resume", "stopped"]) == 0
    assert_bit_equal(weights(Path("stopped"), "last"), weights(Path("whole"), "last"))


def test_going_on_by_torch_says_that_bits_differ(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_after_one_epoch(monkeypatch, data, "stopped")
    monkeypatch.setenv("LRSA_KERNELS", "0")
    assert main(["resume", "stopped"]) == 0
    said = capsys.readouterr().out
    assert "was trained by kernels and goes on by torch (LRSA_KERNELS is 0): not to the same bits" in said
    assert RunConfig.load(Path("stopped")).path == "kernels, then torch: LRSA_KERNELS is 0"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"compile": True}, "compiled blocks are torch's"),
        ({"precision": "bf16"}, "the kernels are for fp32 on a CPU, not bf16 on cpu"),
        ({"recompute": True, "options": {"local": "depthwise"}}, "a grid is not computed again by chunks"),
        ({"model": "transolver", "options": {}}, "the kernels are for LRSA, not Transolver"),
    ],
)
def test_what_kernels_do_not_do_is_left_to_torch_and_said(
    data: Path, settings: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrsa.training.fit.train_run", lambda run: None)
    timed = SimpleNamespace(words="")
    monkeypatch.setattr("lrsa.training.fit.sized", lambda run, config, levels, normaliser: config)
    monkeypatch.setattr(
        "lrsa.training.fit.timed_run", lambda run, config, _: setattr(timed, "config", config) or timed
    )
    monkeypatch.setattr("lrsa.training.fit.load", lambda run: None)
    options = {"width": 16, "depth": 1, "heads": 2, "rank": 8, **settings.pop("options", {})}
    lrsa.fit(data, out="run", options=options, epochs=1, **settings)
    config = RunConfig.load(Path("run"))
    assert (config.train.kernels, config.path) == (False, f"torch: {why}")


def test_debug_says_what_computed_and_why(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = ["train", str(data), "--train.epochs", "1", "--train.no-kernels", "--debug", *WORDS]
    try:
        assert main(words) == 0
    finally:
        logging.getLogger("lrsa").setLevel(logging.NOTSET)
    assert "blocks by torch: it was asked for" in caplog.messages


def test_a_local_model_trains_by_kernels(data: Path) -> None:
    quick(data, "run", options={"local": "depthwise"}, epochs=1)
    assert RunConfig.load(Path("run")).path == "kernels"


def test_tables_that_rank_models_stay_with_torch() -> None:
    job = Job("darcy", "lrsa", "demo")
    assert job.configuration()["train"]["kernels"] is False
    assert job.typed().endswith("--train.no-kernels")


def test_a_run_from_before_there_were_kernels_is_torchs() -> None:
    run = Path(__file__).parents[1] / "recorded" / "runs" / "lrsa"
    assert RunConfig.load(run).path is None
    assert not lrsa.load(run).kernels
