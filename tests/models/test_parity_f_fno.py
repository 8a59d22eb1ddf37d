"""Both F-FNOs against their references."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from references import Where, check_parity, files, load
from test_parity_fno import nsl_lift_and_head, nsl_options, nsl_run
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.f_fno import FFNO, FFNOLinear

MATRICES = (2, 0, 1, 3)
"""(in, out, modes, 2) laid as (modes, in, out, 2)."""


@files("ffno_nsl")
def test_parity_f_fno_without_feed_forward(path: Path) -> None:
    golden = load(path)
    config = golden.config
    model = FFNOLinear(
        config["space_dim"],
        config["fun_dim"],
        config["out_dim"],
        width=config["n_hidden"],
        depth=config["n_layers"],
        modes=(config["modes"], config["modes"]),
        **nsl_options(config),
    )
    names = nsl_lift_and_head(golden)
    for k in range(config["n_layers"]):
        for axis, ours in enumerate(("rows", "columns")):
            official = f"spectral_layers.{k}.fourier_weight.{axis}"
            names[official] = Where(f"spectral.{k}.{ours}", permute=MATRICES)
    check_parity(golden, model, names, nsl_run(golden))


@files("ffno_fourierflow_mesh2d")
def test_parity_f_fno_on_meshes(path: Path) -> None:
    golden = load(path)
    config = golden.config
    inputs, outputs = config["input_dim"] - 2, golden.output.shape[-1]
    modes = (config["modes_x"], config["modes_y"])
    model = FFNO(2, inputs - 2, outputs, modes=modes, **official_options(config))
    check_parity(golden, model, official_names(config, ("rows", "columns")), run_image)


@files("ffno_fourierflow_grid2d")
def test_parity_f_fno_on_grids(path: Path) -> None:
    golden = load(path)
    config = golden.config
    model = FFNO(
        2,
        config["input_dim"] - 2,
        golden.output.shape[-1],
        modes=(config["modes"], config["modes"]),
        index_grid_input=False,
        padding=0,
        **official_options(config),
    )
    # The official grid class lists the last axis first.
    check_parity(golden, model, official_names(config, ("columns", "rows")), run_image)


def official_options(config: Mapping[str, Any]) -> dict[str, Any]:
    assert config["n_ff_layers"] == 2
    return {
        "width": config["width"],
        "depth": config["n_layers"],
        "factor": config["factor"],
        "share_weights": config["share_weight"],
        "weight_norm": config["ff_weight_norm"],
        "layer_norm": config["layer_norm"],
    }


def official_names(config: Mapping[str, Any], axes: tuple[str, str]) -> dict[str, Where]:
    layers = {"in_proj": "lift", "out.0": "head.0", "out.1": "head.1"}
    names: dict[str, Where] = {}
    for k in range(config["n_layers"]):
        official = f"spectral_layers.{k}."
        layers[f"{official}backcast_ff.layers.0.0"] = f"feed_forward.{k}.0"
        layers[f"{official}backcast_ff.layers.1.0"] = f"feed_forward.{k}.2"
        layers[f"{official}backcast_ff.layers.1.3"] = f"feed_forward.{k}.3"
        for n, axis in enumerate(axes):
            shared = config["share_weight"]
            name = f"fourier_weight.{n}" if shared else f"{official}fourier_weight.{n}"
            names[name] = Where(f"spectral.{0 if shared else k}.{axis}", permute=MATRICES)
    for name, ours in layers.items():
        names[f"{name}.weight_g"] = Where(f"{ours}.parametrizations.weight.original0")
        names[f"{name}.weight_v"] = Where(f"{ours}.parametrizations.weight.original1")
        names[f"{name}.weight"] = Where(f"{ours}.weight")
        names[f"{name}.bias"] = Where(f"{ours}.bias")
    return names


def run_image(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    image = inputs["x"]
    points = image.flatten(1, 2)
    f = points[..., 2:] if points.shape[-1] > 2 else None
    u = model(points[..., :2], f, Context(grid=tuple(image.shape[1:3])))
    return u.unflatten(1, image.shape[1:3])
