"""What kernels and a heap that keeps its memory gain: training step, inference, page faults.

    python studies/kernels.py [--threads 1] [--rounds 5] [--points 11271] [--width 128] [--stream 1000000]
                              [--cpu] [--out results]

The ways take turns in one process; ratios are of the best rounds. With --cpu seconds are those that the
process computed and not those that passed: for one thread, on a machine that others use too.
"""

import argparse
import os
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

import lrsa
from lrsa.console import bar
from lrsa.kernels.stages import why_torch
from lrsa.machine import keep_memory
from lrsa.streaming.stream import CHUNK, apply_whole, stream

DEPTH, HEADS, RANK = 8, 8, 64


@dataclass
class Way:
    """A model, and what computes its blocks."""

    model: nn.Module
    kernels: bool
    points: int
    clock: Callable[[], float]
    steps: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    inference: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x, self.f = torch.rand(1, self.points, 2), torch.rand(1, self.points, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), fused=True)

    def turn(self) -> None:
        """One training step and one prediction."""
        start, faults = self.clock(), page_faults()
        self.optimizer.zero_grad()
        apply_whole(self.model, self.x, self.f, kernels=self.kernels).square().mean().backward()
        self.optimizer.step()
        self.steps.append(self.clock() - start)
        self.faults.append(page_faults() - faults)
        with torch.inference_mode():
            start = self.clock()
            apply_whole(self.model, self.x, self.f, kernels=self.kernels)
            self.inference.append(self.clock() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--points", type=int, default=11271)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--stream", type=int, default=0, help="points of a streamed prediction; 0: none")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clock = time.process_time if options.cpu else time.perf_counter
    given = {"coord_dim": 2, "in_features": 1, "out_features": 1, "width": options.width}
    sizes = {**given, "depth": DEPTH, "heads": HEADS, "rank": RANK}
    if why := why_torch(lrsa.create_model("lrsa", **sizes)):
        raise SystemExit(f"no kernels: {why}")
    ways = {
        name: Way(lrsa.create_model(model, **sizes), kernels, options.points, clock)
        for name, model, kernels in (
            ("LRSA by torch", "lrsa", False),
            ("LRSA by kernels", "lrsa", True),
            ("Transolver", "transolver", False),
        )
    }
    took_turns(ways, options.rounds, "heap as it is")
    before = {name: (min(way.steps[1:]), min(way.faults[1:])) for name, way in ways.items()}
    keep_memory()
    took_turns(ways, options.rounds, "heap kept")
    lines = [
        "# Kernels",
        "",
        f"`python studies/kernels.py --threads {options.threads} --rounds {options.rounds}"
        f" --points {options.points} --width {options.width}"
        f"{f' --stream {options.stream}' if options.stream else ''}{' --cpu' if options.cpu else ''}`;"
        f" torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} shared cores, load"
        f" {os.getloadavg()[0]:.0f}. Depth {DEPTH}, {HEADS} heads, rank {RANK}, one case of {options.points}"
        f" points, width {options.width}; {'seconds of the processor' if options.cpu else 'seconds'}.",
        "",
        "| | step, s | / by torch | / Transolver | inference, s | / by torch | page faults of a step |"
        " heap as it is: step, s | page faults |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows(ways, before),
    ]
    if options.stream:
        lines += ["", streamed(ways["LRSA by torch"].model, options.stream, options.rounds, clock)]
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"kernels-{options.points}-{options.threads}.md"
    path.write_text("\n".join([*lines, ""]))
    print("\n".join(lines))


def took_turns(ways: dict[str, Way], rounds: int, words: str) -> None:
    """Every way once per round, after one turn each to warm up; what was measured before is forgotten."""
    for way in ways.values():
        way.steps, way.faults, way.inference = [], [], []
    with bar(words) as advance:
        for i in range(rounds + 1):
            advance(i, rounds + 1, "by turns")
            for way in ways.values():
                way.turn()


def rows(ways: dict[str, Way], before: dict[str, tuple[float, int]]) -> list[str]:
    step = {name: min(way.steps[1:]) for name, way in ways.items()}
    inference = {name: min(way.inference[1:]) for name, way in ways.items()}
    ours, theirs = "LRSA by torch", "Transolver"
    return [
        f"| {name} | {step[name]:.3f} | {step[name] / step[ours]:.2f} | {step[name] / step[theirs]:.2f} |"
        f" {inference[name]:.3f} | {inference[name] / inference[ours]:.2f} | {min(way.faults[1:])} |"
        f" {before[name][0]:.3f} | {before[name][1]} |"
        for name, way in ways.items()
    ]


def streamed(model: nn.Module, points: int, rounds: int, clock: Callable[[], float]) -> str:
    """A prediction at many points by chunks, both ways by turns."""
    x, f = torch.rand(1, points, 2), torch.rand(1, points, 1)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    with torch.no_grad():
        for kernels in (False, True) * rounds:
            start = clock()
            stream(model, x, f, kernels=kernels)
            seconds[kernels].append(clock() - start)
    plain, fast = (min(seconds[kernels]) for kernels in (False, True))
    return (
        f"Streamed, {points} points by chunks of {CHUNK}: {1e6 * plain / points:.1f} µs a point by torch,"
        f" {1e6 * fast / points:.1f} by kernels: {fast / plain:.2f}."
    )


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


if __name__ == "__main__":
    main()
