"""Models by name: options, presets, refusals, models of the user's own."""

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from small import say
from torch import Tensor, nn

import lrsa
from lrsa.context import Context, needs_of
from lrsa.errors import LrsaError
from lrsa.models import registry
from lrsa.models.listing import ModelNames
from lrsa.models.operator import LRSA

DATA: dict[str, Any] = {"coord_dim": 2, "in_features": 1, "out_features": 3}


class Mine(nn.Module):
    """A pointwise model with an option of its own."""

    def __init__(self, coord_dim: int, in_features: int, out_features: int, breadth: int = 4) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(coord_dim + in_features, breadth), nn.Linear(breadth, out_features)
        )

    def forward(self, x: Tensor, f: Tensor, context: Context | None = None) -> Tensor:
        return self.net(torch.cat([x, f], dim=-1))


def test_models_are_listed_in_order_and_lrsa_is_among_them() -> None:
    names = lrsa.list_models()
    assert "lrsa" in names
    assert names == sorted(names)


@pytest.mark.parametrize("name", lrsa.list_models())
def test_every_listed_model_takes_what_the_data_decides_and_has_defaults_for_the_rest(name: str) -> None:
    parameters = inspect.signature(registry.get(name).build()).parameters
    assert tuple(parameters)[:3] == registry.DATA_ARGUMENTS
    assert all(option.default is not option.empty for option in registry.model_options(name).values())


@pytest.mark.parametrize("name", lrsa.list_models())
def test_the_kinds_of_data_are_those_that_the_model_can_use(name: str) -> None:
    kinds, options = registry.get(name).data, registry.model_options(name)
    with torch.device("meta"):
        model = lrsa.create_model(name, **DATA)
    needs = needs_of(model)
    geometry, grid_only = needs.edges is not None or needs.eigenfunctions > 0, needs.grid
    assert ("points" in kinds, "grid" in kinds) == (not grid_only, grid_only)
    assert ("mesh" in kinds) == geometry
    assert ("structured" in kinds) == (grid_only or geometry or bool({"structured", "local"} & set(options)))


@cache
def row_of(name: str) -> list[str]:
    """What the table says of a model."""
    entry, data = registry.get(name), {**DATA, "out_features": 1}
    count = sum(parameter.numel() for parameter in lrsa.create_model(name, **data).parameters())
    size = f"{count:,}" if entry.family != "fitted" else "fitted"
    return [name, entry.paper, ", ".join(entry.data), size, ", ".join(entry.all_presets()) or "-"]


def test_the_command_shows_paper_data_and_parameters_of_every_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lrsa.console.console.width", 400)
    lines = say(capsys, "models").splitlines()
    table = [re.split(r" {2,}", line.strip()) for line in lines]
    assert table[0] == ["model", "paper", "takes", "parameters", "published for"]
    assert table[1:-2] == [row_of(name) for name in lrsa.list_models()]
    assert lines[-2].startswith("parameters: default options, two coordinates, one input, one field")
    assert all(f"{kind} = " in lines[-1] for kind in registry.KINDS)


def test_a_narrow_console_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    said = say(capsys, "models")
    assert "…" not in said
    for name in lrsa.list_models():
        assert re.search(rf"^{name} .* {row_of(name)[3]} ", said, re.M), name


def test_the_names_of_models_are_a_list_that_shows_itself_as_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lrsa.console.console.width", 400)
    names = lrsa.list_models()
    assert repr(names) == repr(list(names))
    few = ModelNames(["fno", "lrsa"])
    assert few == ["fno", "lrsa"]
    shown = [re.split(r" {2,}", line.strip()) for line in str(few).splitlines()]
    assert shown[1:3] == [row_of("fno"), row_of("lrsa")]
    page = few._repr_html_()
    assert page.count("<tr>") == 3
    assert all(f"<td>{cell}</td>" in page for name in few for cell in row_of(name))


