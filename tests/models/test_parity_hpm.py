"""HPM agrees with its reference implementation (yuexihang/HPM) on a structured grid, 3x3 and 1x1."""

from collections.abc import Mapping
from pathlib import Path

from references import Golden, Where, check_parity, files, load
from test_parity_transolver import blocks, skeleton_names, skeleton_options
from torch import Tensor, nn

from lrsa import Context
from lrsa.models.baselines.hpm import HPM


@files("hpm_structured")
def test_parity_hpm_structured(path: Path) -> None:
    golden = load(path)
    config = golden.config
    model = HPM(
        **skeleton_options(config),
        rank=config["freq_num"],
        structured=True,
        kernel_size=config["kernelsize"],
    )

    def call(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        basis = inputs["eigenbasis"].expand(len(inputs["x"]), -1, -1)
        return model(inputs["x"], inputs["fx"], Context(grid=(config["H"], config["W"]), basis=basis))

    check_parity(golden, model, names(golden), call)


def names(golden: Golden) -> dict[str, Where]:
    width = golden.config["n_hidden"]
    projection = "project" if golden.config["kernelsize"] == 1 else "project.conv"
    places = skeleton_names(golden)
    for block, k in blocks(golden):
        official, ours = f"{block}.Attn.", f"blocks.{k}.mix."
        for kind in ("weight", "bias"):
            places |= {
                f"{official}in_project_fx.{kind}": Where(f"{ours}{projection}.{kind}", slice(width)),
                f"{official}in_project_x.{kind}": Where(f"{ours}{projection}.{kind}", slice(width, None)),
                f"{official}in_project_gates.{kind}": Where(f"{ours}spectrum.gates.linear.{kind}"),
                f"{official}layernorm2.{kind}": Where(f"{ours}spectrum.norm.{kind}"),
                f"{official}to_out.0.{kind}": Where(f"{ours}spectrum.output.{kind}"),
            }
        places[f"{official}temperature"] = Where(f"{ours}spectrum.gates.temperature")
        places[f"{official}mlp_trans_weights"] = Where(f"{ours}spectrum.weight")
    return places
