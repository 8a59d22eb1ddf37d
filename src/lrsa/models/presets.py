"""The rows of the paper's configuration table (section "Model Configurations"), as Python values.

The FFN widths are not printed; they are chosen so that every printed parameter count is met. Two rows
contradict the paper's own ablation: the headline numbers of Navier-Stokes and Darcy belong to the ranks
of `navier-stokes-rank64` and `darcy-rank32`.
"""

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Preset:
    """One row: the model, the parameter count as printed, the training."""

    model: dict[str, Any]
    printed: str
    epochs: int
    batch_size: int
    max_lr: float = 1e-3
    weight_decay: float = 1e-5

    def at_rank(self, rank: int) -> "Preset":
        return replace(self, model={**self.model, "rank": rank})


def _model(
    coord_dim: int,
    in_features: int,
    out_features: int,
    depth: int,
    width: int,
    heads: int,
    rank: int,
    ffn_hidden: int,
    time: bool = False,
) -> dict[str, Any]:
    return {key: value for key, value in locals().items() if key != "time" or value}


_SMALL_2D = Preset(_model(2, 1, 1, 4, 64, 4, 32, 92), "363K", epochs=2000, batch_size=16)
_SMALL_3D = Preset(_model(3, 1, 1, 4, 64, 4, 32, 92), "363K", epochs=2000, batch_size=16)

PRESETS: dict[str, Preset] = {
    "elasticity": Preset(_model(2, 0, 1, 8, 128, 8, 64, 64), "2.1M", epochs=500, batch_size=1),
    "navier-stokes": Preset(_model(2, 10, 1, 8, 256, 8, 32, 440), "12.0M", epochs=500, batch_size=2),
    "plasticity": Preset(_model(2, 1, 4, 8, 128, 8, 64, 176, time=True), "2.8M", epochs=500, batch_size=8),
    "airfoil": Preset(_model(2, 0, 1, 8, 128, 4, 64, 176), "2.8M", epochs=500, batch_size=4),
    "pipe": Preset(_model(2, 0, 1, 8, 128, 4, 32, 176), "2.8M", epochs=500, batch_size=4),
    "darcy": Preset(_model(2, 1, 1, 8, 128, 8, 64, 176), "2.8M", epochs=500, batch_size=4),
    "irregular-darcy": _SMALL_2D,
    "pipe-turbulence": _SMALL_2D,
    "heat-transfer": _SMALL_3D,
    "composite": _SMALL_3D,
    "shapenet-car": Preset(_model(3, 4, 4, 8, 256, 8, 64, 200), "9.1M", epochs=400, batch_size=1),
    "airfrans": Preset(_model(2, 5, 4, 8, 256, 8, 64, 200), "9.1M", epochs=400, batch_size=1, max_lr=3e-4),
}
PRESETS["navier-stokes-rank64"] = PRESETS["navier-stokes"].at_rank(64)
PRESETS["darcy-rank32"] = PRESETS["darcy"].at_rank(32)
