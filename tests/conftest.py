"""Small operators and point sets shared by the tests. All are float64 unless said otherwise.

Blocks are computed by torch, as recorded trainings were, but where a test asks for the fixture `kernels`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from matplotlib.figure import Figure
from torch import Tensor, nn

from lrsa.context import Context
from lrsa.kernels import build
from lrsa.models import registry
from lrsa.models.attention import Attention, LowRankSpatialAttention
from lrsa.models.operator import LRSA

os.environ["LRSA_KERNELS"] = "0"
# On some virtual machines half-precision products fail by AMX: `autocast` sees to that, bare models do not.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
settings.register_profile("lrsa", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("lrsa")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that a test registers are gone after it."""
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))


@pytest.fixture(autouse=True)
def _coarse_figures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports are drawn fast, but in the tests of reports: placing the parts of a figure takes its time."""
    if "report" not in request.path.parts:
        monkeypatch.setattr("lrsa.report.figures._figure", _coarse_figure)


@contextmanager
def _coarse_figure(path: Path, size: tuple[float, float]) -> Iterator[Figure]:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=size)
    yield figure
    figure.savefig(path, dpi=30)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Blocks by kernels, which are compiled once for all processes of the tests."""
    if build.why_none():
        pytest.skip(build.why_none() or "")
    home = os.environ.get("LRSA_HOME")
    monkeypatch.setenv("LRSA_KERNELS", "1")
    monkeypatch.setenv("LRSA_HOME", str(tmp_path_factory.getbasetemp().parent / "kernels-home"))
    build.library()
    if home is None:
        monkeypatch.delenv("LRSA_HOME")
    else:
        monkeypatch.setenv("LRSA_HOME", home)


@dataclass(frozen=True)
class Points:
    """A batch of point sets of one feature, with a ragged mask and uneven weights to use or not."""

    x: Tensor
    f: Tensor
    mask: Tensor
    weights: Tensor

    def context(self, kind: str) -> Context:
        """`plain`, `mask`, `weights` or `mask and weights`."""
        return Context(
            mask=self.mask if "mask" in kind else None, weights=self.weights if "weights" in kind else None
        )

    def leaves(self) -> "Points":
        """The same values, asking for gradients."""
        x, f, w = (t.detach().clone().requires_grad_() for t in (self.x, self.f, self.weights))
        return replace(self, x=x, f=f, weights=w)


KINDS = ("plain", "mask", "weights", "mask and weights")
WIDTH, HEADS, RANK = 16, 4, 5
ABLATIONS: dict[str, dict[str, bool]] = {
    "paper": {},
    "no latent attention": {"latent_attention": False},
    "symmetric": {"symmetric": True},
    "qk_norm": {"qk_norm": True},
    "symmetric with qk_norm": {"symmetric": True, "qk_norm": True},
}
ablations = pytest.mark.parametrize("options", ABLATIONS.values(), ids=ABLATIONS.keys())


def make_points(batch: int, points: int, coord_dim: int = 2, seed: int = 0) -> Points:
    """Random points; sample b of the mask keeps a prefix of at least one point, the last one all of them."""
    generator = torch.Generator().manual_seed(seed)

    def rand(*shape: int) -> Tensor:
        return torch.rand(*shape, dtype=torch.float64, generator=generator)

    length = torch.linspace(max(1, points // 3), points, batch).long()
    length[-1] = points
    mask = torch.arange(points)[None, :] < length[:, None]
    x, f = rand(batch, points, coord_dim), 2 * rand(batch, points, 1) - 1
    return Points(x, f, mask, 0.1 + rand(batch, points))


def make_operator(**options: Any) -> LRSA:
    """A small operator with every parameter off its initial value and attention far from uniform."""
    sizes = {"width": WIDTH, "depth": 2, "heads": HEADS, "rank": RANK}
    sizes |= {"ffn_hidden": 12, "latent_ffn_hidden": 20}
    data = {"coord_dim": 2, "in_features": 1, "out_features": 2}
    model = LRSA(**{**data, **sizes, **options}).double()
    unsettle(model)
    return model


def make_mixer(**options: bool) -> LowRankSpatialAttention:
    """The mixer of such an operator."""
    mixer = LowRankSpatialAttention(WIDTH, HEADS, RANK, latent_ffn_hidden=20, **options).double()
    unsettle(mixer)
    return mixer


def features(points: Points) -> Tensor:
    """(B, N, d) features that differ from point to point, for a mixer by itself."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(points.x.shape[-1], WIDTH, dtype=torch.float64, generator=generator)
    return torch.sin(3 * points.x @ weight) + points.f


def unsettle(model: nn.Module, gain: float = 3.0) -> None:
    """Move norms and biases off 1 and 0, and sharpen the softmax, so that nothing agrees by chance."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        for module in model.modules():
            if isinstance(module, Attention):
                module.key_value.weight[: module.key_value.in_features] *= gain
                if module.query is not None:
                    module.query.weight *= gain


def assert_same(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    """Equal up to `tolerance` of the largest expected value (or of 1, where all are smaller)."""
    torch.testing.assert_close(
        actual, expected, rtol=0, atol=tolerance * max(1.0, float(expected.detach().abs().max()))
    )
