"""Geo-FNO against both scripts of its repository."""

from collections.abc import Mapping
from pathlib import Path

from references import Golden, Where, check_parity, files, load
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.models.baselines.geo_fno import GeoFNO, Version


@files("geofno_elasticity_v1")
def test_parity_geo_fno_v1(path: Path) -> None:
    _check(load(path), "v1")


@files("geofno_elasticity_v2")
def test_parity_geo_fno_v2(path: Path) -> None:
    _check(load(path), "v2")


def _check(golden: Golden, version: Version) -> None:
    c = golden.config
    modes = (c["modes1"], c["modes2"])
    model = GeoFNO(
        golden.inputs["u"].shape[-1],
        0,
        c["out_channels"],
        width=c["width"],
        modes=modes,
        grid=(c["s1"], c["s2"]),
        box=(0.0, 1.0),
        deformation_width=c["iphi_width"],
        code_dim=golden.inputs["code"].shape[-1],
        version=version,
    )
    names = {}
    for part in ("weight", "bias"):
        names |= {f"model.fc0.{part}": Where(f"lift.{part}"), f"model.b4.{part}": Where(f"point_bias.{part}")}
        names |= {f"model.fc{n + 1}.{part}": Where(f"project.{2 * n}.{part}") for n in (0, 1)}
        names |= {f"model.b{k}.{part}": Where(f"grid_bias.{k}.{part}") for k in range(4)}
        names |= {f"model.w{k + 1}.{part}": Where(f"skips.{k}.{part}") for k in range(3)}
        names |= {
            f"model_iphi.fc0.{part}": Where(f"deformation.features.{part}"),
            f"model_iphi.fc_code.{part}": Where(f"deformation.code.{part}"),
        }
        hidden = len(model.deformation.layers)
        names |= {
            f"model_iphi.fc{k + 1}.{part}": Where(f"deformation.layers.{k}.{part}") for k in range(hidden)
        }
        names |= {f"model_iphi.fc{hidden + 1}.{part}": Where(f"deformation.last.{part}")}
    every = slice(None)
    for k in range(5):
        names |= {
            f"model.conv{k}.weights1": Where(f"spectral.{k}", (every, every, slice(0, modes[0]))),
            f"model.conv{k}.weights2": Where(f"spectral.{k}", (every, every, slice(modes[0], None))),
        }

    def run(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
        return model(inputs["u"], None, Context(globals=inputs["code"]))

    check_parity(golden, model, names, run)
