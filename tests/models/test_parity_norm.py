"""NORM against its reference."""

from collections.abc import Mapping
from pathlib import Path

from references import Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.norm import NORM


@files("norm_darcy")
def test_parity_norm(path: Path) -> None:
    golden = load(path)
    config = golden.config
    features, outputs = golden.inputs["x"].shape[-1], golden.output.shape[-1]
    index = golden.parameters["fc0.weight"].shape[1] > features
    model = NORM(2, features, outputs, width=config["width"], modes=config["modes"], node_index=index)
    places = {"fc0": "lift_ffn", "fc1": "head.0", "fc2": "head.2"}
    places |= {f"w{k}": f"blocks.{k}.ffn" for k in range(4)}
    names = {f"{a}.{part}": Where(f"{b}.{part}") for a, b in places.items() for part in ("weight", "bias")}
    for k in range(4):
        names[f"conv{k}.weights1"] = Where(f"blocks.{k}.mix.weight", permute=(2, 0, 1))
    check_parity(golden, model, names, run)


def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    f = inputs["x"]
    basis = inputs["LBO_MATRIX"].expand(len(f), -1, -1)
    return model(f.new_zeros(*f.shape[:2], 2), f, Context(basis=basis))