def test_a_model_is_made_from_options() -> None:
    model = lrsa.create_model("lrsa", **DATA, width=16, depth=3, heads=2, rank=7)
    assert isinstance(model, LRSA)
    assert (len(model.blocks), model.head.in_features, model.head.out_features) == (3, 16, 3)
    assert model(torch.rand(2, 5, 2), torch.rand(2, 5, 1)).shape == (2, 5, 3)


def test_a_model_is_made_from_a_preset_and_options_go_before_it() -> None:
    with torch.device("meta"):
        preset = lrsa.create_model("lrsa", preset="irregular-darcy")
        changed = lrsa.create_model("lrsa", preset="irregular-darcy", rank=8, depth=2, out_features=5)
    assert isinstance(preset, LRSA)
    assert isinstance(changed, LRSA)
    assert preset.get_parameter("blocks.0.mix.latents").shape == (32, 64)
    assert changed.get_parameter("blocks.0.mix.latents").shape == (8, 64)
    assert (len(preset.blocks), len(changed.blocks), changed.out_features) == (4, 2, 5)


def test_what_is_unknown_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(LrsaError, match=r'no model "lrsaa"\. Did you mean lrsa\?'):
        lrsa.create_model("lrsaa", **DATA)
    with pytest.raises(LrsaError, match=r'no model "zzz"\. There are: .*lrsa'):
        lrsa.create_model("zzz", **DATA)
    with pytest.raises(LrsaError, match=r'"lrsa" has no option "widht"\. Did you mean width\?'):
        lrsa.create_model("lrsa", **DATA, widht=64)
    with pytest.raises(LrsaError, match=r'no preset "elastic"\. Did you mean elasticity\?'):
        lrsa.create_model("lrsa", preset="elastic")


def test_the_shape_of_the_data_must_be_given() -> None:
    with pytest.raises(LrsaError, match=r'"lrsa" needs in_features, or a preset'):
        lrsa.create_model("lrsa", coord_dim=2, out_features=1)


def test_a_registered_model_has_options_and_presets_like_any_other() -> None:
    lrsa.register("mine", Mine, {"broad": {**DATA, "breadth": 9}})
    assert "mine" in lrsa.list_models()
    assert set(registry.model_options("mine")) == {"breadth"}
    for model, breadth in (
        (lrsa.create_model("mine", **DATA), 4),
        (lrsa.create_model("mine", **DATA, breadth=6), 6),
        (lrsa.create_model("mine", preset="broad"), 9),
        (lrsa.create_model("mine", preset="broad", breadth=2), 2),
    ):
        assert isinstance(model, Mine)
        assert model.net[0].out_features == breadth
        assert model(torch.rand(1, 5, 2), torch.rand(1, 5, 1)).shape == (1, 5, 3)
    with pytest.raises(LrsaError, match=r'"mine" has no option "bread"\. Did you mean breadth\?'):
        lrsa.create_model("mine", **DATA, bread=6)
    with pytest.raises(LrsaError, match=r'no preset "brood"\. Did you mean broad\?'):
        lrsa.create_model("mine", preset="brood")


def test_a_model_that_does_not_take_the_data_is_refused() -> None:
    def shapeless(coord_dim: int, depth: int = 2) -> nn.Module:
        return nn.Linear(coord_dim, depth)

    with pytest.raises(LrsaError, match=r'"shapeless" must take .*; it lacks in_features, out_features'):
        lrsa.register("shapeless", shapeless)
    assert "shapeless" not in lrsa.list_models()


def test_what_tests_register_does_not_stay() -> None:
    assert "mine" not in lrsa.list_models()


def test_the_table_of_baselines_in_the_docs_names_every_published_model_and_what_it_takes():
    page = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text()
    named = dict(re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+ \| ([^|]+) \|", page, re.M))
    published = {name for name in registry.networks() if registry.get(name).family == "published"}
    assert named == {name: ", ".join(registry.get(name).data) for name in published}
