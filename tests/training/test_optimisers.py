"""Muon: batched as matrix by matrix, near torch's, exact where it is AdamW, and resumed to the bit."""

import json
import math
import signal
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from small import WORDS, differ, grid_cases, quick, weights, write
from test_resume import assert_as_if_nothing_had_happened, assert_killed, rows, start, stop_when
from torch import Tensor, nn

from lrsa.errors import LrsaError
from lrsa.models.attention import Attention
from lrsa.models.create import create_model
from lrsa.models.hidden import per_mode, stacked, whole
from lrsa.models.registry import model_options, networks
from lrsa.training.config import TrainConfig
from lrsa.training.fit import train_run
from lrsa.training.optimisers import Hidden, Muon, hidden_matrices, make_optimiser, orthogonal

pytest_plugins = ["small_runs"]
LR, MUON_LR = 2e-3, 1e-2
ALONE = ("f-fno-linear", "lsm")
"""What AdamW trains alone: one has no linear layers inside, the other is better off (results)."""
FORMS: tuple[dict[str, Any], ...] = ({}, {"structured": True}, {"local": "conv"}, {"local": "depthwise"})


def by_hand(gradient: Tensor) -> Tensor:
    """The orthogonalisation of one matrix, as published, in float64."""
    x = gradient.double() / gradient.double().norm()
    x = x.T if x.shape[0] > x.shape[1] else x
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x - 4.7750 * a @ x + 2.0315 * a @ a @ x
    return x.T if gradient.shape[0] > gradient.shape[1] else x


def step_by_hand(weight: Tensor, momentum: Tensor, gradient: Tensor, decay: float) -> None:
    """A step of Muon for one matrix, in place."""
    momentum.mul_(0.95).add_(gradient, alpha=0.05)
    step = by_hand(0.05 * gradient + 0.95 * momentum)
    weight.mul_(1 - MUON_LR * decay).sub_(MUON_LR * 0.2 * math.sqrt(max(weight.shape)) * step)


def gradients(*shape: int) -> Tensor:
    """(n, rows, columns) like those of a training: a few directions carry nearly all."""
    a, b = shape[-2:]
    spread = torch.logspace(0, -4, min(a, b))
    left, right = torch.randn(*shape[:-2], a, min(a, b)), torch.randn(*shape[:-2], min(a, b), b)
    return left * spread @ right


def models() -> list[tuple[str, dict[str, Any]]]:
    """Every registered model, in every form that it has."""
    found = []
    for name in networks():
        known = model_options(name)
        for form in FORMS:
            if set(form) <= set(known):
                options = {"width": 16, "depth": 2, "heads": 4, "rank": 8, **form}
                found.append((name, {k: v for k, v in options.items() if k in known}))
    return found


def build(name: str, options: dict[str, Any]) -> nn.Module:
    return create_model(name, coord_dim=2, in_features=1, out_features=1, **options)


def with_gradients(model: nn.Module) -> nn.Module:
    for p in model.parameters():
        p.grad = gradients(*p.shape).to(p) if p.ndim > 1 else torch.randn_like(p)
    return model


def displaced(model: nn.Module, before: nn.Module) -> dict[str, Tensor]:
    """How far the parameters went."""
    old = dict(before.named_parameters())
    return {name: (p - old[name]).detach() for name, p in model.named_parameters()}


def free(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> nn.ParameterList:
    """Matrices without a model around them, with gradients."""
    made = nn.ParameterList(torch.randn(shape, dtype=dtype) for shape in shapes)
    for p in made:
        p.grad = gradients(*p.shape).to(p)
    return made


def muon(weights: nn.Module, *, lr: float = MUON_LR, decay: float = 0.0) -> Muon:
    """All weights hidden, each one matrix."""
    return Muon(weights, [Hidden(n, p, whole) for n, p in weights.named_parameters()], LR, lr, decay)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (48, 16), (2, 3), (64, 64)])
def test_a_batch_is_orthogonalised_as_matrix_by_matrix_in_float64(shape: tuple[int, int]) -> None:
    batch = gradients(7, *sorted(shape))
    found = orthogonal(batch)
    assert found.dtype == torch.float32
    for ours, gradient in zip(found, batch, strict=True):
        assert (ours - by_hand(gradient)).abs().max() < 1e-5


