"""A trained surrogate as a program that runs without this package, checked against the surrogate.

The program holds weights and normalisation and leaves the numbers of cases B and points N free. Before it
gets its name, the written file is read back and run on other B and N than it was traced with.
"""

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from lrsa.data.normalise import Normaliser
from lrsa.errors import Failure, LrsaError
from lrsa.exporting.formats import FORMATS, Run
from lrsa.exporting.program import Program, Signature, traceable
from lrsa.files import atomic, remove_left
from lrsa.surrogate.surrogate import Surrogate, load
from lrsa.training.config import RunConfig
from lrsa.version import __version__

TRACED = (2, 64)
"""Cases and points of the trace. Neither may be 1, a size that traces take for fixed."""
CHECKED = ((1, 37), (3, 501), (5, 1000))
"""Cases and points of the checks."""
TOLERANCE = 1e-4
"""Largest relative L2 between program and surrogate, less the mean of the targets, that is accepted."""


@dataclass(frozen=True)
class Export:
    """A program that was written."""

    path: Path
    signature: Signature
    checked: Sequence[tuple[int, int]]
    """Cases and points of every check."""
    difference: float
    """Largest relative L2 between program and surrogate in the checks, less the mean of the targets."""
    members: int = 1
    """Of the ensemble, of which the program is the first."""


def export_run(run: Path, format: str, out: Path | None = None) -> Export:
    """Write the surrogate of a run (its best epoch) as a program; by default beside its weights."""
    if format not in FORMATS:
        raise LrsaError(f'no format "{format}". There are: {", ".join(FORMATS)}')
    kind = FORMATS[format]
    out = out or run / f"model{kind.suffix}"
    if out.suffix != kind.suffix:
        raise LrsaError(f"{out} is to be a {format} program: give its name the suffix {kind.suffix}")
    kind.check_installed()
    config, surrogate = RunConfig.load(run), load(run)
    surrogate.kernels = False  # a program is made of torch's operators
    signature = Signature.of(surrogate, config)
    remove_left(out)
    with atomic(out) as temporary, _quiet():
        program = _traced(surrogate, signature, config.model)
        try:
            kind.write(program, signature, _about(config, signature), temporary)
        except torch.onnx.OnnxExporterError as error:
            raise LrsaError(
                f"{config.model} cannot be exported to ONNX, {_lacking(error)}. Take --format torch, or train"
                " --model lrsa"
            ) from error
        checked, difference = _check(kind.read(temporary), surrogate, signature)
    return Export(out, signature, checked, difference, 1 + len(surrogate.others))


def _traced(surrogate: Surrogate, signature: Signature, model: str) -> ExportedProgram:
    program = Program(surrogate, signature.grid).eval()
    try:
        with torch.no_grad(), traceable(surrogate.model):
            made = torch.export.export(
                program,
                (),
                kwargs=signature.draw(surrogate, *TRACED),
                dynamic_shapes=signature.free({"B": Dim("B"), "N": Dim("N")}),
            )
    except LrsaError:
        raise
    except Exception as error:  # whatever a registered model does that a trace cannot follow
        raise LrsaError(
            f"{model} cannot be exported, torch.export cannot follow it: {_reason(error)}"
        ) from error
    for node in made.graph.nodes:
        node.meta.pop("stack_trace", None)  # the folders of this machine concern nobody else
    return made


@torch.inference_mode()
def _check(run: Run, surrogate: Surrogate, signature: Signature) -> tuple[list[tuple[int, int]], float]:
    """The sizes, and the largest difference of the program that was written; too large a one is refused."""
    program, sizes, largest = Program(surrogate, signature.grid), [], 0.0
    for batch, points in CHECKED:
        inputs = signature.draw(surrogate, batch, points)
        expected, found = program(**inputs), run(inputs)
        sizes.append((batch, inputs["x"].shape[1]))
        difference, rounding = _compare(found, expected, surrogate.normaliser)
        if not difference <= TOLERANCE + rounding:
            raise Failure(f"the program differs from its surrogate by {difference:.1e}, and is not kept")
        largest = max(largest, difference)
    return sizes, largest


def _compare(found: Tensor, expected: Tensor, normaliser: Normaliser) -> tuple[float, float]:
    """Relative L2 in deviations of the targets from their mean, and what one rounding of each value makes.

    A pressure of 1e5 ± 1 has but two digits after the point in fp32: both may round it differently.
    """
    unit = torch.where(normaliser.u_scale > 0, normaliser.u_scale, 1.0)  # a constant target has none
    scale = ((expected - normaliser.u_shift) / unit).norm().clamp(min=torch.finfo(expected.dtype).tiny)
    rounding = torch.finfo(expected.dtype).eps * expected / unit
    return float(((found - expected) / unit).norm() / scale), float(rounding.norm() / scale)


def _about(config: RunConfig, signature: Signature) -> dict[str, object]:
    """What is kept in the file for who finds it without its run."""
    names = config.schema.names
    return {
        "lrsa": __version__,
        "model": config.model,
        "data": config.schema.name,
        "protocol": config.schema.protocol,
        "inputs": {name: list(shape) for name, shape in signature.shapes.items()},
        "grid": signature.grid,
        "coordinates": names.coords,
        "features": names.inputs,
        "globals": names.globals,
        "fields": names.targets,
        "units": names.units,
    }


def _reason(error: BaseException) -> str:
    """The innermost cause, in its first words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__


def _lacking(error: BaseException) -> str:
    """What ONNX has not."""
    reason = _reason(error)
    found = re.search(r"op='aten\.(\w+)'", reason)
    numbers = " of complex numbers" if "complex-valued" in reason else ""
    return f"which has no {found[1]}{numbers}" if found else reason


@contextmanager
def _quiet() -> Iterator[None]:
    """Exporters talk of what does not concern a user: absent packages, deprecations, graphs they gave up."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
