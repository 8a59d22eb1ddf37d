"""Cost of LRSA (width 128, depth 8, rank 64) from 10 thousand to 10 million points, and the exactness of it.

    python studies/scaling.py [--threads 2] [--chunk 8192] [--only inference-10000000] [--out results]

Every part runs in a fresh process, whose peak memory is that of the part. What is measured is written to
scaling.json at once: a run that was stopped goes on where it was, and deleting the file starts again. On a
shared machine seconds of waiting count little; processor seconds are given beside them.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import lrsa
from lrsa.console import bar
from lrsa.files import atomic
from lrsa.streaming.stream import CHUNK

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
GIGABYTE = 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=CHUNK)
    parser.add_argument("--only", nargs="*", default=list(PARTS), metavar="PART", choices=[*PARTS])
    parser.add_argument("--part", choices=[*PARTS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        torch.set_num_threads(options.threads)
        torch.manual_seed(0)
        print(json.dumps(PARTS[options.part](options.chunk)))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "scaling.json"
    measured: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    with bar("scaling") as advance:
        for i, part in enumerate(options.only):
            advance(i, len(options.only), part)
            if part not in measured:
                measured[part] = in_fresh_process(part, options.threads, options.chunk)
                with atomic(file) as temporary:
                    temporary.write_text(json.dumps(measured, indent=1) + "\n")
            with atomic(options.out / "scaling.md") as temporary:
                temporary.write_text(page(measured))
            draw(measured, options.out / "scaling.png")
        advance(len(options.only), len(options.only), "done")


def in_fresh_process(part: str, threads: int, chunk: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--part", part, "--threads", str(threads), "--chunk", str(chunk)]
    # Threads that wait sleep: waiting must not count as processor time.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return {"threads": threads, "chunk": chunk, "load": round(os.getloadavg()[0], 1)} | json.loads(told)


def inference(points: int, chunk: int) -> dict[str, float]:
    """The fastest of a few rounds at this size."""
    model, x, f, _ = problem(points)
    with torch.inference_mode():
        lrsa.stream(model, x[:, :chunk], f[:, :chunk], chunk=chunk)  # first touches are not the cost
        rounds = [timed(lambda: lrsa.stream(model, x, f, chunk=chunk)) for _ in range(rounds_of(points))]
    return fastest(rounds) | {"points": points} | about()


def ratio(chunk: int) -> dict[str, float]:
    """100 k and 1 M points by turns in one process."""
    model, x, f, _ = problem(1_000_000)
    few: list[tuple[float, float]] = []
    many: list[tuple[float, float]] = []
    with torch.inference_mode():
        for _ in range(2):
            few += [timed(lambda: lrsa.stream(model, x[:, :100_000], f[:, :100_000], chunk=chunk))]
            many += [timed(lambda: lrsa.stream(model, x, f, chunk=chunk))]
            few += [timed(lambda: lrsa.stream(model, x[:, :100_000], f[:, :100_000], chunk=chunk))]
    a, b = fastest(few), fastest(many)
    return {f"{key} ratio": b[key] / a[key] for key in a} | about()


def training(chunk: int) -> dict[str, float]:
    """One step of AdamW on 1 M points: forward, relative L2, backward, update."""
    model, x, f, u = problem(1_000_000)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def step() -> None:
        relative(lrsa.stream(model, x, f, chunk=chunk), u).backward()
        optimizer.step()

    return fastest([timed(step)]) | {"points": 1_000_000} | about()


def streamed_against_whole(chunk: int) -> dict[str, float]:
    """The relative L2 difference of both at 200 k points."""
    model, x, f, _ = problem(200_000)
    with torch.inference_mode():
        return {"relative": float(relative(lrsa.stream(model, x, f, chunk=chunk), model(x, f)))} | about()


def gradient_against_whole(chunk: int) -> dict[str, float]:
    """The relative difference of the gradient in all parameters at 5000 points in chunks of 700."""
    chunk = 700
    model, x, f, u = problem(5000)
    parameters = list(model.parameters())
    whole = torch.autograd.grad(relative(model(x, f), u), parameters)
    chunked = torch.autograd.grad(relative(lrsa.stream(model, x, f, chunk=chunk), u), parameters)
    flat = [torch.cat([g.flatten() for g in gradients]) for gradients in (chunked, whole)]
    return {"relative": float(relative(*flat)), "chunk": chunk} | about()


PARTS: dict[str, Callable[[int], dict[str, float]]] = {
    "gradient": gradient_against_whole,
    "whole": streamed_against_whole,
    "training": training,
    "ratio": ratio,
    **{f"inference-{n}": lambda chunk, n=n: inference(n, chunk) for n in SIZES},
}


def problem(points: int) -> tuple[lrsa.LRSA, Tensor, Tensor, Tensor]:
    """A model, and points in the unit cube with a feature and a target."""
    x = torch.rand(1, points, 3)
    model = lrsa.LRSA(coord_dim=3, in_features=1, out_features=1, width=128, depth=8, heads=8, rank=64)
    return model, x, (4 * x[..., :1]).sin(), (3 * x[..., 1:2]).cos()


def relative(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).norm() / b.norm()


def rounds_of(points: int) -> int:
    return 3 if points <= 300_000 else 1


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of the processor."""
    start = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def fastest(rounds: list[tuple[float, float]]) -> dict[str, float]:
    return {"seconds": min(r[0] for r in rounds), "processor seconds": min(r[1] for r in rounds)}