def test_singular_vectors_stay_and_singular_values_come_near_one() -> None:
    u, s, vh = torch.linalg.svd(torch.randn(20, 30, dtype=torch.float64), full_matrices=False)
    found = u.T @ orthogonal((u * s @ vh)[None])[0] @ vh.T
    assert (found - found.diagonal().diag()).abs().max() < 1e-12
    assert 0.6 < found.diagonal().min() < found.diagonal().max() < 1.3


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_steps_of_a_model_are_those_of_its_matrices_one_by_one(decay: float) -> None:
    """Keys and values, in one weight, are two of them."""
    model = build("lrsa", {"width": 16, "depth": 2, "heads": 4, "rank": 8, "ffn_hidden": 24})
    before = deepcopy(model)
    optimiser = make_optimiser("muon", model, LR, MUON_LR, decay)
    chosen = hidden_matrices(model)
    expected = {h.name: h.weight.detach().double().clone() for h in chosen}
    momenta = {name: torch.zeros_like(weight) for name, weight in expected.items()}
    for _ in range(4):
        with_gradients(model)
        for h in chosen:
            assert h.weight.grad is not None
            parts = 2 if "key_value" in h.name else 1
            triples = (expected[h.name], momenta[h.name], h.weight.grad.double())
            for weight, momentum, gradient in zip(*(t.chunk(parts) for t in triples), strict=True):
                step_by_hand(weight, momentum, gradient, decay)
        optimiser.step()
    assert len(chosen) == 2 * (3 * 3 + 3 * 2)
    for h in chosen:
        went = (expected[h.name] - before.get_parameter(h.name)).norm()
        assert (h.weight - expected[h.name]).norm() < 1e-5 * went, h.name


def test_float64_stays_float64() -> None:
    model = free((8, 6), dtype=torch.float64)
    expected, momentum = model[0].detach().clone(), torch.zeros(8, 6, dtype=torch.float64)
    assert model[0].grad is not None
    step_by_hand(expected, momentum, model[0].grad, 0.0)
    muon(model).step()
    torch.testing.assert_close(model[0].detach(), expected, rtol=1e-12, atol=1e-12)


def test_half_precision_is_orthogonalised_in_float32() -> None:
    batch = gradients(3, 12, 20).bfloat16()
    found = orthogonal(batch)
    assert found.dtype == torch.float32
    assert (found - orthogonal(batch.float())).abs().max() == 0
    model = free((12, 20), dtype=torch.bfloat16)
    before = model[0].detach().clone()
    muon(model).step()
    assert model[0].dtype == torch.bfloat16
    assert not torch.equal(model[0], before)


