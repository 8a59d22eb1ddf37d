"""Every model learns two cases by heart, of each kind of data that it accepts, with what is far away in them.

Near their border the two cases agree in coordinates and features; in the middle they differ, and that shifts
the whole target. A model in which the points do not meet cannot fit both.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial import Delaunay
from torch import Tensor, nn

from lrsa.data.batch import Batch
from lrsa.data.prepare import Collator
from lrsa.models.create import create_model
from lrsa.models.registry import Kind, get, model_options, networks
from lrsa.pointset import PointSet

pytest_plugins = ["small_runs"]
pytestmark = pytest.mark.usefixtures("home")

STEPS, RATE = 300, 1e-2
BORDER = 0.8
"""Of [-1, 1]: where both coordinates are smaller, the cases differ."""
SIDE = {"lsm": 17, "gno": 6, "mesh-graph-net": 6}
"""Points along each axis, where not 8: LSM halves its grid four times, and messages go one edge a layer."""
SIZES: dict[str, Any] = {"width": 32, "depth": 1, "heads": 4, "rank": 16}
OPTIONS: dict[str, dict[str, Any]] = {
    # One factorised layer reaches along the rows and columns only.
    "backbone-f-fno": {"depth": 2},
    "f-fno": {"depth": 2, "modes": (4, 4)},
    "f-fno-linear": {"depth": 2, "modes": (4, 4)},
    "fno": {"width": 16, "modes": 4},
    "lsm": {"width": 8, "heads": 2, "tokens": 2, "bases": 6, "norm": "instance"},
    "norm": {"depth": 2, "modes": 20},
    "flare": {"kv_layers": 1, "ffn_layers": 1},
    "lno": {"mlp_layers": 1},
    "perceiver-io": {"frequencies": 2},
    "geo-fno": {"width": 12, "modes": (3, 3), "grid": (8, 8), "deformation_width": 8},
    "deeponet": {"width": 64, "branch_depth": 3, "trunk_depth": 3},
    "mesh-graph-net": {"width": 16, "depth": 3},
    "gno": {"width": 16, "kernel_width": 32, "depth": 4},
    "graph-unet": {"width": 12, "radii": (0.5, 1.0)},
}
"""Of those for which the sizes are not all."""


def bump(x: np.ndarray) -> np.ndarray:
    """(N, 1) one in the middle, zero beyond the border."""
    return np.cos(np.clip(x / BORDER, -1, 1) * np.pi / 2).prod(axis=1, keepdims=True)


def with_feature(x: np.ndarray, sign: int, **more: Any) -> PointSet:
    """f has a bump up or down, and u is shifted by the mean of f."""
    f = np.sin(2 * x[:, 1:]) + 2 * sign * bump(x)
    u = x[:, :1] + 0.5 * f + 5 * f.mean()
    return PointSet(x.astype(np.float32), f.astype(np.float32), u.astype(np.float32), **more)


def lattice(side: int) -> np.ndarray:
    """(side², 2)."""
    axis = np.linspace(-1, 1, side)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def shaken(side: int) -> np.ndarray:
    """(side², 2) points that are no grid, their mean at zero."""
    x = lattice(side) + np.random.default_rng(0).uniform(-0.05, 0.05, (side**2, 2))
    return x - x.mean(axis=0)


def grid(side: int, sign: int) -> PointSet:
    return with_feature(lattice(side), sign, grid=(side, side))


def structured(side: int, sign: int) -> PointSet:
    """The grid, bent."""
    flat = grid(side, sign)
    bend = 0.2 * np.stack([flat.x[:, 1] ** 2, np.sin(2 * flat.x[:, 0])], axis=1)
    return replace(flat, x=flat.x + bend.astype(np.float32))


def points(side: int, sign: int) -> PointSet:
    return with_feature(np.random.default_rng(0).uniform(-1, 1, (side**2, 2)), sign)


def mesh(side: int, sign: int) -> PointSet:
    """No features: the middle of the mesh is moved, and u is shifted by the mean of the coordinates."""
    still = shaken(side)
    x = still + 0.3 * sign * bump(still)
    u = x[:, :1] + 25 * x.mean()
    return PointSet(x.astype(np.float32), u=u.astype(np.float32), cells=Delaunay(still).simplices)


def mesh_with_feature(side: int, sign: int) -> PointSet:
    return with_feature(shaken(side), sign, cells=Delaunay(shaken(side)).simplices)


CASES: dict[Kind, Callable[[int, int], PointSet]] = {
    "grid": grid,
    "structured": structured,
    "points": points,
    "mesh": mesh,
}


def cases(name: str, kind: Kind) -> list[PointSet]:
    """The two cases for a model."""
    make = mesh_with_feature if (name, kind) == ("norm", "mesh") else CASES[kind]
    return [make(SIDE.get(name, 8), sign) for sign in (1, -1)]


def pairs() -> list[Any]:
    """Every model with the kinds it accepts; what takes any set of points is given those of a mesh too."""
    accepted = [(name, kind) for name in networks() for kind in CASES if kind in get(name).data]
    also: list[tuple[str, Kind]] = [
        (name, "mesh") for name in networks() if "points" in (data := get(name).data) and "mesh" not in data
    ]
    return [
        pytest.param(*pair, marks=pytest.mark.slow if pair in also or _like_another(*pair) else ())
        for pair in [*accepted, *also]
    ]


def _like_another(name: str, kind: Kind) -> bool:
    """A bent grid, where a flat one or LRSA in the same backbone shows it already."""
    return kind == "structured" and ("grid" in get(name).data or get(name).family == "backbone")


def build(name: str, kind: Kind, in_features: int) -> nn.Module:
    """A small model, in its form for structured grids where it has one."""
    form = {"structured": True, "local": "depthwise"} if kind == "structured" else {}
    options = {**SIZES, **form, **OPTIONS.get(name, {})}
    known = {key: value for key, value in options.items() if key in model_options(name)}
    return create_model(name, coord_dim=2, in_features=in_features, out_features=1, **known)


def error(model: nn.Module, batch: Batch) -> Tensor:
    """Relative L2."""
    assert batch.u is not None
    return (model(batch.x, batch.f, batch.context) - batch.u).norm() / batch.u.norm()


def learn(model: nn.Module, batch: Batch) -> float:
    """The error after at most STEPS steps on the full batch."""
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATE, total_steps=STEPS, pct_start=0.05, cycle_momentum=False
    )
    found = float("inf")
    for step in range(STEPS):
        optimiser.zero_grad()
        error(model.train(), batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 10 == 9:
            with torch.no_grad():
                found = float(error(model.eval(), batch))
            if found < 0.045:
                break
    return found


@pytest.mark.parametrize(("name", "kind"), pairs())
def test_two_cases_are_learnt_by_heart(name: str, kind: Kind) -> None:
    both = cases(name, kind)
    model = build(name, kind, 0 if both[0].f is None else 1)
    assert learn(model, Collator.of(model, weights=False)(both)) < 0.05


@pytest.mark.parametrize("make", [*CASES.values(), mesh_with_feature])
@pytest.mark.parametrize("side", {8, *SIDE.values()})
def test_points_that_do_not_meet_cannot_learn_them(make: Callable[[int, int], PointSet], side: int) -> None:
    """Where both cases show a point the same, the best answer to both is in the middle of what they want."""
    one, other = (make(side, sign) for sign in (1, -1))
    assert one.u is not None
    assert other.u is not None
    same = (one.x == other.x).all(axis=1)
    same &= True if one.f is None or other.f is None else (one.f == other.f)[:, 0]
    least = np.square(one.u - other.u)[same].sum() / 2
    assert least / (np.square(one.u).sum() + np.square(other.u).sum()) > 0.3**2
