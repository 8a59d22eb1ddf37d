"""LNO agrees with its reference implementation."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from references import Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.lno import LNO


@files("lno")
def test_parity_lno(path: Path) -> None:
    golden = load(path)
    c = golden.config
    model = LNO(
        coord_dim=c["x_dim"],
        in_features=c["y1_dim"] - c["x_dim"],
        out_features=c["y2_dim"],
        width=c["n_dim"],
        depth=c["n_block"],
        heads=c["n_head"],
        rank=c["n_mode"],
        mlp_layers=c["n_layer"],
    )
    check_parity(golden, model, _names(c), _run)


def _run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    # The golden branch input does not repeat the coordinates, so trunk and branch are fed separately.
    assert isinstance(model, LNO)
    h = model.embed(inputs["x"], inputs["y"])
    for block in model.blocks:
        h = block(h, inputs["x"], Context())
    return model.project(h)


def _names(c: Mapping[str, Any]) -> dict[str, Where]:
    names: dict[str, Where] = {}
    parts = {"trunk_projector": "trunk", "branch_projector": "branch", "attention_projector": "score"}
    for official, ours in {**parts, "out_mlp": "head"}.items():
        layers = {"input": "first", "output": "last"} | {
            f"hidden.{i}": f"hidden.{i}" for i in range(c["n_layer"])
        }
        for theirs, layer in layers.items():
            names |= _both(f"{official}.{theirs}", f"{ours}.{layer}")
    for k in range(c["n_block"]):
        names |= _latent_block(f"attn_blocks.{k}", f"blocks.0.mix.transformer.{k}", c["n_dim"])
    return names


def _latent_block(official: str, ours: str, width: int) -> dict[str, Where]:
    return {
        **_both(f"{official}.ln1", f"{ours}.norm_mix"),
        **_both(f"{official}.ln2", f"{ours}.norm_ffn"),
        **_both(f"{official}.self_attn.Wq", f"{ours}.mix.query"),
        **_both(f"{official}.self_attn.Wk", f"{ours}.mix.key_value", slice(0, width)),
        **_both(f"{official}.self_attn.Wv", f"{ours}.mix.key_value", slice(width, 2 * width)),
        **_both(f"{official}.self_attn.proj", f"{ours}.mix.output"),
        **_both(f"{official}.mlp.0", f"{ours}.ffn.0"),
        **_both(f"{official}.mlp.2", f"{ours}.ffn.2"),
    }


def _both(official: str, ours: str, index: Any = ...) -> dict[str, Where]:
    return {f"{official}.{kind}": Where(f"{ours}.{kind}", index) for kind in ("weight", "bias")}


def test_the_public_call_feeds_features_and_coordinates_to_the_branch() -> None:
    """What parity feeds by hand, `forward` feeds from x and f."""
    torch.manual_seed(0)
    model = LNO(2, 1, 1, width=16, depth=1, heads=2, rank=4)
    x, f = torch.rand(2, 30, 2), torch.rand(2, 30, 1)
    assert torch.equal(model(x, f), _run(model, {"x": x, "y": torch.cat([f, x], dim=-1)}))
