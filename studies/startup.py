"""How long `lrsa --help` and `from lrsa import LRSA` take, beside `import torch` in the same run.

    python studies/startup.py [--rounds 7] [--out results]

`import lrsa` alone loads nothing yet; the operator needs torch. Each is a fresh process, the four taking
turns; the best of the rounds counts. On a shared machine seconds of waiting count little; processor seconds
(user and system) are given beside them.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

HELP, PACKAGE, TORCH = "lrsa --help", "from lrsa import LRSA", "import torch"
COMMANDS = {
    HELP: [str(Path(sys.executable).parent / "lrsa"), "--help"],
    "import lrsa": [sys.executable, "-c", "import lrsa"],
    PACKAGE: [sys.executable, "-c", PACKAGE],
    TORCH: [sys.executable, "-c", TORCH],
}
Cost = tuple[float, float]
"""Seconds on the clock and of the processor."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for command in COMMANDS.values():
        cost(command)  # the first start fills the cache of the disk
    rounds = [{name: cost(command) for name, command in COMMANDS.items()} for _ in range(options.rounds)]
    best = {name: least([costs[name] for costs in rounds]) for name in COMMANDS}
    (options.out / "startup.md").write_text(page(best, options.rounds))
    print(page(best, options.rounds))


def cost(command: list[str]) -> Cost:
    """Of one fresh process."""
    start, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - start, os.times()
    children = (after.children_user - before.children_user) + (after.children_system - before.children_system)
    return seconds, children


def least(costs: list[Cost]) -> Cost:
    return min(seconds for seconds, _ in costs), min(processor for _, processor in costs)


def page(best: dict[str, Cost], rounds: int) -> str:
    """The table, with what it was made by, and the bars."""
    lines = [
        "# Start-up",
        "",
        f"`python studies/startup.py --rounds {rounds}`: fresh processes by turns, the best of {rounds};"
        f" lrsa {version('lrsa')}, torch {version('torch')}, Python {platform.python_version()},"
        f" {os.cpu_count()} shared cores, load {os.getloadavg()[0]:.1f}.",
        "",
        "| command | seconds | processor seconds |",
        "|---|---|---|",
        *(f"| `{name}` | {seconds:.3f} | {processor:.3f} |" for name, (seconds, processor) in best.items()),
        "",
        "| what | measured | bar | |",
        "|---|---|---|---|",
    ]
    for i, kind in enumerate(("seconds", "processor seconds")):
        ratio = best[PACKAGE][i] / best[TORCH][i]
        lines.append(f"| `{HELP}`, {kind} | {best[HELP][i]:.3f} | ≤ 0.5 | {verdict(best[HELP][i], 0.5)} |")
        lines.append(f"| `{PACKAGE}` / `{TORCH}`, {kind} | {ratio:.2f} | ≤ 1.3 | {verdict(ratio, 1.3)} |")
    return "\n".join([*lines, ""])


def verdict(value: float, bound: float) -> str:
    return "met" if value <= bound else "missed"


if __name__ == "__main__":
    main()
