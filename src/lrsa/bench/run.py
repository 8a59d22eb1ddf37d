"""The benchmark: who takes part where, the rounds, and the files."""

import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from lrsa.bench.figure import draw
from lrsa.bench.memory import Probe, probe
from lrsa.bench.results import Results, Row
from lrsa.bench.settings import SETTINGS, TWINS, Entrant, Setting, entrants
from lrsa.bench.tables import markdown
from lrsa.bench.timing import Runner, expected, interleave
from lrsa.errors import LrsaError, nearest
from lrsa.files import atomic
from lrsa.machine import check_device, keep_memory
from lrsa.surrogate.precision import Precision

PRECISIONS: dict[str, Precision] = {"fp32": "fp32", "bf16": "bf16", "fp16": "fp16"}
PATIENCE = 240.0
"""Seconds for the data and two steps of one model."""
UNMEASURED = "no time was left: raise --minutes"

Say = Callable[[str], None]
Admitted = list[tuple[Entrant, Probe]]
"""Who takes part, with what the first try showed."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    settings: Sequence[Setting]
    only: Sequence[str] = ()
    """Models; none are all."""
    rounds: int = 3
    threads: Sequence[int] = (2, 1)
    """The first for all models, further ones for LRSA and Transolver."""
    device: str = "cpu"
    precisions: Sequence[Precision] = ("fp32",)
    minutes: float = 10.0
    """For the other models, shared by the settings; LRSA and Transolver run first, which comes on top."""
    compiled: bool = False
    """Also LRSA with compiled blocks."""

    @staticmethod
    def of(settings: Sequence[str], precisions: Sequence[str], device: str) -> "Plan":
        """By names; none are all settings, and all precisions that the device is good for."""
        for given, known, what in ((settings, SETTINGS, "setting"), (precisions, PRECISIONS, "precision")):
            for name in given:
                if name not in known:
                    raise LrsaError(
                        f'no {what} "{name}".{nearest(name, known)} There are: {", ".join(known)}'
                    )
        check_device(device)
        usual = PRECISIONS if torch.device(device).type == "cuda" else ("fp32",)
        return Plan(
            [SETTINGS[name] for name in settings or SETTINGS],
            precisions=[PRECISIONS[name] for name in precisions or usual],
            device=device,
        )


def run_bench(
    plan: Plan, command: str, say: Say, keep: Callable[[Results], object] = lambda results: None
) -> Results:
    """Measure all that the plan asks for; `keep` gets what there is after every setting."""
    results = Results({}, versions(plan.device))
    keep_memory()
    share = 60 * plan.minutes / (len(plan.settings) * len(plan.precisions))
    for setting in plan.settings:
        results.commands[setting.name] = command
        for precision in plan.precisions:
            admitted = _admit(plan, setting, precision, share, results, say)
            for threads in plan.threads:
                some = [one for one in admitted if threads == plan.threads[0] or one[0].model in TWINS]
                say(f"{setting.name}, {precision}, --threads {threads}: {len(some)} models take turns")
                results.rows += _measure(plan, setting, precision, threads, some)
        keep(results)
    return results


def save(results: Results, out: Path) -> Path:
    """bench.md, bench.json and bench.png in the folder `out`; the path of the first.

    What is there of other settings, with the same versions, stays.
    """
    out.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError, KeyError, TypeError, ValueError):
        results = results.beside(Results.load(out / "bench.json"))
    with atomic(out / "bench.json") as temporary:
        temporary.write_text(json.dumps(asdict(results), indent=1) + "\n")
    with atomic(out / "bench.md") as temporary:
        temporary.write_text(markdown(results))
    draw(results, out / "bench.png")
    return out / "bench.md"


def versions(device: str) -> dict[str, str]:
    """Of what the times depend on."""
    cuda = torch.device(device).type == "cuda"
    machine = torch.cuda.get_device_name() if cuda else _processor()
    cores = f"{machine}, {os.cpu_count()} cores"
    return {"torch": torch.__version__, "Python": platform.python_version(), device: cores}


def _processor() -> str:
    """Its vector units, and those for half precision."""
    known = getattr(torch.cpu, "get_capabilities", dict)()  # an older torch does not say
    halves = (name for name in ("avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16") if known.get(name))
    return ", ".join([torch.backends.cpu.get_cpu_capability(), *halves])


def _admit(
    plan: Plan, setting: Setting, precision: Precision, seconds: float, results: Results, say: Say
) -> Admitted:
    """Try every model by itself; those that do not run, or for which there is no time, are listed."""
    admitted: Admitted = []
    where = setting.name if len(plan.precisions) == 1 else f"{setting.name}, {precision}"
    for entrant in _in_order(plan, setting, say):
        twin = entrant.model in TWINS
        left = math.inf if twin else seconds
        if left <= 0:
            results.left_out.append((where, entrant.label, UNMEASURED))
            continue
        say(f"{setting.name}: trying {entrant.label}")
        start = time.perf_counter()
        tried = probe(entrant, setting, plan.device, precision, plan.threads[0], min(PATIENCE, left))
        # A turn is a training step and a prediction.
        turns = 1.4 * tried.seconds * (plan.rounds + 1)
        left -= time.perf_counter() - start
        refusal = tried.refusal
        if not refusal and turns > left:
            refusal = (
                f"a step takes {tried.seconds:.3g} s, for which too little time was left: raise --minutes"
            )
        if refusal:
            results.left_out.append((where, entrant.label, refusal))
        else:
            admitted.append((entrant, tried))
            left -= turns
        seconds = seconds if twin else left
    return admitted


def _in_order(plan: Plan, setting: Setting, say: Say) -> list[Entrant]:
    """LRSA and Transolver, then the others by the time that they take: a slow one starves none."""
    every = entrants(setting, plan.only, plan.compiled)
    twins, others = ([e for e in every if (e.model in TWINS) == first] for first in (True, False))
    if others:
        say(f"{setting.name}: ordering {len(others)} models by a prediction at few points each")
    torch.set_num_threads(plan.threads[0])
    return [*twins, *sorted(others, key=lambda e: expected(e, setting, plan.device))]


def _measure(plan: Plan, setting: Setting, precision: Precision, threads: int, some: Admitted) -> list[Row]:
    """The models by turns; a peak memory belongs to the number of threads at which it was found."""
    torch.set_num_threads(threads)
    if any(entrant.variant == "compiled" for entrant, _ in some):
        # All measurements compile the same code, which beyond a few variants of it would run uncompiled.
        torch._dynamo.reset()
    runners = [Runner(entrant, setting, plan.device, precision) for entrant, _ in some]
    compiling = [_compile(runner) for runner in runners]
    every = interleave(runners, plan.rounds)
    probed = threads == plan.threads[0]
    return [
        Row(
            setting.name,
            entrant.label,
            entrant.size,
            entrant.width(setting),
            precision,
            threads,
            tried if probed else replace(tried, peak=0),
            times,
            seconds,
        )
        for (entrant, tried), times, seconds in zip(some, every, compiling, strict=True)
    ]


def _compile(runner: Runner) -> float | None:
    """Seconds of the first step and the first prediction of a compiled model, nothing of it made before."""
    if runner.entrant.variant != "compiled":
        return None
    from torch._inductor.utils import fresh_cache  # slow to import

    with fresh_cache():
        start = time.perf_counter()
        runner.step()
        runner.infer()
        return time.perf_counter() - start
