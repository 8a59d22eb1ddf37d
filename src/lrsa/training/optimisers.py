"""Optimisers: AdamW as in the paper, and Muon on the hidden matrices with AdamW on the rest.

Muon takes the momentum of each matrix, replaces it by (nearly) the orthogonal matrix that is closest to it,
and steps along that: all directions of a matrix learn at one speed, also those with small gradients.
"""
# pyright: reportPrivateImportUsage=false
# (torch's own optimisers use its _foreach functions too: they save a tenth of a step of Muon.)

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized
from torch.optim.adamw import adamw as step_adamw

from lrsa.models.hidden import Declared, Matrices, whole
from lrsa.training.config import Optimiser
from lrsa.training.repeated_layers import repeated

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the odd polynomial that drives all singular values in (0, 1] towards 1 (K. Jordan, Muon, 2024)."""
MATCHED = 0.2
"""The root mean square of a step over its learning rate: that of AdamW (Liu et al. 2025)."""
SMALLEST = 1e-12
"""A gradient below this norm is none."""


def make_optimiser(
    name: Optimiser, model: nn.Module, max_lr: float, muon_lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """The optimiser of this name; the learning rates of its groups are their peaks."""
    if name == "adamw":
        return adamw(model, max_lr, weight_decay)
    return Muon(model, hidden_matrices(model), max_lr, muon_lr, weight_decay)


def adamw(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """The paper's."""
    return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay, fused=True)


@dataclass(frozen=True)
class Hidden:
    """A weight, and how it holds its matrices."""

    name: str
    weight: nn.Parameter
    matrices: Matrices


def hidden_matrices(model: nn.Module) -> list[Hidden]:
    """The weights of `model` that are hidden matrices (see `models.hidden`), in its order."""
    names = {weight: name for name, weight in model.named_parameters()}
    how: dict[str, Matrices | None] = {}
    for path, module in model.named_modules():
        declared: Declared = getattr(module, "matrices", {})
        for pattern, matrices in declared.items():
            absolute = f"{path}.{pattern}" if path else pattern
            for name in names.values():
                if fnmatchcase(name, absolute):
                    how.setdefault(name, matrices)
    for layer in repeated(model):
        for part in layer.modules():
            if isinstance(part, nn.Linear):
                # Of a weight-normalised layer, the direction: its length is a vector.
                weight = "parametrizations.weight.original1" if is_parametrized(part) else "weight"
                how.setdefault(names[part.get_parameter(weight)], whole)
    found = [Hidden(name, weight, made) for weight, name in names.items() if (made := how.get(name))]
    return [hidden for hidden in found if min(hidden.matrices(hidden.weight).shape[-2:]) > 1]  # no vectors


