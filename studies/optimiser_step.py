"""What Muon costs in a training step of the demo scale, beside fused AdamW.

    python studies/optimiser_step.py [--rounds 60] [--out results/optimiser-step.md]

Both train the same model on the same batch, by turns in one process on one thread; seconds are those of the
processor, so that others on the machine disturb little. Ratios are of the medians. Beside them stands what
the products of the Newton-Schulz iterations take at the rate of one large product: fp32 cannot do with less.
"""

import argparse
import platform
import statistics
import time
from pathlib import Path

import torch

import lrsa
from lrsa.console import bar
from lrsa.context import Context
from lrsa.files import atomic
from lrsa.machine import keep_memory
from lrsa.problems.catalogue import get
from lrsa.training.config import Optimiser
from lrsa.training.optimisers import ITERATIONS, hidden_matrices, make_optimiser, wide
from lrsa.training.recipes import settings_of

SIZES = {
    "elasticity": {"points": 972, "in_features": 0, "grid": None},
    "darcy": {"points": 484, "in_features": 1, "grid": (22, 22)},
    "airfoil": {"points": 2886, "in_features": 0, "grid": (111, 26)},
}
"""Of one case at the demo scale."""
NAMES: tuple[Optimiser, ...] = ("adamw", "muon")


class Training:
    """A model of the demo scale of a problem, and one step of its training."""

    def __init__(self, problem: str, optimiser: Optimiser) -> None:
        size, scale, recipe = SIZES[problem], get(problem).scale("demo"), settings_of("ours")
        torch.manual_seed(0)
        features, batch = int(size["in_features"]), scale.train["batch_size"]
        options = {"coord_dim": 2, "in_features": features, "out_features": 1, **scale.model}
        self.model = lrsa.create_model("lrsa", **options)
        self.optimiser = make_optimiser(optimiser, self.model, recipe["max_lr"], recipe["muon_lr"], 1e-5)
        self.x = torch.rand(batch, size["points"], 2)
        self.f = torch.rand(batch, size["points"], features) if features else None
        self.context = Context(grid=size["grid"])
        self.seconds: list[float] = []

    def step(self) -> None:
        start = time.process_time()
        self.optimiser.zero_grad()
        self.model(self.x, self.f, self.context).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.seconds.append(time.process_time() - start)


def row(problem: str, rounds: int) -> str:
    pair = [Training(problem, name) for name in NAMES]
    with bar(problem) as advance:
        for i in range(rounds):
            advance(i + 1, rounds, "by turns")
            for training in pair:
                training.step()
    adamw, muon = (statistics.median(training.seconds[3:]) for training in pair)
    least = products(pair[1]) / rate()
    return f"| {problem} | {1e3 * adamw:.1f} | {1e3 * muon:.1f} | {muon / adamw:.3f} | {1e3 * least:.1f} |"


def products(training: Training) -> int:
    """Operations of all iterations of a step: X Xᵀ, its square, and the product with X."""
    total = 0
    for hidden in hidden_matrices(training.model):
        n, a, b = wide(hidden.matrices(hidden.weight)).shape
        total += ITERATIONS * n * (4 * a * a * b + 2 * a**3)
    return total


def rate(size: int = 1024) -> float:
    """Operations of a large product in a second, the fastest of ten."""
    matrix, product, seconds = torch.rand(size, size), torch.empty(size, size), []
    for _ in range(10):
        start = time.process_time()
        torch.mm(matrix, matrix, out=product)
        seconds.append(time.process_time() - start)
    return 2 * size**3 / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("results/optimiser-step.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_memory()
    lines = [
        "# What Muon costs in a step",
        "",
        f"`python studies/optimiser_step.py --rounds {options.rounds}`; torch {torch.__version__}, Python"
        f" {platform.python_version()}, one thread. LRSA as at the demo scale, a step is forward, backward,"
        " clipping and optimiser; AdamW is torch's fused one, Muon ours. Milliseconds of the processor,"
        " medians of turns in one process. Last: Muon's matrix products alone, at the rate of a product of"
        " 1024 x 1024.",
        "",
        "| problem | AdamW, ms | Muon, ms | Muon / AdamW | its products, ms |",
        "|---|---:|---:|---:|---:|",
        *(row(problem, options.rounds) for problem in SIZES),
        "",
    ]
    with atomic(options.out) as path:
        path.write_text("\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
