"""Models of two domains: inputs at some points, fields at others, as published for Heat Transfer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, layer_norm, normalize

import lrsa
from lrsa.context import Context, needs_of
from lrsa.data.prepare import Collator
from lrsa.errors import LrsaError
from lrsa.geometry.eigenbasis import eigenbasis
from lrsa.models.baselines.hpm import HPM
from lrsa.models.baselines.norm import NORM
from lrsa.models.domains import CrossingBlock
from lrsa.pointset import PointSet

INPUTS, OUTPUTS, MODES, BATCH = 11, 30, 7, 3
COUNTS = {"norm": 2_122_433, "hpm": 74_372}
"""As published."""
SMALL = {
    "norm": {"width": 8, "depth": 4, "modes": MODES, "domain_change": 1},
    "hpm": {
        "width": 8,
        "depth": 4,
        "heads": 2,
        "rank": MODES,
        "coordinates": False,
        "eigen_positions": 3,
        "domain_change": 1,
    },
    "deeponet": {"width": 16, "sensors": INPUTS, "domains": True},
    "deeponet-set": {"width": 16, "domains": True},
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LRSA_HOME", str(tmp_path))


def model_of(name: str) -> nn.Module:
    torch.manual_seed(0)
    made = lrsa.create_model(
        name.removesuffix("-set"), coord_dim=3, in_features=1, out_features=1, **SMALL[name]
    )
    for parameter in made.parameters():  # some are published to start at zero
        nn.init.normal_(parameter, std=0.5)
    return made.double().eval()


def union(seed: int = 0) -> tuple[Tensor, Tensor, Context]:
    """Outputs, then inputs, with a basis of its own for either."""
    random = torch.Generator().manual_seed(seed)
    draw = [torch.randn(BATCH, INPUTS + OUTPUTS, k, generator=random).double() for k in (3, 1, MODES)]
    given = (torch.arange(INPUTS + OUTPUTS) >= OUTPUTS).expand(BATCH, -1)
    return draw[0], draw[1], Context(basis=draw[2], inputs=given)


@pytest.mark.parametrize("name", COUNTS)
def test_the_parameter_count_is_the_published_one(name: str) -> None:
    with torch.device("meta"):
        model = lrsa.create_model(name, preset="heat-transfer")
    assert sum(parameter.numel() for parameter in model.parameters()) == COUNTS[name]
    assert needs_of(model).domains


@pytest.mark.parametrize("name", SMALL)
@torch.no_grad()
def test_what_points_that_only_ask_say_is_not_heard(name: str) -> None:
    model, (x, f, context) = model_of(name), union()
    given = context.inputs
    assert given is not None
    u = model(x, f, context)
    other = torch.where(given[..., None], f, 7 - f)
    asked = ~given
    assert torch.equal(model(x, other, context)[asked], u[asked])
    for i in range(OUTPUTS, OUTPUTS + INPUTS):
        moved = f.clone()
        moved[:, i] += 1
        assert (model(x, moved, context)[asked] - u[asked]).abs().max() > 1e-9, "every input is read"


@pytest.mark.parametrize("name", SMALL)
@torch.no_grad()
def test_the_places_of_the_union_do_not_matter(name: str) -> None:
    """Inputs among the outputs, in the same order among themselves, give the same fields."""
    model, (x, f, context) = model_of(name), union()
    assert context.inputs is not None
    assert context.basis is not None
    slots = torch.from_numpy(np.sort(np.random.default_rng(0).permutation(INPUTS + OUTPUTS)[:INPUTS]))
    order = torch.empty(INPUTS + OUTPUTS, dtype=torch.long)
    order[slots] = OUTPUTS + torch.arange(INPUTS)
    order[[i for i in range(INPUTS + OUTPUTS) if i not in slots]] = torch.arange(OUTPUTS)
    mixed = replace(context, inputs=context.inputs[:, order], basis=context.basis[:, order])
    u = model(x, f, context)[:, order]
    torch.testing.assert_close(model(x[:, order], f[:, order], mixed), u)


@pytest.mark.parametrize("name", ["deeponet", "deeponet-set"])
@torch.no_grad()
def test_deeponet_answers_anywhere_whatever_else_is_asked(name: str) -> None:
    model, (x, f, context) = model_of(name), union()
    assert context.inputs is not None
    u = model(x, f, context)
    kept = torch.cat([torch.arange(4), torch.arange(OUTPUTS, OUTPUTS + INPUTS)])
    some = model(x[:, kept], f[:, kept], Context(inputs=context.inputs[:, kept]))
    torch.testing.assert_close(some, u[:, kept])


@pytest.mark.parametrize("name", ["norm", "hpm"])
@torch.no_grad()
def test_weights_which_are_of_the_inputs_change_nothing(name: str) -> None:
    model, (x, f, context) = model_of(name), union()
    assert context.inputs is not None
    weighted = replace(context, weights=context.inputs.double() * torch.rand(INPUTS + OUTPUTS))
    torch.testing.assert_close(model(x, f, weighted), model(x, f, context))


@pytest.mark.parametrize("name", SMALL)
@torch.no_grad()
def test_padded_points_change_nothing(name: str) -> None:
    model, (x, f, context) = model_of(name), union()
    assert context.inputs is not None
    assert context.basis is not None
    u = model(x, f, context)

    def longer(v: Tensor) -> Tensor:
        return torch.cat([v, torch.zeros_like(v[:, :5])], dim=1)

    mask = longer(torch.ones_like(context.inputs))
    padded = Context(mask=mask, inputs=longer(context.inputs), basis=longer(context.basis))
    torch.testing.assert_close(model(longer(x), longer(f), padded)[:, :-5], u)


@torch.no_grad()
def test_chunks_with_and_without_inputs_give_the_same_as_the_whole() -> None:
    """Streaming: the first chunks only ask. NORM numbers its nodes, and says that it cannot."""
    model, (x, f, context) = model_of("hpm"), union()
    torch.testing.assert_close(lrsa.stream(model, x, f, context, chunk=9), model(x, f, context))
    with pytest.raises(LrsaError, match="node_index=False"):
        lrsa.stream(model_of("norm"), x, f, context, chunk=9)


@torch.no_grad()
def test_norm_is_the_published_formula_on_two_node_sets() -> None:
    """fc0, GELU, fc01; a layer of the inputs; GELU(Φ_out G Φ_in⁺); two layers of the outputs without GELU."""
    model, (x, f, context) = model_of("norm"), union()
    assert isinstance(model, NORM)
    assert context.basis is not None
    outside, inside = context.basis[:, :OUTPUTS], context.basis[:, OUTPUTS:]

    def spectral(block: nn.Module, h: Tensor, to: Tensor, of: Tensor) -> Tensor:
        weight = block.mix.mix.weight  # pyright: ignore
        return to @ torch.einsum("bkc,kco->bko", torch.linalg.pinv(of) @ h, weight)

    first, crossing, *rest = model.blocks
    index = torch.linspace(0, 1, INPUTS).double().expand(BATCH, -1)[..., None]
    h = model.lift_ffn(torch.cat([f[:, OUTPUTS:], index], dim=-1))
    h = gelu(spectral(first, h, inside, inside) + first.ffn(h))  # pyright: ignore
    h = gelu(spectral(crossing, h, outside, inside))
    for block in rest:
        h = spectral(block, h, outside, outside) + block.ffn(h)  # pyright: ignore
    torch.testing.assert_close(model(x, f, context)[:, :OUTPUTS], model.head(h))


@torch.no_grad()
def test_the_crossing_of_hpm_is_the_published_formula() -> None:
    """E_out W LayerNorm(E_inᵀ W_f Norm(h)) W_O without gate, residual and MLP, rows of E of norm 1."""
    model, (x, _, context) = model_of("hpm"), union()
    assert isinstance(model, HPM)
    assert context.basis is not None
    block: Any = model.blocks[1]
    assert isinstance(block, CrossingBlock)
    mix: Any = block.low_rank.mix
    h = torch.randn(BATCH, INPUTS + OUTPUTS, 8).double()
    basis = normalize(context.basis, dim=-1)
    values = mix.project(layer_norm(h, (8,), block.norm_mix.weight, block.norm_mix.bias))  # pyright: ignore
    spectrum = basis[:, OUTPUTS:].transpose(1, 2) @ values[:, OUTPUTS:]
    heads = spectrum.unflatten(-1, (2, 4)).transpose(1, 2)  # (B, h, K, d_h)
    heads = (layer_norm(heads, (MODES, 4), mix.norm.weight, mix.norm.bias) @ mix.weight).transpose(1, 2)
    told = mix.output(basis[:, :OUTPUTS] @ heads.flatten(2))
    torch.testing.assert_close(block(h, x, context)[:, :OUTPUTS], told)


def face_and_part(cases: int, seed: int = 0) -> list[PointSet]:
    """A grid of squares that asks, and a row of points that gives; linear maps of random inputs."""
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 5), indexing="ij")
    part = np.stack([a.ravel() for a in axes], axis=1)
    number = np.arange(30).reshape(6, 5)
    cells = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], -1).reshape(-1, 4)
    face = np.stack([np.linspace(0, 1, INPUTS), np.zeros(INPUTS) + 0.01 * np.arange(INPUTS) ** 2], axis=1)
    gives = np.arange(30 + INPUTS) >= 30
    smooth = np.exp(-np.square(part[:, None] - face).sum(-1))
    made = []
    for _ in range(cases):
        values = rng.standard_normal(INPUTS)
        fields = np.concatenate([smooth @ values, values])
        made.append(
            PointSet(
                x=np.concatenate([part, face]),
                f=np.where(gives, np.concatenate([np.zeros(30), values]), 0)[:, None],
                f_mask=gives[:, None],
                u=fields[:, None],
                u_mask=~gives[:, None],
                cells=cells,
                cell_types=np.full(len(cells), 9, np.uint8),
            )
        )
    return made


def test_either_domain_gets_its_own_eigenfunctions() -> None:
    cases = face_and_part(2)
    context = Collator(False, needs_of(model_of("norm")))(cases).context
    assert context.basis is not None
    assert context.inputs is not None
    assert torch.equal(context.inputs, (torch.arange(41) >= 30).expand(2, -1))
    first = cases[0]
    part = PointSet(first.x[:30], cells=first.cells, cell_types=first.cell_types)
    assert np.array_equal(context.basis[0, :30], eigenbasis(part, MODES))
    assert np.array_equal(context.basis[0, 30:], eigenbasis(PointSet(first.x[30:]), MODES))


@pytest.mark.parametrize("name", SMALL)
def test_a_map_between_domains_is_learned(name: str) -> None:
    torch.manual_seed(0)
    options = {**SMALL[name], "width": 16}
    model = lrsa.create_model(
        name.removesuffix("-set"), coord_dim=2, in_features=1, out_features=1, **options
    )
    batch = Collator(False, needs_of(model))(face_and_part(8))
    assert batch.u is not None
    optimiser, errors = torch.optim.Adam(model.parameters(), 3e-3), []
    for _ in range(160):
        error = (model(batch.x, batch.f, batch.context) - batch.u)[:, :30].square().mean()
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
        errors.append(float(error.detach()))
    assert errors[-1] < 0.2 * errors[0]


def test_it_goes_from_a_file_to_a_prediction(tmp_path: Path) -> None:
    lrsa.write_dataset(tmp_path / "pair.h5", face_and_part(10))
    surrogate = lrsa.fit(
        tmp_path / "pair.h5", model="norm", options=SMALL["norm"], epochs=1, out=tmp_path / "run"
    )
    case = face_and_part(1, seed=1)[0]
    assert case.f is not None
    u = lrsa.load(tmp_path / "run").predict(case)
    assert np.isfinite(u).all()
    np.testing.assert_allclose(u, surrogate.predict(case), rtol=1e-5)
    assert case.f_mask is not None
    other = replace(case, f=np.where(case.f_mask, case.f, 99.0))
    np.testing.assert_allclose(surrogate.predict(other)[:30], u[:30], rtol=1e-5)


def test_data_of_one_domain_is_refused_in_one_line() -> None:
    case = PointSet(np.random.default_rng(0).random((30, 2)), f=np.ones((30, 1)))
    with pytest.raises(LrsaError, match=r"--model\.domain-change 0"):
        Collator(False, needs_of(model_of("norm")))([case])


def test_other_numbers_of_sensors_and_layers_are_refused() -> None:
    x, f, context = union()
    wrong = {**SMALL["deeponet"], "sensors": 12}
    model = lrsa.create_model("deeponet", coord_dim=3, in_features=1, out_features=1, **wrong).double()
    with pytest.raises(LrsaError, match="fixed sensors, and this data has 11 points that give inputs"):
        model(x, f, context)
    for name in ("norm", "hpm"):
        with pytest.raises(LrsaError, match="0 to 3"):
            lrsa.create_model(
                name, coord_dim=3, in_features=1, out_features=1, **{**SMALL[name], "domain_change": 4}
            )