class Muon(torch.optim.Optimizer):
    """Muon for the hidden matrices of a model, AdamW for its other parameters.

    M <- 0.95 M + 0.05 G,  W <- W - lr · 0.2 · √(larger side) · orthogonal(0.05 G + 0.95 M)

    and decoupled weight decay for both. There are two groups of parameters, the rest and the hidden ones.
    OneCycleLR cycles the `betas` that both groups have, and so the momentum of AdamW alone: a step of Muon is
    as long as its learning rate says, whatever the momentum, which only has to average noise.

    Args:
        model: What is optimised.
        hidden: Its hidden matrices.
        lr: Learning rate of AdamW.
        muon_lr: Learning rate of Muon.
        weight_decay: Of all parameters.
    """

    def __init__(
        self, model: nn.Module, hidden: Sequence[Hidden], lr: float, muon_lr: float, weight_decay: float = 0.0
    ) -> None:
        self.matrices = [h.matrices for h in hidden]
        chosen = {h.weight for h in hidden}
        rest = {"params": [p for p in model.parameters() if p not in chosen], "fused": True}
        matrices = {"params": [h.weight for h in hidden], "lr": muon_lr, "momentum": MOMENTUM}
        defaults = {"lr": lr, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": weight_decay}
        super().__init__([rest, matrices], defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # pyright: ignore
        """One step of both."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rest, hidden = self.param_groups
        self._step_rest(rest)
        self._step_hidden(hidden)
        return loss

    def _step_rest(self, group: dict[str, Any]) -> None:
        """As torch.optim.AdamW, bit for bit."""
        weights = [p for p in group["params"] if p.grad is not None]
        for p in weights:
            if not self.state[p]:
                zeros = {name: torch.zeros_like(p) for name in ("exp_avg", "exp_avg_sq")}
                self.state[p] = {"step": torch.zeros((), dtype=torch.float32, device=p.device), **zeros}
        first, second, steps = (
            [self.state[p][name] for p in weights] for name in ("exp_avg", "exp_avg_sq", "step")
        )
        step_adamw(
            weights,
            [p.grad for p in weights],
            first,
            second,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )

    def _step_hidden(self, group: dict[str, Any]) -> None:
        """All matrices of one shape at a time; what is not a product, by one call for all weights."""
        lr, momentum = group["lr"], group["momentum"]
        pairs = zip(group["params"], self.matrices, strict=True)
        there = [(p, matrices) for p, matrices in pairs if p.grad is not None]
        for p, _ in there:
            if not self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        if not there:
            return
        weights, grads = [p for p, _ in there], [p.grad for p, _ in there]
        averages = [self.state[p]["momentum"] for p in weights]
        torch._foreach_lerp_(averages, grads, 1 - momentum)
        directions = torch._foreach_lerp(grads, averages, momentum)
        torch._foreach_mul_(weights, 1 - lr * group["weight_decay"])
        batches: dict[Any, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for (p, matrices), direction in zip(there, directions, strict=True):
            weight = wide(matrices(p))
            key = (weight.shape[1:], weight.dtype, weight.device)
            batches[key].append((weight, wide(matrices(direction))))
        for (shape, dtype, _), batch in batches.items():
            steps = orthogonal(torch.cat([directions for _, directions in batch])).to(dtype)
            targets = [weight for weight, _ in batch]
            parts = list(steps.split([len(weight) for weight in targets]))
            torch._foreach_add_(targets, parts, alpha=-lr * MATCHED * math.sqrt(shape[-1]))


def wide(matrices: Tensor) -> Tensor:
    """(n, a, b) -> (n, a, b) or transposed, no more rows than columns: fewer products, and larger batches."""
    return matrices.mT if matrices.shape[1] > matrices.shape[2] else matrices


def orthogonal(matrices: Tensor) -> Tensor:
    """(n, a, b), a <= b -> near the closest matrices with orthonormal rows, in fp32 or better.

    X = G / |G|, then five times X <- 3.4445 X - 4.7750 A X + 2.0315 A A X with A = X Xᴴ (Newton-Schulz): the
    singular vectors of G, and singular values between 0.7 and 1.2 unless they are far below its largest.

    The square is completed, a + b A + c A² = c (A + b/2c)² + a - b²/4c: what is added stands on the diagonal,
    and every product writes its memory once.
    """
    a, b, c = COEFFICIENTS
    x = matrices.to(torch.promote_types(matrices.dtype, torch.float32))
    entries = (torch.view_as_real(x) if x.is_complex() else x).flatten(1)  # torch's complex norm is slow
    x = x * torch.linalg.vector_norm(entries, dim=1).clamp(min=SMALLEST).reciprocal()[:, None, None]
    gram, polynomial = (x.new_empty(*x.shape[:2], x.shape[1]) for _ in range(2))
    diagonals = [each.diagonal(dim1=1, dim2=2) for each in (gram, polynomial)]
    following = torch.empty_like(x)  # fresh memory for every product would cost a seventh more
    for _ in range(ITERATIONS):
        torch.bmm(x, x.mH, out=gram)
        diagonals[0].add_(b / (2 * c))
        polynomial.baddbmm_(gram, gram, beta=0, alpha=c)
        diagonals[1].add_(a - b * b / (4 * c))
        torch.bmm(polynomial, x, out=following)
        x, following = following, x
    return x
