"""Peak memory of a training step, in a process of its own for every model; and whether it runs at all."""

import ctypes
import multiprocessing
import resource
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from lrsa.bench.flops import forward_flops
from lrsa.bench.settings import Entrant, Setting
from lrsa.bench.timing import Runner
from lrsa.errors import LrsaError
from lrsa.machine import memory
from lrsa.surrogate.precision import Precision

SHARE = 0.75
"""Of the machine's memory, what one model may take."""
MMAP_THRESHOLD, LARGE = -3, 65536
"""The option of glibc for the bytes from which on a freed block goes back to the system, and its value."""


@dataclass(frozen=True)
class Probe:
    """What a first try of a model showed."""

    parameters: int = 0
    flops: int = 0
    """Of a forward pass, by formula."""
    kernels: tuple[str, ...] = ()
    """Attention kernels taken; none where the attention is written out."""
    peak: int = 0
    """Bytes of two training steps beyond the loaded model: gradients, moments, activations; 0 if unknown."""
    seconds: float = 0.0
    """The second step."""
    refusal: str = ""
    """Why it does not run here, if it does not."""


def probe(
    entrant: Entrant, setting: Setting, device: str, precision: Precision, threads: int, patience: float
) -> Probe:
    """Two training steps in a fresh process, which gets `patience` seconds.

    A compiled model is tried as it is before: its peak memory is not known, all else is the same.
    """
    if entrant.variant == "compiled":
        plain = probe(replace(entrant, variant=""), setting, device, precision, threads, patience)
        return replace(plain, peak=0)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])  # which every optimiser imports
    ours, theirs = context.Pipe(duplex=False)
    arguments = (theirs, entrant, setting, device, precision, threads)
    process = context.Process(target=_child, args=arguments, daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(patience):
            return Probe(refusal=f"its data and two steps take more than {patience:.0f} s")
        return ours.recv()
    except EOFError:
        return Probe(refusal="its process was killed, as happens when memory runs out")
    finally:
        process.kill()
        process.join()
        ours.close()


def _child(
    answer: Connection, entrant: Entrant, setting: Setting, device: str, precision: Precision, threads: int
) -> None:
    most = int(SHARE * memory())
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    torch.set_num_threads(threads)
    give_back()
    try:
        answer.send(_two_steps(Runner(entrant, setting, device, precision)))
    except Exception as error:
        answer.send(Probe(refusal=str(error) if isinstance(error, LrsaError) else _short(error)))


def _two_steps(runner: Runner) -> Probe:
    cuda = torch.device(runner.device).type == "cuda"
    reset_peak(cuda)
    before = torch.cuda.memory_allocated() if cuda else resident_peak()
    runner.step()
    *_, seconds = runner.step()
    peak = (torch.cuda.max_memory_allocated() if cuda else resident_peak()) - before
    flops, kernels = forward_flops(runner.model, runner.batch, runner.precision)
    parameters = sum(parameter.numel() for parameter in runner.model.parameters())
    return Probe(parameters, flops, tuple(kernels), peak, seconds)


def give_back() -> None:
    """From now on what is freed goes back to the system, where that can be asked for."""
    with suppress(AttributeError):
        # Else it stays in holes of the heap, and the same steps need more one time and less another.
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)


def reset_peak(cuda: bool) -> None:
    """From now on the peak is that of the steps, not of making the data. Of the systems, only Linux can."""
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        return
    with suppress(AttributeError):
        # What is freed stays with the process: steps that found room there would seem to need nothing.
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def resident_peak() -> int:
    """Bytes, at once after `reset_peak` those of now; the system counts in KiB, except on macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or "allocate" in text or "out of memory" in text:
        return f"does not fit in {SHARE:.0%} of the memory"
    return f"{type(error).__name__}: {text[:120]}"
