"""`lrsa bench`: speed and memory."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lrsa.cli.checking import at_least, words


def bench(
    only: str = "",
    settings: str = "",
    rounds: int = 3,
    threads: str = "2,1",
    device: str = "cpu",
    precision: str = "",
    minutes: float = 10.0,
    compiled: bool = False,
    out: Path = Path("results"),
) -> None:
    """Measure the speed and memory of LRSA beside every model that takes the data, as ratios in one run.

    Training step and inference at the paper's three efficiency settings; writes bench.md, .json and .png,
    anew after every setting.

    Args:
        only: Models, separated by commas (default: all). The table of a setting is always that of one run.
        settings: Of navier-stokes (4096 points), airfoil (11271) and shapenet-car (32186), those to run,
            separated by commas (default: all); the others in the files stay as they are.
        rounds: Rounds in which the models take turns; the best of each counts.
        threads: CPU threads, separated by commas; the first for all models, others for LRSA and Transolver.
        device: cpu, cuda, ...
        precision: Of fp32, bf16 and fp16, separated by commas (default: fp32; on a GPU all three).
        minutes: For the other models, the fastest first, shared by the settings; LRSA and Transolver always
            run, which comes on top.
        compiled: Also run LRSA with compiled blocks; compiling takes a minute or two per setting.
        out: The folder for the results.
    """
    given = dict(locals())
    from lrsa.bench.run import Plan, run_bench, save
    from lrsa.console import console
    from lrsa.errors import LrsaError

    at_least(1, rounds=rounds)
    try:
        counts = [int(word) for word in words(threads)]
    except ValueError:
        raise LrsaError(f"--threads takes numbers separated by commas, not {threads}") from None
    if not counts:
        raise LrsaError("--threads needs a number")
    for count in counts:
        at_least(1, threads=count)
    plan = replace(
        Plan.of(words(settings), words(precision), device),
        only=words(only),
        rounds=rounds,
        threads=counts,
        minutes=minutes,
        compiled=compiled,
    )
    path = save(run_bench(plan, _typed(given), console.print, lambda results: save(results, out)), out)
    console.print(path.read_text())
    console.print(f"table: {path}\npicture: {path.with_suffix('.png')}")


def _typed(given: Mapping[str, Any]) -> str:
    """The command with the options that are not the default ones."""
    usual = inspect.signature(bench).parameters
    typed = ["lrsa bench"]
    for name, value in given.items():
        if value != usual[name].default:
            words = f"{value:g}" if isinstance(value, float) else str(value)
            typed.append(f"--{name}" if value is True else f"--{name} {words}")
    return " ".join(typed)
