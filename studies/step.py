"""Where training steps spend their time: LRSA's, ways of writing it otherwise, and the graph networks'.

    python studies/step.py [--threads 2] [--rounds 7] [--out results]

The share of an operation is that of the profiler in one step; its rate is beside that of the matrix product
(N × d) (d × d) in the same run. The variants take turns in one process; ratios are of the best rounds.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

import lrsa
from lrsa.bench.timing import matmul_rate
from lrsa.console import bar
from lrsa.geometry.neighbours import near_edges

SIZES = ((11271, 128), (32186, 256))
DEPTH, RANK = 8, 64
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
PRODUCTS, PRODUCT_KEYS = "matrix products", ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
GROUPS = {
    "attention, forward": (ATTENTION,),
    "attention, backward": (f"{ATTENTION}_backward",),
    PRODUCTS: PRODUCT_KEYS,
    "LayerNorm": ("aten::native_layer_norm", "aten::native_layer_norm_backward"),
    "GELU": ("aten::gelu", "aten::gelu_backward"),
    "sums and copies": ("aten::add", "aten::add_", "aten::sum", "aten::copy_", "aten::cat", "aten::fill_"),
    "optimiser": ("aten::_fused_adamw_",),
}
GRAPH_GROUPS = {
    PRODUCTS: PRODUCT_KEYS,
    "arithmetic at points and edges": (
        *("aten::add", "aten::add_", "aten::mul", "aten::div", "aten::sum", "aten::clamp_min"),
        *("aten::relu", "aten::threshold_backward", "aten::native_layer_norm", "aten::gelu"),
        *("aten::native_layer_norm_backward", "aten::gelu_backward", "aten::native_batch_norm"),
        "aten::native_batch_norm_backward",
    ),
    "gathers and sums along edges": (
        *("aten::_embedding_bag_forward_only", "aten::_embedding_bag", "aten::embedding_bag", "aten::index"),
        *("aten::index_select", "aten::index_add_", "aten::index_put_", "aten::_index_put_impl_"),
    ),
    "copies": ("aten::copy_", "aten::cat", "aten::fill_"),
}
REST = "the rest"
NEIGHBOURS = 32


@dataclass
class Step:
    """A training step of LRSA on random points."""

    points: int
    width: int
    heads: int = 8
    gelu: str = "none"
    """none: by the error function; tanh: its approximation."""
    fused: bool = True
    """The optimiser."""
    kernel: Callable[[], AbstractContextManager[object]] = nullcontext
    seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.model = lrsa.LRSA(2, 1, 1, self.width, DEPTH, self.heads, RANK)
        for module in self.model.modules():
            if isinstance(module, nn.GELU):
                module.approximate = self.gelu
        self.x, self.f = torch.rand(1, self.points, 2), torch.rand(1, self.points, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=self.fused)

    def __call__(self) -> None:
        start = time.perf_counter()
        with self.kernel():
            self.optimizer.zero_grad()
            self.model(self.x, self.f).square().mean().backward()
            self.optimizer.step()
        self.seconds.append(time.perf_counter() - start)

    def attention_operations(self) -> int:
        """Forward: two products each in the compression, the reconstruction and among the latents."""
        return 4 * self.width * (2 * self.points * RANK + RANK * RANK) * DEPTH


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    command = f"python studies/step.py --threads {options.threads} --rounds {options.rounds}"
    lines = [
        "# Where training steps spend their time",
        "",
        f"`{command}`; torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} shared"
        f" cores. LRSA of depth {DEPTH}, rank {RANK}, 8 heads, FFN as wide as the points, one case.",
    ]
    for points, width in SIZES:
        lines += ["", *shares(points, width)]
    lines += ["", *variants(options.rounds), "", *graphs(), ""]
    (options.out / "step.md").write_text("\n".join(lines))
    print("\n".join(lines))


def shares(points: int, width: int) -> list[str]:
    """The table of one size."""
    step = Step(points, width)
    microseconds, products = profiled(step, GROUPS, warm=3)
    machine = max(matmul_rate(points, width, "cpu", "fp32") for _ in range(5))
    # The backward pass of an attention computes the scores again: five products for the two.
    forward = step.attention_operations()
    operations = {"attention, forward": forward, "attention, backward": 2.5 * forward, PRODUCTS: products}
    total = sum(microseconds.values())
    return [
        f"## {points} points, width {width}",
        "",
        f"Best step {1e3 * min(step.seconds):.0f} ms; the matrix product at {machine / 1e9:.0f} GFLOP/s.",
        "",
        "| operation | share of the step | of the matmul rate |",
        "|---|---:|---:|",
        *(
            f"| {name} | {each / total:.1%} |"
            f" {f'{operations[name] / (1e-6 * each) / machine:.2f}' if name in operations else '-'} |"
            for name, each in microseconds.items()
        ),
    ]


def profiled(
    step: Callable[[], object], groups: Mapping[str, Sequence[str]], warm: int
) -> tuple[dict[str, float], float]:
    """Microseconds of every group and of the rest in one step, and the operations of the matrix products."""
    for _ in range(warm):
        step()
    with profile(activities=[ProfilerActivity.CPU], with_flops=True) as profiler:
        step()
    events = {event.key: event for event in profiler.key_averages()}
    there = {name: [events[key] for key in keys if key in events] for name, keys in groups.items()}
    spent: dict[str, float] = {name: sum(e.self_cpu_time_total for e in some) for name, some in there.items()}
    spent[REST] = sum(e.self_cpu_time_total for e in events.values()) - sum(spent.values())
    return spent, sum(e.flops for e in there[PRODUCTS])


def graphs() -> list[str]:
    """The table of the graph networks."""
    points = SIZES[1][0]
    torch.manual_seed(0)
    x, f = torch.rand(1, points, 3), torch.rand(1, points, 1)
    edges = torch.from_numpy(near_edges(x[0].numpy(), NEIGHBOURS, self_loops=False))
    rows = []
    for name in ("graphsage", "graph-unet", "gno", "mesh-graph-net"):
        model = lrsa.create_model(name, coord_dim=3, in_features=1, out_features=1)
        seconds: list[float] = []

        def step(model: nn.Module = model, seconds: list[float] = seconds) -> None:
            start = time.perf_counter()
            model(x, f, lrsa.Context(edges=edges)).square().mean().backward()
            seconds.append(time.perf_counter() - start)

        spent, _ = profiled(step, GRAPH_GROUPS, warm=1)
        total = sum(spent.values())
        shares = " | ".join(f"{each / total:.0%}" for each in spent.values())
        rows.append(f"| {name} | {min(seconds):.1f} | {shares} |")
    return [
        f"## Graph networks, {points} points of {NEIGHBOURS} neighbours each, default options",
        "",
        f"| model | forward and backward, s | {' | '.join([*GRAPH_GROUPS, REST])} |",
        f"|---|---:|{'---:|' * (len(GRAPH_GROUPS) + 1)}",
        *rows,
    ]


def variants(rounds: int) -> list[str]:
    """The table of what else could be written."""
    points, width = SIZES[0]
    steps = {
        "as it is": Step(points, width),
        "GELU by tanh": Step(points, width, gelu="tanh"),
        "attention as two products and a softmax": Step(
            points, width, kernel=lambda: sdpa_kernel(SDPBackend.MATH)
        ),
        "AdamW not fused": Step(points, width, fused=False),
        "4 heads of 32 channels": Step(points, width, heads=4),
        "2 heads of 64 channels": Step(points, width, heads=2),
    }
    with bar("variants") as advance:
        for i in range(rounds + 1):
            advance(i, rounds + 1, "by turns")
            for step in steps.values():
                step()
    best = {name: min(step.seconds[1:]) for name, step in steps.items()}
    return [
        f"## Variants, {points} points, width {width}",
        "",
        "| variant | step, ms | / as it is |",
        "|---|---:|---:|",
        *(f"| {name} | {1e3 * t:.0f} | {t / best['as it is']:.2f} |" for name, t in best.items()),
    ]


if __name__ == "__main__":
    main()
