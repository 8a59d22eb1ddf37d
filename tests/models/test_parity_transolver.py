"""Transolver agrees with its reference implementation (thuml/Transolver), irregular and structured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from references import Golden, Where, check_parity, files, load
from torch import Tensor, nn

from lrsa import Context
from lrsa.models.baselines.transolver import Transolver


@files("transolver_irregular")
def test_parity_transolver_irregular(path: Path) -> None:
    golden = load(path)
    check_parity(golden, build(golden.config), names(golden), run(golden.config))


@files("transolver_structured_2d", "transolver_structured_2d_unified_time")
def test_parity_transolver_structured(path: Path) -> None:
    golden = load(path)
    model = build(golden.config, structured=True)
    check_parity(golden, model, names(golden, projection="project.conv"), run(golden.config))


def build(config: Mapping[str, Any], structured: bool = False) -> Transolver:
    return Transolver(
        **skeleton_options(config),
        rank=config["slice_num"],
        structured=structured,
        reference=config["ref"] if config.get("unified_pos") else 0,
        time=config.get("Time_Input", False),
    )


def names(golden: Golden, projection: str = "project") -> dict[str, Where]:
    width, heads = golden.config["n_hidden"], golden.config["n_head"]
    places = skeleton_names(golden)
    for block, k in blocks(golden):
        official, ours = f"{block}.Attn.", f"blocks.{k}.mix."
        for kind in ("weight", "bias"):
            places |= {
                f"{official}in_project_fx.{kind}": Where(f"{ours}{projection}.{kind}", slice(width)),
                f"{official}in_project_x.{kind}": Where(f"{ours}{projection}.{kind}", slice(width, None)),
                f"{official}in_project_slice.{kind}": Where(f"{ours}slices.linear.{kind}"),
            }
        places |= token_names(official, ours, width // heads)
        places[f"{official}temperature"] = Where(f"{ours}slices.temperature")
    return places


def token_names(official: str, ours: str, head_width: int) -> dict[str, Where]:
    """Attention among slices and output projection, shared with Transolver++."""
    stacked = f"{ours}tokens.query_key_value.weight"
    return {
        f"{official}to_{letter}.weight": Where(stacked, slice(i * head_width, (i + 1) * head_width))
        for i, letter in enumerate("qkv")
    } | {f"{official}to_out.0.{kind}": Where(f"{ours}tokens.output.{kind}") for kind in ("weight", "bias")}


def skeleton_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor options that the family shares."""
    return {
        "coord_dim": config["space_dim"],
        "in_features": config["fun_dim"],
        "out_features": config["out_dim"],
        "width": config["n_hidden"],
        "depth": config["n_layers"],
        "heads": config["n_head"],
        "mlp_ratio": config["mlp_ratio"],
    }


def blocks(golden: Golden) -> list[tuple[str, int]]:
    return [(f"blocks.{k}", k) for k in range(golden.config["n_layers"])]


def skeleton_names(golden: Golden) -> dict[str, Where]:
    """The places of everything but the mixers, for the whole family."""
    pairs = {"preprocess.linear_pre.0": "lift_ffn.0", "preprocess.linear_post": "lift_ffn.2"}
    pairs |= {"time_fc.0": "time.mlp.0", "time_fc.2": "time.mlp.2"}
    for block, k in blocks(golden):
        pairs |= {
            f"{block}.ln_1": f"blocks.{k}.norm_mix",
            f"{block}.ln_2": f"blocks.{k}.norm_ffn",
            f"{block}.mlp.linear_pre.0": f"blocks.{k}.ffn.0",
            f"{block}.mlp.linear_post": f"blocks.{k}.ffn.2",
        }
    last = blocks(golden)[-1][0]
    pairs |= {f"{last}.ln_3": "norm", f"{last}.mlp2": "head"}
    places = {f"{a}.{kind}": Where(f"{b}.{kind}") for a, b in pairs.items() for kind in ("weight", "bias")}
    if "placeholder" not in golden.unused:
        places["placeholder"] = Where("placeholder")
    return {name: where for name, where in places.items() if name in golden.parameters}


def run(config: Mapping[str, Any]) -> Any:
    grid = (config["H"], config["W"]) if "H" in config else None

    def call(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        time = inputs["T"][:, 0] if "T" in inputs else None
        return model(inputs["x"], inputs.get("fx"), Context(grid=grid, time=time))

    return call