def about() -> dict[str, float]:
    """The peak memory of this process, and the machine's matmul rate now."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE
    a, b = torch.rand(4096, 128), torch.rand(128, 128)
    seconds = min(timed(lambda: [a @ b for _ in range(20)])[0] for _ in range(5)) / 20
    return {"peak GB": peak, "matmul GFLOP/s": 2 * 4096 * 128**2 / seconds / 1e9}


def page(measured: dict[str, Any]) -> str:
    """The tables, with what they were made by."""
    inferences = [row for name, row in measured.items() if name.startswith("inference")]
    lines = [
        "# Cost and exactness from 10 thousand to 10 million points",
        "",
        "`python studies/scaling.py`: LRSA of width 128, depth 8, 8 heads, rank 64 with initial weights,"
        " random points in the unit cube, fp32, `lrsa.stream`, seed 0;"
        f" lrsa {lrsa.__version__}, torch {torch.__version__}, Python {platform.python_version()},"
        f" {os.cpu_count()} shared cores. Each row is a process of its own; its peak memory is that of the"
        " whole process, inputs and outputs included. Processor seconds count all threads. The matmul rate"
        " (4096 x 128 by 128 x 128) is that of the moment, beside whatever else the machine did (its load"
        " is given).",
        "",
        "| points, inference | seconds | processor seconds | µs of processor per point | peak memory, GB |"
        " threads | chunk | matmul, GFLOP/s | load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(inferences, key=lambda row: row["points"]):
        lines.append(cells(row))
    if "training" in measured:
        lines += ["", "One training step (forward, relative L2, backward, AdamW) by chunks:", ""]
        lines += [*lines[4:6], cells(measured["training"])]
        lines[-3] = lines[-3].replace("inference", "training step")
    lines += ["", "| what | measured | bar | |", "|---|---|---|---|", *bars(measured)]
    return "\n".join([*lines, "", "![cost against points](scaling.png)", ""])


def cells(row: dict[str, float]) -> str:
    each = 1e6 * row["processor seconds"] / row["points"]
    return (
        f"| {row['points']:,} | {row['seconds']:.1f} | {row['processor seconds']:.1f} | {each:.1f} |"
        f" {row['peak GB']:.2f} | {row['threads']} | {row['chunk']} | {row['matmul GFLOP/s']:.0f} |"
        f" {row['load']} |"
    )


def bars(measured: dict[str, Any]) -> list[str]:
    """What was asked for, beside what was measured; what is missing is not there yet."""
    rows = [
        ("inference-10000000", "peak GB", "10 M points streamed, peak GB", 8),
        ("training", "peak GB", "training step on 1 M points, peak GB", 8),
        ("whole", "relative", "200 k points, streamed against whole, relative L2", 1e-5),
        ("gradient", "relative", "gradient by chunks against whole, 5000 points, relative L2", 1e-5),
        ("ratio", "seconds ratio", "inference time, 1 M / 100 k points, one process", 11.5),
        ("ratio", "processor seconds ratio", "the same in processor seconds", 11.5),
    ]
    return [
        f"| {what} | {measured[part][key]:.3g} | ≤ {bound:g} | {verdict(measured[part][key], bound)} |"
        for part, key, what, bound in rows
        if part in measured
    ]


def verdict(value: float, bound: float) -> str:
    return "met" if value <= bound else "missed"


def draw(measured: dict[str, Any], path: Path) -> None:
    """Processor seconds and peak memory against the number of points."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = sorted(
        (row for name, row in measured.items() if name.startswith("inference")), key=lambda row: row["points"]
    )
    if not rows:
        return
    points = [row["points"] for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    panels = (("processor seconds", "processor seconds"), ("peak GB", "peak memory, GB"))
    for axis, (key, label) in zip(axes, panels, strict=True):
        axis.loglog(points, [row[key] for row in rows], "o-", label="inference, streamed")
        if "training" in measured:
            row = measured["training"]
            axis.loglog(row["points"], row[key], "s", color="C3", label="training step, by chunks")
        axis.set(xlabel="points N", ylabel=label)
        axis.grid(alpha=0.3)
    start = rows[-1]["processor seconds"] / points[-1]
    axes[0].loglog(points, [start * n for n in points], "k:", lw=1, label="proportional to N")
    axes[1].axhline(8, color="k", ls=":", lw=1, label="8 GB")
    for axis in axes:
        axis.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
