"""Equal budgets: the parameters of LRSA, by the width."""

from typing import Any

import pytest

from lrsa.errors import LrsaError
from lrsa.models.create import create_model
from lrsa.models.matching import matched_preset, matched_width, parameter_count
from lrsa.models.registry import get, networks

DATA: dict[str, Any] = {"coord_dim": 2, "in_features": 1, "out_features": 1}


@pytest.mark.parametrize("name", networks())
def test_a_matched_preset_has_about_the_parameters_of_ours(name: str) -> None:
    ours = parameter_count("lrsa", get("lrsa").preset("darcy"))
    theirs = parameter_count(name, matched_preset(name, "darcy"))
    # FNO grows with the square of a width that goes in steps of 8.
    assert theirs == pytest.approx(ours, rel=0.25)


@pytest.mark.parametrize("benchmark", ["irregular-darcy", "plasticity"])
def test_a_mixer_in_our_backbone_differs_from_ours_in_the_width_alone(benchmark: str) -> None:
    ours, theirs = get("lrsa").preset(benchmark), matched_preset("backbone-transolver", benchmark)
    assert {**theirs, "width": ours["width"]} == ours
    assert {"depth", "heads", "rank", "ffn_hidden"} < set(theirs)
    assert theirs.get("time", False) == (benchmark == "plasticity")
    count = parameter_count("backbone-transolver", theirs)
    assert count == pytest.approx(parameter_count("lrsa", ours), rel=0.2)


def test_a_model_that_is_published_for_the_benchmark_keeps_its_options() -> None:
    published, matched = get("hpm").preset("irregular-darcy"), matched_preset("hpm", "irregular-darcy")
    assert {**matched, "width": published["width"]} == published


def test_a_model_matched_with_itself_keeps_its_width() -> None:
    options = {**DATA, "width": 72, "heads": 4, "depth": 3}
    assert matched_width("transolver", options, parameter_count("transolver", options)) == 72


def test_a_matched_width_is_a_multiple_of_the_heads() -> None:
    width = matched_width("transolver", {**DATA, "heads": 6}, 300_000)
    assert width % 24 == 0
    create_model("transolver", **DATA, heads=6, width=width)


def test_nothing_of_a_counted_model_is_filled_with_numbers() -> None:
    # 17 GB of parameters, were they made.
    assert parameter_count("lrsa", {**DATA, "width": 16384, "depth": 2}) > 2e9


def test_a_model_without_a_width_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrsa.models.matching.model_options", lambda _: {})
    with pytest.raises(LrsaError, match='has no option "width"'):
        matched_width("lrsa", DATA, 1000)
