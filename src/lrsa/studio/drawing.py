"""From what is asked for on the page to what is drawn: panels with surfaces, colours and scales."""

from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.colors import to_hex

from lrsa.report.pictures import ERROR, FIELD
from lrsa.studio.exploring import Exploration, Opened, Prediction
from lrsa.studio.shapes import Clip, Look, placed, vector_groups
from lrsa.studio.words import short

Mode = Literal["side", "slider", "truth", "prediction", "error"]
STOPS = 32
"""Colours of the bar on the page."""
GAP = 0.004
"""Between truth and prediction at the slider, as a share of the width."""
SEEN, STRETCHED = (0.02, 0.5), 0.15
"""A warp that moves points by such a share of the size is drawn as it is; else it is stretched to this."""


@dataclass(frozen=True)
class View:
    """What is asked for."""

    field: str
    values: tuple[float, ...] = ()
    """The parameters."""
    frame: int = 0
    mode: Mode = "side"
    divide: float = 0.5
    """Where the slider between truth and prediction stands, as a share of the width."""
    warp: str = ""
    """The vector that moves the points."""
    factor: float = 1.0
    clip: Clip | None = None
    threshold: tuple[float, float] | None = None
    body: bool = True


@dataclass(frozen=True)
class Panel:
    """One picture: what it is, the surfaces in it, and their colours."""

    title: str
    surfaces: list[Any]
    colours: str
    low: float
    high: float
    points: np.ndarray | None = None
    """(N, 3) where the points of the case are drawn; None: where they are."""

    def bar(self) -> dict[str, Any]:
        """The colour bar, for the page."""
        colours = matplotlib.colormaps[self.colours](np.linspace(0, 1, STOPS))
        ends = [short(v, 3) for v in (self.low, (self.low + self.high) / 2, self.high)]
        return {"title": self.title, "stops": ", ".join(map(to_hex, colours)), "ends": ends}


@dataclass(frozen=True)
class Drawing:
    """What is drawn, and the numbers beside it."""

    panels: list[Panel]
    prediction: Prediction
    has_truth: bool


def vectors_of(exploration: Exploration, opened: Opened) -> dict[str, tuple[int, ...]]:
    """The vector fields that points may be warped by."""
    return vector_groups(exploration.fields, len(opened.shape.axes))


def stretch_of(exploration: Exploration, opened: Opened, made: Prediction, warp: str) -> float:
    """A factor by which this warp is seen well: 1 where it is by itself."""
    channels = vectors_of(exploration, opened).get(warp)
    if channels is None:
        return 1.0
    vector = np.nan_to_num(made.u[:, list(channels)])
    size = float(np.ptp(opened.shape.points, axis=0).max())
    longest = float(np.linalg.norm(vector, axis=1).max(initial=0.0))
    if not longest or SEEN[0] * size <= longest <= SEEN[1] * size:
        return 1.0
    return float(f"{STRETCHED * size / longest:.1g}")


def draw(exploration: Exploration, view: View) -> Drawing:
    """Predict, and draw what is asked for; without a truth that is the prediction alone."""
    opened = exploration.opened
    assert opened is not None
    made = exploration.predict(view.values, view.frame)
    channel = exploration.fields.index(view.field)
    artist = _Artist(exploration, opened, view, made, channel)
    known = made.truth is not None and bool(np.isfinite(made.truth[:, channel]).any())
    if not known:
        return Drawing([artist.panel("prediction")], made, False)
    if view.mode == "side":
        return Drawing([artist.panel(kind) for kind in ("prediction", "truth", "error")], made, True)
    if view.mode == "slider":
        return Drawing([artist.divided()], made, True)
    return Drawing([artist.panel(view.mode)], made, True)


@dataclass(frozen=True)
class _Artist:
    exploration: Exploration
    opened: Opened
    view: View
    made: Prediction
    channel: int

    def panel(self, kind: str, look: Look | None = None) -> Panel:
        """Truth, prediction or error; the first two have one scale."""
        look = look or self.look()
        u, values = self._values(kind)
        points = self.points(u)
        surface = self.opened.shape.drawn(values, look, points, u[:, self.channel])
        if kind == "error":
            top = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
            return Panel("|error|", [surface], ERROR, 0.0, top or 1.0, points)
        low, high = self.scale()
        return Panel(kind, [surface], FIELD, low, high, points)

    def divided(self) -> Panel:
        """Truth on the left of the slider, prediction on the right, and a gap between them."""
        low, high = self.opened.shape.bounds(self.view.body)[0]
        place, gap = float(low + self.view.divide * (high - low)), GAP * float(high - low) / 2
        left = self.panel("truth", self.look().and_clip(Clip(0, place - gap)))
        right = self.panel("prediction", self.look().and_clip(Clip(0, place + gap, above=True)))
        surfaces = [s for s in (*left.surfaces, *right.surfaces) if s.n_points]
        return Panel("truth | prediction", surfaces, left.colours, left.low, left.high, right.points)

    def look(self) -> Look:
        clips = () if self.view.clip is None else (self.view.clip,)
        return Look(clips, self.view.threshold, self.view.body)

    def scale(self) -> tuple[float, float]:
        """From the smallest to the largest value of truth and prediction, since the case was opened."""
        values = [self.made.u[:, self.channel]]
        if self.made.truth is not None:
            values.append(self.made.truth[:, self.channel])
        low, high = self.opened.widened(self.view.field, values)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def points(self, u: np.ndarray) -> np.ndarray | None:
        """(N, 3) where the points are drawn; None: where they are."""
        shape, axes = self.opened.shape, self.opened.shape.axes
        moved = self.exploration.place(u)
        where = shape.points if moved is None else placed(moved, axes)
        channels = vectors_of(self.exploration, self.opened).get(self.view.warp)
        if channels is None or not self.view.factor:
            return None if moved is None else where
        vector = np.nan_to_num(u[:, list(channels)]) * self.view.factor
        return where + np.pad(vector, ((0, 0), (0, 3 - vector.shape[1]))).astype(np.float32)

    def _values(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The fields that place the points, and the drawn values (N,)."""
        u, known = self.made.u, self.made.truth
        mask = self.opened.case.u_mask
        if kind == "truth" and known is not None:
            return np.nan_to_num(known), known[:, self.channel]
        values = u[:, self.channel]
        if kind == "error" and known is not None:
            values = np.abs(values - known[:, self.channel])
        elif mask is not None:
            values = np.where(mask[:, self.channel], values, np.nan)
        return u, values
