"""Parity with reference implementations, through golden files.

A golden file holds the parameters, inputs, output and gradient norms of one reference network. They are in
`golden/`, or in the folder that LRSA_GOLDEN names; a missing one is a failure, and nothing is ever skipped.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn


@dataclass(frozen=True)
class Golden:
    """One golden file."""

    config: dict[str, Any]
    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    inputs: dict[str, Tensor]
    output: Tensor
    gradient_norms: dict[str, float]
    unused: frozenset[str]


@dataclass(frozen=True)
class Where:
    """Where an official parameter lives in our model: a parameter or buffer, a part of it, its axes."""

    name: str
    index: Any = ...
    permute: tuple[int, ...] | None = None
    """Order in which the official axes are laid into ours."""

    def lay(self, official: Tensor) -> Tensor:
        return official if self.permute is None else official.permute(self.permute)


def files(*stems: str) -> Any:
    """Parametrises a test over the golden files of these stems and their variants (`stem__*`)."""
    paths = [path for stem in stems for path in _variants(golden_folder(), stem)]
    return pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])


def golden_folder() -> Path:
    """`golden/` beside this file, or what LRSA_GOLDEN names."""
    return Path(os.environ.get("LRSA_GOLDEN") or Path(__file__).parent / "golden")


def _variants(folder: Path, stem: str) -> list[Path]:
    return [folder / f"{stem}.safetensors", *sorted(folder.glob(f"{stem}__*.safetensors"))]


def load(path: Path) -> Golden:
    """Read a golden file; a missing one is a failure."""
    assert path.exists(), f"there is no golden file {path}"
    groups: dict[str, dict[str, Tensor]] = {
        "param": {},
        "buffer": {},
        "input": {},
        "gradnorm": {},
        "output": {},
    }
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
        for key in file.keys():  # noqa: SIM118 - not a dictionary
            group, _, name = key.partition("/")
            groups[group][name] = file.get_tensor(key)
    return Golden(
        config=json.loads(metadata["config"]),
        parameters=groups["param"],
        buffers=groups["buffer"],
        inputs=groups["input"],
        output=groups["output"][""],
        gradient_norms={name: float(value) for name, value in groups["gradnorm"].items()},
        unused=frozenset(json.loads(metadata["unused_params"]))
        | frozenset(json.loads(metadata["frozen_params"])),
    )


def check_parity(
    golden: Golden,
    model: nn.Module,
    names: Mapping[str, Where],
    run: Callable[[nn.Module, Mapping[str, Tensor]], Tensor],
) -> None:
    """Copy the official parameters into `model` and compare output and gradient norms.

    `names` maps every official parameter and buffer to its place; unused ones may be left out. `run` calls
    the model on the golden inputs and returns the output in the official shape.
    """
    official = {**golden.parameters, **golden.buffers}
    forgotten = set(official) - set(names) - golden.unused
    assert not forgotten, f"official parameters without a place in our model: {sorted(forgotten)}"
    for dtype, tolerance, faint in ((torch.float64, 1e-8, 0.0), (torch.float32, 1e-4, 1e-4)):
        model = model.to(dtype).eval()
        _fill(dict(model.named_parameters()) | dict(model.named_buffers()), official, names)
        model.zero_grad()
        inputs = {k: v.to(dtype) if v.is_floating_point() else v for k, v in golden.inputs.items()}
        output = run(model, inputs)
        worst = (output.double() - golden.output).abs().max() / golden.output.abs().max()
        assert worst <= tolerance, f"output in {dtype} differs by {worst:.2e}"
        output.square().mean().backward()
        _compare_gradients(golden, dict(model.named_parameters()), names, tolerance, faint)


def _compare_gradients(
    golden: Golden,
    parameters: Mapping[str, Tensor],
    names: Mapping[str, Where],
    tolerance: float,
    faint: float,
) -> None:
    """The norms of the gradients, but for those below `faint` times the largest: they are its rounding."""
    largest = max(golden.gradient_norms.values())
    for name, expected in golden.gradient_norms.items():
        parameter = parameters.get(names[name].name) if name in names else None
        if parameter is None or expected < faint * largest:
            continue
        ours = 0.0 if parameter.grad is None else float(parameter.grad[names[name].index].norm())
        # The gradients of LinearNO's temperatures are sums that cancel down to a thousandth of the largest.
        rounding = max(1e-10, 2 * torch.finfo(parameter.dtype).eps * largest)
        assert abs(ours - expected) <= tolerance * expected + rounding, (name, ours, expected)


def _fill(places: Mapping[str, Tensor], official: Mapping[str, Tensor], names: Mapping[str, Where]) -> None:
    with torch.no_grad():
        for name, where in names.items():
            if name in official:
                target = places[where.name][where.index]
                target.copy_(where.lay(official[name]).reshape(target.shape))
