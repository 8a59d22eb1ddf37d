"""What is told of the cases of an import when they are built: what does not fit, what may be a mistake."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lrsa.errors import LrsaError
from lrsa.mesh.parts import Outcome
from lrsa.mesh.problems import FEW

MEASURES = {1: "a length", 2: "an area", 3: "a volume"}
"""What cells have, by their dimension."""


def unlike(paths: Sequence[Path], outcomes: Sequence[Outcome | LrsaError]) -> list[str]:
    """Cases whose shape is not that of the first."""
    made = [(path, o) for path, o in zip(paths, outcomes, strict=True) if isinstance(o, Outcome)]
    lines = []
    for path, outcome in made[1:]:
        first, reference = made[0]
        if outcome.dims != reference.dims:
            lines.append(f"{path} has {outcome.dims} coordinates, but {first} has {reference.dims}")
        if min(outcome.dimension, reference.dimension) > 0 and outcome.dimension != reference.dimension:
            lines.append(
                f"{path} has cells with {MEASURES[outcome.dimension]}, but {first} with"
                f" {MEASURES[reference.dimension]}. Import them as two data sets"
            )
        if outcome.frames != reference.frames:
            lines.append(f"{path} has {_frames(outcome)}, but {first} has {_frames(reference)}")
    return lines


def _frames(outcome: Outcome) -> str:
    return f"{outcome.frames} times" if outcome.frames else "no times"


def kept(made: Sequence[Outcome], paths: Sequence[Path], folder: Path) -> list[str]:
    """Where an import that ends with problems has left what is good, if anything is."""
    if not made:
        return []
    return [
        f"{len(made)} of {len(paths)} cases are built and kept in {folder}: import again with the same --out"
        " once this is put right, or remove it"
    ]


def untested(counts: Mapping[str, int]) -> list[str]:
    """A data set that can be learned, and predicted, but on which no model can be evaluated."""
    if counts.get("test"):
        return []
    return ["no case is for the test: a model of this data cannot be evaluated. Import more cases"]


def remarks(names: Sequence[str], outcomes: Sequence[Outcome]) -> list[str]:
    """What is no error, but may be a mistake."""
    lines = []
    twice = [(name, o.duplicates) for name, o in zip(names, outcomes, strict=True) if o.duplicates]
    if twice:
        name, count = max(twice, key=lambda pair: pair[1])
        lines.append(
            f"{len(twice)} of {len(names)} cases have points that coincide (most in {name}: {count})"
        )
    varying = sorted({name for outcome in outcomes for name in outcome.varying})
    if varying:
        lines.append(f"{', '.join(varying)}: inputs that change in time; their first frame is the input")
    for name, value in _constants(outcomes).items():
        lines.append(f"{name} is {value:g} at all points of all cases: it tells nothing and can be left out")
    return lines + _partly_known(names, outcomes)


def _partly_known(names: Sequence[str], outcomes: Sequence[Outcome]) -> list[str]:
    """Which targets of which cases are NaN somewhere: meant so, or a solver that went wrong."""
    partly = {name: o.partly for name, o in zip(names, outcomes, strict=True) if o.partly}
    if not partly:
        return []
    fields = dict.fromkeys(field for found in partly.values() for field in found)
    cases = ", ".join(list(partly)[:FEW]) + (", ..." if len(partly) > FEW else "")
    return [
        f"{len(partly)} of {len(names)} cases know {', '.join(fields)} at some of the points only ({cases})"
    ]


def _constants(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Inputs, derived ones among them, and targets that are one number everywhere."""
    lows: dict[str, float] = {}
    highs: dict[str, float] = {}
    for outcome in outcomes:
        for name, low, high in outcome.spans:
            lows[name] = min(low, lows.get(name, low))
            highs[name] = max(high, highs.get(name, high))
    return {name: low for name, low in lows.items() if low == highs[name]}