def test_near_the_muon_of_torch() -> None:
    """Whose products are in bfloat16: least squares with two layers, forty steps."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(24, 48, bias=False), nn.Tanh(), nn.Linear(48, 24, bias=False))
    theirs = deepcopy(net)
    x = torch.randn(256, 24)
    y = torch.sin(x @ torch.randn(24, 24) / 5)
    rival = torch.optim.Muon(
        theirs.parameters(), lr=MUON_LR, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
    )
    losses: list[list[float]] = [[], []]
    initial = deepcopy(net)
    pairs: list[tuple[nn.Module, torch.optim.Optimizer]] = [(net, muon(net)), (theirs, rival)]
    for _ in range(40):
        for values, (each, optimiser) in zip(losses, pairs, strict=True):
            optimiser.zero_grad()
            loss = (each(x) - y).square().mean()
            loss.backward()
            optimiser.step()
            values.append(loss.item())
    assert losses[0][-1] < 0.4 * losses[0][0]
    assert losses[0][-1] == pytest.approx(losses[1][-1], rel=0.02)
    for name, went in displaced(net, initial).items():
        assert (theirs.get_parameter(name) - net.get_parameter(name)).norm() < 0.02 * went.norm()


def test_a_matrix_and_its_transpose_get_transposed_steps() -> None:
    model = free((10, 26), (26, 10))
    assert model[0].grad is not None
    with torch.no_grad():
        model[1].copy_(model[0].T)
    model[1].grad = model[0].grad.T.clone()
    optimiser = muon(model, decay=0.1)
    for _ in range(3):
        optimiser.step()
    assert torch.equal(model[1], model[0].T)


def test_fused_maps_are_stepped_as_separate_ones() -> None:
    """The larger side decides the length of a step, and it is that of a part."""
    fused, how = free((12, 6)), stacked(3)
    separate = nn.ParameterList(part.clone() for part in how(fused[0].detach()))
    assert fused[0].grad is not None
    for p, gradient in zip(separate, how(fused[0].grad), strict=True):
        p.grad = gradient.clone()
    Muon(fused, [Hidden("0", fused[0], how)], LR, MUON_LR).step()
    muon(separate).step()
    assert len(separate) == 3
    for ours, theirs in zip(how(fused[0].detach()), separate, strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=0, atol=1e-6)


def test_keys_and_values_are_two_matrices() -> None:
    (found,) = [h for h in hidden_matrices(nn.ModuleList([Attention(8, 2)])) if "key_value" in h.name]
    key, value = found.matrices(found.weight)
    assert torch.equal(torch.cat([key, value]), found.weight)


def test_complex_matrices_keep_their_singular_vectors_too() -> None:
    z = torch.randn(5, 6, 9, dtype=torch.complex128)
    u, singular, vh = torch.linalg.svd(z, full_matrices=False)
    singular = singular / singular.norm(dim=1, keepdim=True)
    for _ in range(5):
        singular = 3.4445 * singular - 4.7750 * singular**3 + 2.0315 * singular**5
    torch.testing.assert_close(orthogonal(z), u * singular[:, None] @ vh, rtol=0, atol=1e-12)


def test_real_and_imaginary_parts_are_stepped_as_complex_matrices() -> None:
    model = free((2, 3, 5, 4, 2))
    before = model[0].detach().clone()
    Muon(model, [Hidden("0", model[0], per_mode)], LR, MUON_LR).step()
    assert model[0].grad is not None
    step = torch.view_as_complex((before - model[0].detach()) / (MUON_LR * 0.2 * math.sqrt(5)))
    gradient = torch.view_as_complex(model[0].grad)
    for row in range(2):
        for column in range(3):
            found = orthogonal(gradient[row, column].mT[None])[0].mT
            assert (found - step[row, column]).abs().max() < 1e-4


@pytest.mark.parametrize(("name", "options"), models())
def test_every_parameter_is_in_one_group_and_every_hidden_one_moves(
    name: str, options: dict[str, Any]
) -> None:
    model = with_gradients(build(name, options))
    before = deepcopy(model)
    optimiser = make_optimiser("muon", model, LR, MUON_LR, 0.0)
    grouped = [p for group in optimiser.param_groups for p in group["params"]]
    assert sorted(map(id, grouped)) == sorted(map(id, model.parameters()))
    for h in hidden_matrices(model):
        matrices = h.matrices(h.weight)
        assert matrices.ndim == 3
        # A view of all of it: what is added to the matrices is added to the weight.
        assert matrices.data_ptr() == h.weight.data_ptr()
        assert matrices.numel() * (2 if matrices.is_complex() else 1) == h.weight.numel()
    optimiser.step()
    assert all(bool(moved.abs().amax() > 0) for moved in displaced(model, before).values())
    assert all(bool(p.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize(("name", "options"), models())
def test_where_data_comes_in_or_goes_out_nothing_is_hidden(name: str, options: dict[str, Any]) -> None:
    """Nor a norm, a bias, a temperature or a learned query."""
    model = build(name, options)
    names = [h.name for h in hidden_matrices(model)]
    assert bool(names) == (name not in ALONE)
    assert not [n for n in names if n.startswith(("lift", "head.first", "head.last", "encode", "decode"))]
    assert not [n for n in names if n.endswith(("bias", "latents", "latent", "temperature", "original0"))]
    modules = dict(model.named_modules())
    for n in names:
        owner = modules[n.rpartition(".")[0]]
        assert not isinstance(owner, nn.LayerNorm | nn.BatchNorm2d | nn.InstanceNorm2d), n
        assert not isinstance(owner, nn.Conv2d) or owner.groups == 1, n


def test_the_hidden_matrices_of_lrsa() -> None:
    model = build("lrsa", {"width": 16, "depth": 3, "heads": 4, "rank": 8, "local": "depthwise"})
    linear = {
        f"{path}.weight"
        for path, part in model.named_modules()
        if isinstance(part, nn.Linear) and path.startswith("blocks.")
    }
    assert {h.name for h in hidden_matrices(model)} == linear


def test_the_rest_is_stepped_as_by_adamw_to_the_bit() -> None:
    """With the momentum that OneCycle gives it; that of Muon stays."""
    ours = build("lrsa", {"width": 16, "depth": 1, "heads": 2, "rank": 8})
    theirs = deepcopy(ours)
    hidden = {h.name for h in hidden_matrices(ours)}
    muons = make_optimiser("muon", ours, LR, MUON_LR, 1e-2)
    adamw = make_optimiser("adamw", theirs, LR, MUON_LR, 1e-2)
    schedules = [
        torch.optim.lr_scheduler.OneCycleLR(o, [g["lr"] for g in o.param_groups], total_steps=12)
        for o in (muons, adamw)
    ]
    moments = set()
    for _ in range(10):
        with_gradients(ours)
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            q.grad = None if p.grad is None else p.grad.clone()
        for optimiser, schedule in zip((muons, adamw), schedules, strict=True):
            optimiser.step()
            schedule.step()
        rest, matrices = muons.param_groups
        assert matrices["lr"] / rest["lr"] == pytest.approx(MUON_LR / LR, rel=1e-12)
        assert matrices["momentum"] == 0.95
        moments.add(rest["betas"][0])
    assert len(moments) > 5
    for name, p in theirs.named_parameters():
        assert torch.equal(ours.get_parameter(name), p) == (name not in hidden), name


def test_adamw_is_that_of_torch() -> None:
    model = build("lrsa", {"width": 8, "depth": 1, "heads": 2, "rank": 4})
    found = make_optimiser("adamw", model, LR, MUON_LR, 1e-3)
    expected = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-3, fused=True)
    assert type(found) is torch.optim.AdamW
    assert found.param_groups == expected.param_groups


def test_without_a_gradient_nothing_moves() -> None:
    model = free((6, 4), (6, 4), (3, 2))
    before = [p.detach().clone() for p in model]
    optimiser = Muon(model, [Hidden(str(i), model[i], whole) for i in range(2)], LR, MUON_LR)
    model[0].grad, model[1].grad, model[2].grad = None, torch.zeros(6, 4), None
    optimiser.step()
    assert all(torch.equal(p, q) for p, q in zip(model, before, strict=True))
    optimiser.zero_grad()
    optimiser.step()
    assert all(torch.equal(p, q) for p, q in zip(model, before, strict=True))


def test_a_model_without_hidden_matrices_is_left_to_adamw() -> None:
    ours = nn.Linear(3, 4)
    theirs = deepcopy(ours)
    for model, optimiser in (
        (ours, make_optimiser("muon", ours, LR, MUON_LR, 0.0)),
        (theirs, make_optimiser("adamw", theirs, LR, MUON_LR, 0.0)),
    ):
        torch.optim.lr_scheduler.OneCycleLR(
            optimiser, [g["lr"] for g in optimiser.param_groups], total_steps=9
        )
        for p in model.parameters():
            p.grad = torch.ones_like(p)
        optimiser.step()
    assert torch.equal(ours.weight, theirs.weight)


@pytest.mark.parametrize(
    ("field", "value"), [("optimiser", "sgd"), ("muon_lr", 0.0), ("warmup", 1.0), ("warmup", -0.1)]
)
def test_settings_that_make_no_sense_are_refused(field: str, value: object) -> None:
    with pytest.raises(LrsaError, match=f"--train.{field.replace('_', '-')}"):
        TrainConfig(**{field: value})  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("warmup", [0.1, 0.6])
def test_the_peak_comes_when_the_warm_up_is_over(data: Path, warmup: float) -> None:
    quick(data, "run", epochs=10, warmup=warmup, optimiser="muon", max_lr=LR)
    rates = [json.loads(line)["lr"] for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert max(rates) == pytest.approx(LR, rel=0.1)
    assert rates.index(max(rates)) + 1 == round(10 * warmup)


@pytest.mark.usefixtures("home")
@pytest.mark.slow  # of every optimiser; tests/training/test_resume.py kills runs by our recipe
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_killed_run_ends_as_if_nothing_had_happened(precision: str) -> None:
    """A process killed in the first epoch and right after a checkpoint, beside one that was not."""
    data = write(Path("long.h5"), grid_cases(30), grid_cases(2, seed=1))
    settings: dict[str, Any] = {"epochs": 5, "validation": 0.2, "optimiser": "muon", "precision": precision}
    quick(data, "whole", threads=1, **settings)
    words = [word for name, value in settings.items() for word in (f"--train.{name}", value)]
    run = Path("run")
    process = start("train", data, "--out", run, "--threads", "1", *words, *WORDS)
    stop_when(process, lambda: rows(run) >= 1, signal.SIGKILL)
    assert_killed(process, run)
    state = run / "checkpoint" / "state.safetensors"
    before = state.stat().st_mtime_ns if state.exists() else 0
    process = start("resume", run)
    stop_when(process, lambda: state.exists() and state.stat().st_mtime_ns != before, signal.SIGKILL)
    assert_killed(process, run)
    assert rows(run) < settings["epochs"], "it was not interrupted"
    train_run(run)
    assert_as_if_nothing_had_happened(run, Path("whole"))
    quick(data, "other", threads=1, **{**settings, "optimiser": "adamw"})
    assert differ(weights(run), weights(Path("other")))
