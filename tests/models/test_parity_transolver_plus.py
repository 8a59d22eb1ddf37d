"""Transolver++ agrees with its reference implementation (thuml/Transolver_plus), without the Gumbel noise."""

from collections.abc import Mapping
from pathlib import Path

from references import Golden, Where, check_parity, files, load
from test_parity_transolver import blocks, skeleton_names, skeleton_options, token_names
from torch import Tensor, nn

from lrsa import Context
from lrsa.models.baselines.transolver_plus import TransolverPlus


@files("transolver_plus")
def test_parity_transolver_plus(path: Path) -> None:
    golden = load(path)
    model = TransolverPlus(
        **skeleton_options(golden.config),
        rank=golden.config["slice_num"],
        globals_dim=golden.inputs["condition"].shape[-1],
    )
    coordinates = golden.config["space_dim"]

    def call(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        x = inputs["x"]
        return model(x[..., :coordinates], x[..., coordinates:], Context(globals=inputs["condition"]))

    check_parity(golden, model, names(golden), call)


def names(golden: Golden) -> dict[str, Where]:
    places = skeleton_names(golden)
    for block, k in blocks(golden):
        official, ours = f"{block}.Attn.", f"blocks.{k}.mix."
        places |= token_names(official, ours, golden.config["n_hidden"] // golden.config["n_head"])
        places[f"{official}bias"] = Where(f"{ours}slices.temperature")
        for kind in ("weight", "bias"):
            places |= {
                f"{official}in_project_x.{kind}": Where(f"{ours}project.{kind}"),
                f"{official}in_project_slice.{kind}": Where(f"{ours}slices.linear.{kind}"),
                f"{official}proj_temperature.0.{kind}": Where(f"{ours}slices.sharpness.0.{kind}"),
                f"{official}proj_temperature.2.{kind}": Where(f"{ours}slices.sharpness.2.{kind}"),
            }
    return places | {f"embedding.{kind}": Where(f"embedding.{kind}") for kind in ("weight", "bias")}
