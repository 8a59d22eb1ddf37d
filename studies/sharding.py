"""Training steps of LRSA on two processes beside one: peak memory, time, and the share of it in exchanges.

    python studies/sharding.py [memory] [points] [cases] [--out results]

Every part runs in fresh processes of one thread each, started by torchrun where there are two. Memory is the
peak of two steps above the level before the first. Speed, of processes that share the points of a case or the
cases of a batch, needs two idle cores: both sides take turns, and the fastest step of each counts. By
processor seconds, in which there is no waiting, it can be told on a busy machine, too. What is measured is
written to sharding.json at once: a run that was stopped goes on, deleting the file starts again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from lrsa.bench.memory import give_back, reset_peak, resident_peak
from lrsa.console import bar
from lrsa.data.writing import write_dataset
from lrsa.files import atomic
from lrsa.parallel.group import Group
from lrsa.parallel.ranks import joined, processes
from lrsa.pointset import PointSet
from lrsa.training.config import versions
from lrsa.training.configure import configured
from lrsa.training.fit import trainer_of
from lrsa.training.loop import Trainer

OPTIONS: dict[str, Any] = {"width": 64, "depth": 4, "heads": 8, "rank": 64, "local": "pointwise"}
MEMORY = {
    "by torch": {"kernels": False},
    "by kernels": {"kernels": True},
    "by torch, in chunks of 8192": {"kernels": False, "chunk": 8192},
    "by torch, in chunks of 2048": {"kernels": False, "chunk": 2048},
}
"""Ways of training, at 200 k points."""
POINTS = 200_000
SPEED = {"points": (1, 32_000, 2), "cases": (4, 8_000, 1)}
"""What two processes share: cases of a batch, points of a case, processes for each case."""
PARTS = ["memory", *SPEED]
STEPS, TURNS = 3, 2
BAR = 0.55


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(**json.loads(options.work))
        return
    file = options.out / "sharding.json"
    measured: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    wanted = [part for part in parts(options.parts) if part not in measured]
    with bar("sharding") as advance, tempfile.TemporaryDirectory() as folder:
        for i, part in enumerate(wanted):
            advance(i, len(wanted), part)
            measured[part] = speed(Path(folder), part) if part in SPEED else memory(Path(folder), part)
            measured["versions"] = versions()
            with atomic(file) as temporary:
                temporary.write_text(json.dumps(measured, indent=1) + "\n")
            with atomic(options.out / "scale.md") as temporary:
                temporary.write_text(page(measured))
        advance(len(wanted), len(wanted), "done")


def parts(named: list[str]) -> list[str]:
    """What is measured one by one."""
    return [part for name in named for part in (MEMORY if name == "memory" else [name])]


def memory(folder: Path, part: str) -> dict[str, Any]:
    data = cases(folder / "large.h5", 1, POINTS)
    asked = {"data": data, "batch": 1, "steps": 2, "train": MEMORY[part]}
    one, two = (together(n, folder, shard_points=n, **asked) for n in (1, 2))
    peaks = [row["peak"] for row in two]
    return {"one": one[0]["peak"], "two": peaks, "ratio": max(peaks) / one[0]["peak"]}


def speed(folder: Path, part: str) -> dict[str, Any]:
    batch, points, shard_points = SPEED[part]
    data = cases(folder / f"{part}.h5", batch, points)
    asked = {"data": data, "batch": batch, "steps": STEPS, "train": {"kernels": True}}
    rows: dict[int, list[dict[str, float]]] = {1: [], 2: []}
    for _ in range(TURNS):
        rows[1] += together(1, folder, shard_points=1, **asked)
        rows[2] += together(2, folder, shard_points=shard_points, **asked)
    one, two = (min(rows[n], key=lambda row: row["seconds"]) for n in (1, 2))
    return {
        "one": one["seconds"],
        "two": two["seconds"],
        "efficiency": one["seconds"] / 2 / two["seconds"],
        "busy": min(row["busy"] for row in rows[1]) / 2 / min(row["busy"] for row in rows[2]),
        "exchanging": two["exchanging"] / two["seconds"],
        "sent": two["sent"],
        "modelled": 4 * two["parameters"] + (exchanged(batch) if shard_points > 1 else 0),
        "load": os.getloadavg()[0],
    }


def together(count: int, folder: Path, **asked: Any) -> list[dict[str, float]]:
    """What each of so many processes measures."""
    told = json.dumps({**asked, "folder": str(folder)})
    agent = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    command = [sys.executable, *(agent if count > 1 else []), __file__, "--work", told]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(count)]


def work(folder: str, data: str, batch: int, steps: int, train: dict[str, Any], shard_points: int) -> None:
    """A few training steps of this process, and what they took."""
    torch.set_num_threads(1)
    give_back()
    with joined(shard_points if processes() > 1 else 1) as ranks:
        trainer = prepared(data, {"batch_size": batch, "epochs": steps, "validation": 0.0, **train}, ranks)
        held = trainer.batch(trainer.batches(0)[0])
        waited = clocked()
        ranks.wait()
        reset_peak(cuda=False)
        before, rows = resident_peak(), []
        for _ in range(steps):
            start, exchanged, sent = time.perf_counter(), waited[0], sent_by(ranks)
            busy = time.process_time()
            trainer.step(held)
            row = {"seconds": time.perf_counter() - start, "exchanging": waited[0] - exchanged}
            rows.append({**row, "sent": sent_by(ranks) - sent, "busy": time.process_time() - busy})
        fastest = min(rows, key=lambda row: row["seconds"])
        parameters = sum(p.numel() for p in trainer.surrogate.model.parameters())
        fastest["busy"] = min(row["busy"] for row in rows)
        told = {**fastest, "peak": resident_peak() - before, "parameters": parameters}
        rank = 0 if ranks.everyone is None else ranks.everyone.rank
        (Path(folder) / f"{rank}.json").write_text(json.dumps(told))
        ranks.wait()


def prepared(data: str, train: dict[str, Any], ranks: Any) -> Trainer:
    config, survey, _ = configured(data, "lrsa", "generated", None, "ours", OPTIONS, train, False, None)
    return trainer_of(Path("none"), replace(config, threads=1), survey.normaliser, ranks)


def exchanged(batch: int) -> int:
    """Bytes that docs/scale.md expects a process to give to the others in the layers of a step."""
    d, layers, h, m = (OPTIONS[name] for name in ("width", "depth", "heads", "rank"))
    return 4 * layers * batch * (h * m + 2 * m * (h + d))


def clocked() -> list[float]:
    """Seconds that this process spends in exchanges from now on, waiting for the others included."""
    spent, exchange = [0.0], Group.reduced

    def reduced(self: Group, values: Tensor, how: Any = dist.ReduceOp.SUM) -> Tensor:
        start = time.perf_counter()
        try:
            return exchange(self, values, how)
        finally:
            spent[0] += time.perf_counter() - start

    Group.reduced = reduced
    return spent


def sent_by(ranks: Any) -> int:
    groups = (ranks.everyone, ranks.data, ranks.points)
    return sum(group.sent for group in groups if group is not None)


def cases(path: Path, count: int, points: int) -> str:
    rng = np.random.default_rng(0)
    made = []
    for _ in range(count):
        x = rng.random((points, 3)).astype(np.float32)
        f = np.sin(x.sum(1, keepdims=True) * 5)
        made.append(PointSet(x, f, f * x[:, :1]))
    write_dataset(path, {"train": made, "test": made[:1]})
    return str(path)


def page(measured: dict[str, Any]) -> str:
    lines = [
        "# Two processes beside one",
        "",
        f"`python studies/sharding.py`: training steps of LRSA (width {OPTIONS['width']}, depth"
        f" {OPTIONS['depth']}, {OPTIONS['heads']} heads, rank {OPTIONS['rank']}) in fp32 with Muon on random"
        " points in the unit cube, every process with one thread; "
        + ", ".join(f"{name} {version}" for name, version in measured["versions"].items())
        + ".",
    ]
    if known := {name: measured[name] for name in MEMORY if name in measured}:
        lines += [
            "",
            f"Peak memory of two steps above the level before the first, one case of {POINTS:,} points,"
            " whose points two processes share:",
            "",
            f"| way | one process, MB | each of two, MB | ratio | bar: ≤ {BAR} |",
            "|---|---|---|---|---|",
        ]
        for name, row in known.items():
            each = ", ".join(f"{peak / 1e6:.0f}" for peak in row["two"])
            verdict = "met" if row["ratio"] <= BAR else "missed"
            lines.append(f"| {name} | {row['one'] / 1e6:.0f} | {each} | {row['ratio']:.3f} | {verdict} |")
        lines += [
            "",
            "In chunks, what does not grow with the points is a part of the peak that two processes do not"
            " share: the scores of a chunk (heads x rank numbers for each point, three times in the backward"
            " pass), gradients and moments of the parameters, and what torch itself needs.",
        ]
    if known := {name: measured[name] for name in SPEED if name in measured}:
        lines += [
            "",
            "Two processes on two cores beside one on one, by kernels, the fastest of"
            f" {TURNS} x {STEPS} steps; efficiency 1 is half the time, or half the processor seconds."
            " Exchange counts the waiting for the other process; load is that of the machine, by others too."
            " Model: the bytes by docs/scale.md.",
            "",
            "| shared | cases x points | one, s | two, s | efficiency | by processor | exchange | sent, MB |"
            " model | load |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        for name, row in known.items():
            batch, points, _ = SPEED[name]
            took = f"{row['one']:.2f} | {row['two']:.2f} | {row['efficiency']:.2f} | {row['busy']:.2f}"
            sent = f"{row['sent'] / 1e6:.4f} | {row['modelled'] / 1e6:.4f} | {row['load']:.1f}"
            exchange = f"{row['exchanging']:.1%}"
            lines.append(f"| {name} | {batch} x {points:,} | {took} | {exchange} | {sent} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
