"""The state of the page: every name in `page.html`, and what is asked for by it."""

from pathlib import Path
from typing import Any

import numpy as np

from lrsa.studio.drawing import View, vectors_of
from lrsa.studio.exploring import Exploration, Opened, Parameter
from lrsa.studio.shapes import Clip
from lrsa.studio.words import named, short

MODES = [
    {"title": "truth, prediction and error", "value": "side"},
    {"title": "slider between truth and prediction", "value": "slider"},
    *({"title": mode, "value": mode} for mode in ("prediction", "truth", "error")),
]
TOOLS = [
    {"words": "show all", "icon": "mdi-fit-to-page-outline", "fit": True},
    {"words": "zoom in", "icon": "mdi-magnify-plus-outline", "zoom": 1.25},
    {"words": "zoom out", "icon": "mdi-magnify-minus-outline", "zoom": 0.8},
    {"words": "turn left", "icon": "mdi-arrow-left", "turn": [-0.2, 0]},
    {"words": "turn right", "icon": "mdi-arrow-right", "turn": [0.2, 0]},
    {"words": "turn up", "icon": "mdi-arrow-up", "turn": [0, 0.2]},
    {"words": "turn down", "icon": "mdi-arrow-down", "turn": [0, -0.2]},
]
THIN = {"density": "compact", "hideDetails": True, "color": "#1f6f8b"}
"""How sliders and switches look."""

PAGE: dict[str, Any] = {
    "view": "runs",
    "problem": "",
    "busy": "",
    "modes": MODES,
    "tools": TOOLS,
    "thin": THIN,
    "plain": {"density": "compact", "hideDetails": True, "variant": "outlined"},
}
RUNS: dict[str, Any] = {"runs": [], "chosen": [], "curves": ""}
RUN: dict[str, Any] = {
    "run": "",
    "title": "",
    "missing": "",
    "cases": [],
    "case_index": None,
    "fields": [],
    "parameters": [],
}
CASE: dict[str, Any] = {
    "points": 0,
    "times": [0.0],
    "time_unit": "",
    "warps": [],
    "stretch": 1.0,
    "clip_axes": [],
    "axes": "x, y",
    "triad": [],
    "has_body": False,
}
ASKED: dict[str, Any] = {
    "field": "",
    "values": [],
    "frame": 0,
    "mode": "side",
    "divide": 0.5,
    "warp": "",
    "factor": 1.0,
    "clip": False,
    "clip_axis": 0,
    "clip_at": 0.5,
    "clip_above": False,
    "threshold": False,
    "threshold_range": [0.0, 1.0],
    "body": True,
    "lines": False,
    "probe_at": "",
    "line_from": "",
    "line_to": "",
}
"""What draws anew where it changes."""
DRAWN: dict[str, Any] = {
    "bars": [],
    "rowwise": False,
    "height": 500,
    "label": "",
    "force": False,
    "numbers": [],
    "warnings": [],
    "probe": None,
    "line": "",
    "milliseconds": 0.0,
    "moved": False,
    "has_truth": False,
    "clip_words": "",
    "threshold_words": "",
}
HELD: dict[str, Any] = {"playing": False, "tool": "probe"}
FIRST: dict[str, Any] = PAGE | RUNS | RUN | CASE | ASKED | DRAWN | HELD
"""The state of a page that was just opened."""


RESET = ("frame", "warp", "factor", "clip", "clip_axis", "clip_at", "threshold", "threshold_range")
RESET += ("probe_at", "line_from", "line_to")
"""What another case begins anew with."""


def settings_of_run(path: Path, exploration: Exploration) -> dict[str, Any]:
    """The state of a page that has just opened a run."""
    config, units = exploration.config, exploration.units
    return {
        "view": "explore",
        "run": str(path),
        "title": f"{path.name}: {config.model} on {config.schema.name}",
        "missing": exploration.missing,
        "cases": [{"title": name, "value": i} for i, name in enumerate(exploration.names)],
        "fields": [{"title": named(n, units.get(n, "")), "value": n} for n in exploration.fields],
        "field": exploration.fields[0],
        "parameters": [slider_of(p) for p in exploration.parameters],
        "bars": [],
        "problem": "",
    }


def settings_of_case(exploration: Exploration, opened: Opened) -> dict[str, Any]:
    """What of the state depends on the case."""
    shape, names = opened.shape, exploration.config.schema.names
    coords = [(names.coords or tuple("xyz"))[axis] for axis in shape.axes]
    warps = {"nothing": "", **{name: name for name in vectors_of(exploration, opened)}}
    return {
        **{name: ASKED[name] for name in RESET},
        "values": exploration.start(),
        "times": exploration.frames(),
        "time_unit": names.units.get("time", names.units.get("t", "")),
        "playing": False,
        "warps": [{"title": title, "value": value} for title, value in warps.items()],
        "clip_axes": [{"title": name, "value": i} for i, name in enumerate(coords)],
        "axes": ", ".join(coords),
        "triad": [] if shape.flat else coords,
        "points": len(opened.case),
        "has_body": shape.has_body,
        "problem": "",
    }


def view_of(state: Any, exploration: Exploration, opened: Opened) -> View:
    """What the page asks for."""
    values = tuple(float(v) for v in state.values) if opened.case.globals is not None else ()
    frame = min(max(int(state.frame), 0), len(exploration.frames()) - 1)
    return View(
        state.field,
        values,
        frame,
        state.mode,
        float(state.divide),
        state.warp or "",
        float(state.factor),
        clip_of(state, opened) if state.clip else None,
        threshold_of(state, opened) if state.threshold else None,
        bool(state.body),
    )


def clip_of(state: Any, opened: Opened) -> Clip:
    """The plane at this share of what is drawn."""
    axis = min(int(state.clip_axis), 2)
    low, high = opened.shape.bounds(bool(state.body))[axis]
    return Clip(axis, float(low + float(state.clip_at) * (high - low)), bool(state.clip_above))


def threshold_of(state: Any, opened: Opened) -> tuple[float, float]:
    """The values between the two ends of the slider, which goes from the smallest to the largest."""
    low, high = opened.spans.get(state.field, (0.0, 1.0))
    first, last = sorted(float(share) for share in state.threshold_range)
    return low + first * (high - low), low + last * (high - low)


def slider_of(parameter: Parameter) -> dict[str, Any]:
    """A parameter, as the page shows it."""
    width = parameter.high - parameter.low or abs(parameter.high) or 1.0
    return {
        "name": named(parameter.name, parameter.unit),
        "low": parameter.low,
        "high": parameter.high,
        "step": width / 200,
        "slack": 1e-6 * width,
        "range": f"{short(parameter.low)} to {short(parameter.high)}",
    }


def place_of(words: str | None) -> np.ndarray | None:
    """`0.1, 0.2` as (3,); None where it is no place."""
    try:
        numbers = [float(word) for word in (words or "").replace(";", ",").split(",")]
    except ValueError:
        return None
    numbers = [*numbers, 0.0, 0.0][:3]
    return np.array(numbers) if np.isfinite(numbers).all() else None
