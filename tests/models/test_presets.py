"""The presets are the rows of the paper's configuration table, parameter counts included."""

from pathlib import Path

import pytest
import torch

import lrsa
from lrsa.models.presets import PRESETS
from lrsa.problems import catalogue
from lrsa.training.choose import for_problem

TABLE = """
elasticity       8 128 8 64  2.1M 1e-3 1e-5  500  1
navier-stokes    8 256 8 32 12.0M 1e-3 1e-5  500  2
plasticity       8 128 8 64  2.8M 1e-3 1e-5  500  8
airfoil          8 128 4 64  2.8M 1e-3 1e-5  500  4
pipe             8 128 4 32  2.8M 1e-3 1e-5  500  4
darcy            8 128 8 64  2.8M 1e-3 1e-5  500  4
irregular-darcy  4  64 4 32  363K 1e-3 1e-5 2000 16
pipe-turbulence  4  64 4 32  363K 1e-3 1e-5 2000 16
heat-transfer    4  64 4 32  363K 1e-3 1e-5 2000 16
composite        4  64 4 32  363K 1e-3 1e-5 2000 16
shapenet-car     8 256 8 64  9.1M 1e-3 1e-5  400  1
airfrans         8 256 8 64  9.1M 3e-4 1e-5  400  1
"""
"""Problem, depth, width, heads, M, parameters, max lr, weight decay, epochs, batch size, as printed."""

ROWS = {row.split()[0]: row.split()[1:] for row in TABLE.strip().splitlines()}
SECOND = {"navier-stokes-rank64": ("navier-stokes", 64), "darcy-rank32": ("darcy", 32)}
"""The ranks that the headline numbers belong to, where the paper's ablation contradicts its table."""

PAGE = Path(__file__).parents[2] / "docs" / "parameters.md"


def parameters(name: str) -> int:
    with torch.device("meta"):
        model = lrsa.create_model("lrsa", preset=name)
    return sum(parameter.numel() for parameter in model.parameters())


def as_printed(count: int) -> str:
    """2.1M, 12.0M, 363K: the way the paper writes counts."""
    return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e3:.0f}K"


def test_there_is_a_preset_for_every_row_and_no_other() -> None:
    assert set(PRESETS) == set(ROWS) | set(SECOND)


@pytest.mark.parametrize("name", PRESETS)
def test_the_parameter_count_is_the_printed_one(name: str) -> None:
    assert as_printed(parameters(name)) == PRESETS[name].printed


@pytest.mark.parametrize("name", ROWS)
def test_a_preset_is_its_row_of_the_table(name: str) -> None:
    preset, row = PRESETS[name], ROWS[name]
    assert [preset.model[key] for key in ("depth", "width", "heads", "rank")] == [int(v) for v in row[:4]]
    assert preset.printed == row[4]
    assert [preset.max_lr, preset.weight_decay] == [float(v) for v in row[5:7]]
    assert [preset.epochs, preset.batch_size] == [int(v) for v in row[7:]]


@pytest.mark.parametrize("name", SECOND)
def test_a_second_preset_differs_in_its_rank_only(name: str) -> None:
    first, rank = SECOND[name]
    assert PRESETS[name].model == {**PRESETS[first].model, "rank": rank}
    assert PRESETS[name].model != PRESETS[first].model


def test_the_model_that_is_made_has_the_sizes_of_its_preset() -> None:
    with torch.device("meta"):
        for name, preset in PRESETS.items():
            model = lrsa.create_model("lrsa", preset=name)
            assert isinstance(model, lrsa.LRSA)
            mixer = model.blocks[-1].mix
            assert isinstance(mixer, lrsa.LowRankSpatialAttention)
            made = (len(model.blocks), mixer.latents.shape[1], mixer.down.heads, mixer.latents.shape[0])
            assert made == tuple(preset.model[key] for key in ("depth", "width", "heads", "rank"))
            assert (model.time is not None) == (name == "plasticity")


def test_the_manual_gives_the_actual_counts() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    page = {
        name.strip("` "): [cell.strip() for cell in row] for _, name, *row, _ in (s.split("|") for s in lines)
    }
    assert set(page) == set(PRESETS)
    for name, (depth, width, heads, rank, hidden, printed, count) in page.items():
        model = PRESETS[name].model
        sizes = [model[key] for key in ("depth", "width", "heads", "rank", "ffn_hidden")]
        assert [int(v) for v in (depth, width, heads, rank, hidden)] == sizes, name
        assert printed == PRESETS[name].printed, name
        assert int(count.replace(",", "")) == parameters(name), name


@pytest.mark.parametrize(("model", "width"), [("transolver", 64), ("gno", 32), ("graph-unet", 8)])
def test_a_scale_makes_no_model_larger_than_it_was_published(model: str, width: int) -> None:
    elasticity = catalogue.get("elasticity")
    assert elasticity.scale("demo").model["width"] == 64
    assert for_problem(elasticity, elasticity.scale("demo"), model).model["width"] == width
