"""Operators composed of parts, and the names that parts had in earlier versions."""

import pytest
import torch
from conftest import WIDTH, assert_same, make_mixer, make_points
from recorded.record import HERE
from safetensors.torch import load_file
from torch import nn

import lrsa
from lrsa.models.baselines.lno import OnlyMix
from lrsa.models.block import Block
from lrsa.models.operator import NeuralOperator
from lrsa.models.registry import get

RENAMED = [name for name in lrsa.list_models() if getattr(get(name).build(), "renamed", None)]


def test_an_operator_is_composed_of_any_parts() -> None:
    """Another lift, blocks without norms, one that is its mixing layer alone, another head."""
    points = make_points(2, 13)
    model = NeuralOperator(
        coord_dim=2,
        in_features=1,
        out_features=3,
        lift_ffn=nn.Linear(3, WIDTH),
        blocks=[Block(WIDTH, make_mixer(), nn.Tanh(), norm=nn.Identity), OnlyMix(make_mixer())],
        head=nn.Sequential(nn.GELU(), nn.Linear(WIDTH, 3)),
    ).double()
    arguments = (points.x, points.f, points.context("weights"))
    h = model.lift_ffn(torch.cat([points.f, points.x], dim=-1))
    context = arguments[2].normalised()
    first, second = (block.mix for block in model.each_block())
    h = h + first(h, points.x, context)
    expected = model.head(second(h + h.tanh(), points.x, context))
    assert_same(model(*arguments), expected)
    assert_same(lrsa.stream(model, *arguments, chunk=5), expected)
    assert_same(model.decode(model.encode(*arguments), points.x, points.f), expected)


@pytest.mark.parametrize("name", RENAMED)
def test_weights_load_by_the_names_that_they_had_in_earlier_versions(name: str) -> None:
    """Inside of another module too; what is neither an old nor a new name is refused as ever."""
    model, other = (lrsa.create_model(name, coord_dim=2, in_features=1, out_features=1) for _ in range(2))
    assert isinstance(model, NeuralOperator)
    now = model.state_dict()
    back = {new: old for old, new in model.renamed.items()}
    before = {".".join([back.get(k.split(".")[0], k.split(".")[0]), *k.split(".")[1:]]): now[k] for k in now}
    assert len(before.keys() - now.keys()) >= len(back)
    nn.ModuleDict({"model": other}).load_state_dict({f"model.{k}": v for k, v in before.items()})
    assert all(torch.equal(value, now[key]) for key, value in other.state_dict().items())
    assert len(before.keys() - now.keys()) >= len(back)
    other.load_state_dict(now)
    with pytest.raises(RuntimeError, match="lift_other"):
        other.load_state_dict({**now, "lift_other.weight": torch.zeros(1)})


def test_the_recorded_run_of_norm_has_an_earlier_name() -> None:
    """So that reading it, as the recorded tests do, tries the table of renamed weights."""
    assert RENAMED == ["norm"]
    names = load_file(HERE / "runs" / "norm" / "model.safetensors").keys()
    assert {"model.lift_linear.weight", "model.lift_linear.bias"} <= set(names)
