"""Time of a training step and of inference: LRSA beside Transolver and the machine's own matmul rate.

    python benchmarks/step.py [--points 4096] [--width 128] [--depth 8] [--rounds 5] [--threads 2]

The models take turns in one process and the fastest round counts: on a shared machine a time means little,
a ratio of minima from one run means more.
"""

import argparse
import time
from collections.abc import Callable

import torch

from lrsa import create_model


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def step(model: torch.nn.Module, x: torch.Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def infer(model: torch.nn.Module, x: torch.Tensor) -> None:
    with torch.inference_mode():
        model(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("points", 4096), ("width", 128), ("depth", 8), ("rounds", 5), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    x = torch.rand(1, options.points, 2)
    size = {"width": options.width, "depth": options.depth, "heads": 8, "rank": 64}
    data = {"coord_dim": 2, "in_features": 0, "out_features": 1}
    models = {name: create_model(name, **data, **size) for name in ("lrsa", "transolver")}
    optimizers = {name: torch.optim.AdamW(m.parameters(), fused=True) for name, m in models.items()}
    a, b = torch.rand(options.points, options.width), torch.rand(options.width, options.width)
    best: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        row = {"matmul": [seconds(lambda: [a @ b for _ in range(50)]) / 50] * 2}
        for name, model in models.items():
            row[name] = [
                seconds(lambda m=model, o=optimizers[name]: step(m, x, o)),
                seconds(lambda m=model: infer(m, x)),
            ]
        for name, times in row.items():
            best[name] = [min(pair) for pair in zip(times, best.get(name, times), strict=True)]
    n, d = options.points, options.width
    print(f"matmul ({n} x {d}) ({d} x {d}): {2 * n * d**2 / best['matmul'][0] / 1e9:.0f} GFLOP/s")
    print("| model | training step, ms | ratio | inference, ms | ratio |\n|---|---|---|---|---|")
    for name in models:
        (train, run), (train0, run0) = best[name], best["transolver"]
        print(f"| {name} | {1e3 * train:.0f} | {train / train0:.2f} | {1e3 * run:.0f} | {run / run0:.2f} |")


if __name__ == "__main__":
    main()
