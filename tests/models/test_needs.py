"""What a model declares is all it takes, and each of it is taken."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lrsa.context import Context, Edges, Needs, needs_of
from lrsa.data.prepare import Collator
from lrsa.errors import LrsaError
from lrsa.models.block import LocalFFN
from lrsa.models.create import create_model
from lrsa.models.mixers.eigenbasis import EigenbasisMix
from lrsa.models.operator import LRSA, Backbone
from lrsa.models.registry import model_options, networks
from lrsa.pointset import PointSet

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

GRID, BATCH, PARAMETERS = (17, 16), 2, 3
POINTS = GRID[0] * GRID[1]
SIZES: dict[str, Any] = {"width": 16, "depth": 2, "heads": 2, "rank": 8}
ASKING: dict[str, Any] = {
    "time": True,
    "structured": True,
    "local": "depthwise",
    "reference": 4,
    "eigen_positions": 9,
    "code_dim": PARAMETERS,
    "globals_dim": PARAMETERS,
    "radius": 0.2,
    "sensors": POINTS,
}
"""Options with which a model needs more."""


def build(name: str, asking: bool) -> tuple[nn.Module, Needs]:
    options = {**SIZES, **(ASKING if asking else {})}
    known = {key: value for key, value in options.items() if key in model_options(name)}
    model = create_model(name, coord_dim=2, in_features=1, out_features=1, **known).eval()
    return model, needs_of(model)


def exactly(needs: Needs) -> tuple[Tensor, Tensor, Context]:
    """A batch on a bent grid, whose context holds what is declared and nothing else."""
    axes = np.meshgrid(*(np.linspace(0, 1, n) for n in GRID), indexing="ij")
    x = np.stack([axes[0], axes[1] + 0.1 * np.sin(3 * axes[0])], axis=-1).reshape(-1, 2).astype(np.float32)
    given = {"grid": GRID, "time": torch.rand(BATCH), "globals": torch.rand(BATCH, PARAMETERS)}
    context = Context(**{name: value for name, value in given.items() if getattr(needs, name)})
    context = Collator(False, needs).with_geometry(context, [PointSet(x, grid=GRID)] * BATCH, POINTS)
    return torch.from_numpy(x).expand(BATCH, -1, -1), torch.rand(BATCH, POINTS, 1), context


def held(context: Context) -> set[str]:
    return {name for name, value in vars(context).items() if value is not None}


@pytest.mark.parametrize("asking", [False, True])
@pytest.mark.parametrize("name", networks())
@torch.no_grad()
def test_what_a_model_declares_is_enough_and_each_of_it_is_needed(name: str, asking: bool) -> None:
    model, needs = build(name, asking)
    x, f, context = exactly(needs)
    assert held(context) <= {"grid", "edges", "basis", "time", "globals"}
    u = model(x, f, context)
    assert u.shape == (BATCH, POINTS, 1)
    assert u.isfinite().all()
    for field in held(context):
        with pytest.raises(LrsaError):
            model(x, f, replace(context, **{field: None}))
    if context.basis is not None:
        assert context.basis.shape[-1] == needs.eigenfunctions
        with pytest.raises(LrsaError):
            model(x, f, replace(context, basis=context.basis[..., :-1]))
    if needs.sensors:
        with pytest.raises(LrsaError):
            model(x[:, 1:], f[:, 1:], context)


def test_every_need_is_some_models() -> None:
    declared = [build(name, asking)[1] for name in networks() for asking in (False, True)]
    declared.append(needs_of(create_model("deeponet", preset="heat-transfer")))  # its inputs are no grid
    declared.append(needs_of(create_model("f-fno", preset="plasticity")))  # it has a third axis
    for name, default in vars(Needs()).items():
        assert any(getattr(needs, name) != default for needs in declared), name
    assert {needs.edges for needs in declared} == {None, Edges(), Edges(0.2), Edges(self_loops=False)}


def test_an_operator_needs_what_any_of_its_blocks_does() -> None:
    modes = iter((5, 12, 7))
    model = Backbone(
        2,
        1,
        1,
        lambda: EigenbasisMix(8, next(modes)),
        width=8,
        depth=3,
        ffn=lambda: LocalFFN(8, 8),
        time=True,
    )
    assert model.needs == Needs(grid=True, time=True, eigenfunctions=12)


def test_needs_join_in_any_order_unless_they_differ() -> None:
    edges = Needs(edges=Edges(0.1), sensors=4)
    box = Needs(grid=True, globals=True, eigenfunctions=3, coordinates="box")
    both = Needs(True, False, True, Edges(0.1), 3, 4, "box")
    assert edges | box == box | edges == both
    assert both | both == both | Needs() == both
    for other in (Needs(edges=Edges()), Needs(sensors=5), Needs(coordinates="raw")):
        with pytest.raises(LrsaError, match="parts of one model need different"):
            _ = both | other


def test_a_model_that_declares_nothing_needs_nothing() -> None:
    assert needs_of(nn.Linear(2, 1)) == Needs()
    assert needs_of(LRSA) == Needs()  # a class: what its options add is not known yet


def test_a_declaration_of_another_kind_is_refused_with_the_cure() -> None:
    class Mine(nn.Linear):
        needs = frozenset({"grid"})

    for model in (Mine, Mine(2, 1)):
        with pytest.raises(LrsaError, match=r"^Mine\.needs is frozenset.*Needs\(grid=True\)"):
            needs_of(model)
