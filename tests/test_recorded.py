"""What an earlier version recorded stays so: its data opens, its runs load, evaluate, predict and go on.

The same training gives the same weights: to the bit on the processor of the recording, else to rounding. That
is 1e-3 of a weight tensor (or 1e-5), not of each of its numbers: where the loss does not depend on one, such
as a bias of attention's keys or before a norm over the batch, rounding decides its gradient, and AdamW makes
that as large as any other. Biases may differ by a few steps of AdamW.

The recording is of AVX2. A processor that has more gives the same bits with ATEN_CPU_CAPABILITY=avx2,
MKL_ENABLE_INSTRUCTIONS=AVX2 and ONEDNN_MAX_CPU_ISA=AVX2 in its environment.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded.record import HERE, processor
from safetensors.torch import load_file
from small import assert_bit_equal
from torch import Tensor

import lrsa
from lrsa.cli.program import main
from lrsa.evaluation.evaluate import evaluate
from lrsa.models.registry import DATA_ARGUMENTS, networks
from lrsa.training.config import RunConfig

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

EXPECTED = json.loads((HERE / "expected.json").read_text())
RUNS: dict[str, Any] = EXPECTED["runs"]


def recorded(name: str, folder: Path) -> Path:
    """A copy of a run that finds its data."""
    run = shutil.copytree(HERE / "runs" / name, folder / name)
    config = json.loads((run / "config.json").read_text())
    config["data"]["path"] = str(HERE / "data" / config["data"]["path"])
    (run / "config.json").write_text(json.dumps(config))
    return run


def assert_same_weights(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    if processor() == EXPECTED["processor"]:
        assert_bit_equal(ours, theirs)
    else:
        assert ours.keys() == theirs.keys()
        for name, weights in theirs.items():
            step = 3e-3 if name.endswith("bias") else 1e-5
            allowed = 1e-3 * weights.double().norm() + step * weights.numel() ** 0.5
            assert (ours[name].double() - weights).norm() <= allowed, name


def test_every_model_and_protocol_is_recorded() -> None:
    assert {run["model"] for run in RUNS.values()} == set(networks())
    schemas = [lrsa.open_dataset(HERE / "data" / f"{run['data']}.h5").schema for run in RUNS.values()]
    assert {schema.protocol for schema in schemas} == {"static", "autoregressive", "time-conditioned"}


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_evaluates_and_predicts_as_it_did(name: str, home: Path) -> None:
    expected, run = RUNS[name], recorded(name, home)
    assert evaluate(run).relative_l2 == pytest.approx(expected["relative_l2"], rel=1e-4)
    surrogate = lrsa.load(run)
    case = lrsa.open_dataset(HERE / "data" / f"{expected['data']}.h5", "test")[0]
    u = surrogate.predict(case)
    np.testing.assert_allclose(u.ravel()[:8], expected["prediction"], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_the_same_training_gives_the_same_weights(name: str, home: Path) -> None:
    run = recorded(name, home)
    config = json.loads((run / "config.json").read_text())
    options = {k: v for k, v in config["options"].items() if k not in DATA_ARGUMENTS}
    lrsa.fit(
        config["data"]["path"],
        config["model"],
        out=home / "again",
        options={k: tuple(v) if isinstance(v, list) else v for k, v in options.items()},
        threads=1,
        **{**asdict(RunConfig.load(run).train), "kernels": False},
    )
    # Loaded, the recorded weights have the names of today.
    assert_same_weights(load_file(home / "again" / "model.safetensors"), lrsa.load(run).state_dict())


def test_a_run_that_an_earlier_version_was_stopped_in_goes_on_as_if_it_had_not_been(home: Path) -> None:
    run = recorded("interrupted", home)
    assert main(["resume", str(run)]) == 0
    assert_same_weights(load_file(run / "last.safetensors"), load_file(run / "uninterrupted.safetensors"))
