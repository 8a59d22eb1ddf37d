"""FNO against its reference."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from references import Golden, Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.fno import FNO


@files("fno_nsl")
def test_parity_fno(path: Path) -> None:
    golden = load(path)
    config = golden.config
    model = FNO(
        config["space_dim"],
        config["fun_dim"],
        config["out_dim"],
        width=config["n_hidden"],
        modes=config["modes"],
        **nsl_options(config),
    )
    names = nsl_lift_and_head(golden)
    for k in range(4):
        names[f"w{k}.weight"] = Where(f"skip.{k}.weight")
        names[f"w{k}.bias"] = Where(f"skip.{k}.bias")
        for half, rows in (
            (1, slice(0, config["modes"])),
            (2, slice(config["modes"], None)),
        ):
            names[f"conv{k}.weights{half}"] = Where(f"spectral.{k}.weight", rows, permute=(2, 3, 0, 1, 4))
    check_parity(golden, model, names, nsl_run(golden))


def nsl_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options that all models of the library share."""
    reference = config.get("ref", 8) if config.get("unified_pos") else 0
    return {"reference": reference, "time": bool(config.get("time_input"))}


def nsl_lift_and_head(golden: Golden) -> dict[str, Where]:
    """The places of the lift, the time encoding and the head, which all models of the library share."""
    places = {
        "preprocess.linear_pre.0": "lift.ffn.0",
        "preprocess.linear_post": "lift.ffn.2",
        "time_fc.0": "lift.time.mlp.0",
        "time_fc.2": "lift.time.mlp.2",
        "fc1": "head.0",
        "fc2": "head.2",
    }
    return {
        f"{official}.{part}": Where(f"{ours}.{part}")
        for official, ours in places.items()
        for part in ("weight", "bias")
        if f"{official}.{part}" in golden.parameters
    }


def nsl_run(golden: Golden) -> Callable[[nn.Module, Mapping[str, Tensor]], Tensor]:
    """Calls a grid model on the inputs of the library."""

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        time = inputs["T"].reshape(-1) if "T" in inputs else None
        context = Context(grid=tuple(golden.config["shapelist"]), time=time)
        return model(inputs["x"], inputs.get("fx"), context)

    return run
