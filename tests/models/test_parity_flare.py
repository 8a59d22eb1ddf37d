"""FLARE agrees with its reference implementation: the block alone and the whole model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from references import Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.flare import FLARE
from lrsa.models.mixers.flare import FlareAttention, ResidualMLP
from lrsa.models.operator import Block


@files("flare_block")
def test_parity_flare_block(path: Path) -> None:
    golden = load(path)
    c = golden.config
    width, layers = c["channel_dim"], (c["num_layers_k_proj"], c["num_layers_v_proj"])
    mix = FlareAttention(width, c["num_heads"], c["num_latents"], *layers, c["qk_norm"])
    block = Block(width, mix, ResidualMLP(width, width, c["num_layers_ffn"]))
    check_parity(golden, block, _block(c, "", ""), _run_block)


@files("flare_model")
def test_parity_flare_model(path: Path) -> None:
    golden = load(path)
    c = golden.config
    model = FLARE(
        coord_dim=c["in_dim"],
        in_features=0,
        out_features=c["out_dim"],
        width=c["channel_dim"],
        depth=c["num_blocks"],
        heads=c["num_heads"],
        rank=c["num_latents"],
        kv_layers=c.get("num_layers_k_proj", 3),
        ffn_layers=c.get("num_layers_ffn", 3),
        qk_norm=c.get("qk_norm", False),
    )
    names = {
        **_residual_mlp("in_proj", "lift_ffn", 2),
        **_both("out_proj.0", "norm"),
        **_residual_mlp("out_proj.1", "head", 2),
    }
    for k in range(c["num_blocks"]):
        names |= _block(c, f"blocks.{k}.", f"blocks.{k}.")
    check_parity(golden, model, names, lambda model, inputs: model(inputs["x"]))


def _run_block(block: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    return block(inputs["x"], inputs["x"][..., :2], Context())


def _block(c: Mapping[str, Any], official: str, ours: str) -> dict[str, Where]:
    names = {
        **_both(f"{official}norm1", f"{ours}norm_mix"),
        **_both(f"{official}norm2", f"{ours}norm_ffn"),
        f"{official}att.latent_q": Where(f"{ours}mix.latents"),
        **_residual_mlp(f"{official}att.k_proj", f"{ours}mix.key", c.get("num_layers_k_proj", 3)),
        **_residual_mlp(f"{official}att.v_proj", f"{ours}mix.value", c.get("num_layers_v_proj", 3)),
        **_both(f"{official}att.out_proj", f"{ours}mix.output"),
        **_residual_mlp(f"{official}mlp", f"{ours}ffn", c.get("num_layers_ffn", 3)),
    }
    if c.get("qk_norm", False):
        names |= _both(f"{official}att.q_norm", f"{ours}mix.norm_query")
        names |= _both(f"{official}att.k_norm", f"{ours}mix.norm_key")
    return names


def _residual_mlp(official: str, ours: str, layers: int) -> dict[str, Where]:
    names = {**_both(f"{official}.fc1", f"{ours}.first"), **_both(f"{official}.fc2", f"{ours}.last")}
    for i in range(layers):
        names |= _both(f"{official}.fcs.{i}", f"{ours}.middle.{i}")
    return names


def _both(official: str, ours: str) -> dict[str, Where]:
    return {f"{official}.{kind}": Where(f"{ours}.{kind}") for kind in ("weight", "bias")}
