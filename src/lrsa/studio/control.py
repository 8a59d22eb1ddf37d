"""Between the page and the numbers: what is asked for goes in as state, what is drawn comes out.

Predictions run in a thread of their own, one at a time. While one runs, only the last of what was asked for
meanwhile is kept, so that the picture follows a slider however slow the model is.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lrsa.errors import LrsaError
from lrsa.studio.asking import (
    ASKED,
    FIRST,
    clip_of,
    place_of,
    settings_of_case,
    settings_of_run,
    threshold_of,
    view_of,
)
from lrsa.studio.backstage import Backstage
from lrsa.studio.cameras import Camera
from lrsa.studio.curves import line_chart, loss_chart
from lrsa.studio.downloads import write_points, write_prediction
from lrsa.studio.drawing import Drawing, View, draw, stretch_of
from lrsa.studio.exploring import Exploration, Opened
from lrsa.studio.probes import along, drawn_at, moved_to, picked, probe
from lrsa.studio.runs import Runs
from lrsa.studio.stage import Stage
from lrsa.studio.summaries import Numbers
from lrsa.studio.window import Window, dots, marks_at
from lrsa.studio.words import named, short
from lrsa.training.curve import read_curve

POLL, SELDOM, PLAY = 1.0, 5.0, 0.15
"""Seconds between two looks at the runs, at those that are not shown now, and between two frames."""


class Studio:
    """The state of the page and what it stands for."""

    def __init__(self, server: Any, folder: Path) -> None:
        self.server, self.state, self.folder = server, server.state, folder
        self.runs, self.window = Runs(folder), Window()
        self.exploration: Exploration | None = None
        self.scratch = Path(tempfile.mkdtemp(prefix="lrsa-studio-"))
        self.push: Callable[[bool], None] = lambda whole: None
        """Sends the scene to the browser, whole or what has changed of it."""
        self._back, self._asked = Backstage(server.state), asyncio.Event()
        self._page, self._room, self._stage = 1400.0, (900.0, 500.0), Stage(900.0, 500.0)
        self._fit, self._whole, self._framed = True, True, (self._stage, "", True)
        self._opened: Opened | None = None
        """The case that is drawn; the exploration may have the next one already."""
        self._chosen: tuple[Exploration | None, int | None] = None, None
        self._numbers: Numbers | None = None
        self._drawing: Drawing | None = None
        self.state.update({**FIRST, "folder": str(folder), "trame__title": "LRSA studio"})
        self.state.change(*ASKED)(lambda **_: self._asked.set())
        self.state.change("chosen")(lambda **_: self._draw_curves())
        self.state.change("warp")(lambda warp, **_: self._stretch(warp))
        self.state.change("case_index")(lambda case_index, **_: self._back.begin(self._choose(case_index)))
        for name in ("explore", "clicked", "sized", "home", "reset_view"):
            server.controller.trigger(name)(getattr(self, name))

    def close(self) -> None:
        """Forget the files that were dropped."""
        self._back.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self) -> None:
        """Follow the runs, draw what is asked for and play, until the server stops."""
        for work in (self._follow(), self._redraw(), self._play()):
            self._back.begin(work)

    async def _follow(self) -> None:
        before: Any = None
        while True:
            rows = [run.row() for run in await self._back.aside(self.runs.table)]
            if rows != before:
                with self.state:
                    self.state.runs = before = rows
                    self._draw_curves()
            await asyncio.sleep(POLL if self.state.view == "runs" else SELDOM)

    def _draw_curves(self) -> None:
        paths = {row["name"]: Path(row["path"]) for row in self.state.runs}
        curves = {name: read_curve(paths[name]) for name in self.state.chosen if name in paths}
        curves = {name: rows for name, rows in curves.items() if rows}
        self.state.curves = loss_chart(curves, self._page) if curves else ""

    async def explore(self, path: str) -> bool:
        """Open a run, and the first of its test cases; whether there is one to look at."""
        made: Exploration | None = None
        with self._back.saying(), self._back.busy(f"opening {Path(path).name}"):
            made = await self._back.aside(partial(Exploration, Path(path)))
            self.exploration, self._opened = made, None
            first = 0 if made.cases is not None else None
            self._chosen = made, first
            with self.state:
                self.state.update(settings_of_run(Path(path), made) | {"case_index": first})
                # The page may not have said yet that it shows the runs: it is told what it seems to know too.
                self.server.clear_state_client_cache("view")
                self.state.dirty("view")
            if first is not None:
                opened, numbers = await self._back.aside(partial(_counted, made, partial(made.choose, first)))
                field = await self._back.aside(made.first_field)
                self._open(made, opened, numbers, field)
        return made is not None and self.exploration is made

    async def _choose(self, index: int | None) -> None:
        made = self.exploration
        if made is None or index is None or index < 0 or self._chosen == (made, index):
            return
        self._chosen = made, index
        with self._back.saying(), self._back.busy("reading the case"):
            self._open(
                made, *await self._back.aside(partial(_counted, made, partial(made.choose, int(index))))
            )

    async def drop(self, path: Path) -> None:
        """Look at a file of the user's."""
        made = self.exploration
        if made is None:
            raise LrsaError("open a run first, then drop a file on it")
        with self._back.busy(f"reading {path.name}"):
            opened, numbers = await self._back.aside(partial(_counted, made, partial(made.drop, path)))
        self._chosen = made, -1
        tests = [case for case in self.state.cases if case["value"] >= 0]
        with self.state:
            self.state.update({"case_index": -1, "cases": [*tests, {"title": path.name, "value": -1}]})
        self._open(made, opened, numbers)

    def _open(
        self, exploration: Exploration, opened: Opened, numbers: Numbers, field: str | None = None
    ) -> None:
        """Settings that depend on the case."""
        if exploration is not self.exploration:
            return
        self._opened, self._numbers, self._fit = opened, numbers, True
        settings = settings_of_case(exploration, opened)
        with self.state:
            self.state.update(settings | {"field": field or self.state.field})
        self._asked.set()

    async def _redraw(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            exploration, opened = self.exploration, self._opened
            if exploration is None or opened is None:
                continue
            with self._back.saying():
                view = view_of(self.state, exploration, opened)
                drawing = await self._back.aside(partial(_drawn, exploration, opened, view))
                if drawing is not None and opened is self._opened:
                    with self.state:
                        self._show(exploration, opened, view, drawing)

    def _show(self, exploration: Exploration, opened: Opened, view: View, drawing: Drawing) -> None:
        state, made, numbers, shape = self.state, drawing.prediction, self._numbers, opened.shape
        assert numbers is not None
        self._drawing = drawing
        values, channel = [float(v) for v in state.values], exploration.fields.index(state.field)
        extent = Camera.extent(shape.bounds(bool(state.body)), shape.flat, shape.up)
        self._stage = Stage.arranged(*self._room, len(drawing.panels), extent)
        marks = self._mark(exploration, opened, drawing, channel)
        self.window.show(drawing.panels, self._stage.rows, bool(state.lines), shape.flat, marks)
        low, high = threshold_of(state, opened)
        state.update(
            {
                "bars": [panel.bar() for panel in self.window.shown()],
                "rowwise": self._stage.rows,
                "height": self._stage.height,
                "label": named(state.field, exploration.units.get(state.field, "")),
                "numbers": numbers.rows(state.field, values, made),
                "force": numbers.has_force(state.field),
                "warnings": exploration.warnings(values),
                "milliseconds": round(made.milliseconds, 1) or state.milliseconds,
                "moved": not exploration.at_home(values),
                "has_truth": drawing.has_truth,
                "clip_words": short(clip_of(state, opened).place),
                "threshold_words": f"{short(low)} to {short(high)}",
            }
        )
        self.push(self._whole)
        self._whole = False
        framed, self._framed = self._framed, (self._stage, view.warp, view.body)
        if self._fit or self._framed != framed:
            self._fit = False
            self.reset_view()

    def _mark(self, exploration: Exploration, opened: Opened, drawing: Drawing, channel: int) -> Any:
        """Values at the places that are asked for, and these places as marks."""
        state, made = self.state, drawing.prediction
        asked = [place_of(state[name]) for name in ("probe_at", "line_from", "line_to")]
        at, start, end = asked
        state.probe = None if at is None else probe(exploration, opened, made, at)
        state.line = ""
        if start is not None and end is not None and np.any(start != end):
            name, coords = state.field, exploration.config.schema.names.coords
            unit = exploration.units.get(coords[0], "") if coords else ""
            sampled = along(opened, made, channel, start, end)
            state.line = line_chart(sampled, named(name, exploration.units.get(name, "")), unit)
        shape = opened.shape
        drawn = drawn_at(shape, drawing.panels[0].points)
        return marks_at(*(p if p is None else moved_to(p, shape.points, drawn) for p in asked))

    def _stretch(self, warp: str) -> None:
        """A warp begins with a factor at which it is seen well."""
        if warp and self.exploration is not None and self._opened is not None and self._drawing is not None:
            factor = stretch_of(self.exploration, self._opened, self._drawing.prediction, warp)
            self.state.update({"stretch": factor, "factor": factor})

    def home(self) -> None:
        """Back to the parameters of the case."""
        if self.exploration is not None and self._opened is not None:
            self.state.values = self.exploration.start()

    def reset_view(self) -> None:
        """All that is drawn in the picture."""
        if self._opened is None or not self.window.panels:
            return
        shape, moved = self._opened.shape, self.window.panels[0].points
        bounds = shape.bounds(bool(self.state.body))
        if moved is not None:
            bounds = np.stack([moved.min(0), moved.max(0)], axis=1).astype(float)
        camera = self._stage.camera(bounds, shape.flat, shape.up)
        self.window.look(camera)
        self.server.js_call("view", "setCamera", camera.to_browser())

    def sized(self, page: float, width: float, room: float, fresh: bool) -> None:
        """The page is so wide, and has so much room for the picture; a fresh one has no scene yet."""
        if page != self._page:
            self._page = float(page)
            self._draw_curves()
        if width and (fresh or (width, room) != self._room):
            self._room, self._fit, self._whole = (float(width), float(room)), True, self._whole or fresh
            self._asked.set()

    async def _play(self) -> None:
        while True:
            await asyncio.sleep(PLAY)
            if self.state.playing and len(self.state.times) > 1 and not self._asked.is_set():
                with self.state:
                    self.state.frame = (int(self.state.frame) + 1) % len(self.state.times)

    def clicked(self, across: float, up: float, camera: dict[str, Any]) -> None:
        """A place of the picture: the point to look at, or an end of the line."""
        found = self.window.at(across, up)
        if found is None or self._opened is None:
            return
        (panel, right, above), shape = found, self._opened.shape
        surfaces = panel.surfaces if shape.has_cells else [dots(drawn_at(shape, panel.points))]
        eye = Camera.from_browser(camera)
        places = [picked(surface, eye, right, above, self._stage.aspect) for surface in surfaces]
        place = next((p for p in places if p is not None), None)
        if place is None:
            return
        place = moved_to(place, drawn_at(shape, panel.points), shape.points)  # where it came from
        words = ", ".join(short(v, 5) for v in place[: 2 if shape.flat else 3])
        if self.state.tool == "probe":
            self.state.probe_at = words
        elif not self.state.line_from or self.state.line_to:
            self.state.update({"line_from": words, "line_to": ""})
        else:
            self.state.line_to = words

    async def download(self, kind: str) -> Path:
        """The prediction that is drawn, as a VTU or CSV file."""
        if self.exploration is None or self._opened is None or self._drawing is None:
            raise LrsaError("there is no prediction yet: open a run and choose a case")
        opened, made = self._opened, self._drawing.prediction
        out = self.scratch / f"{Path(opened.name).stem.replace(' ', '-')}-predicted.{kind}"
        if kind == "csv":
            return await self._back.aside(partial(write_points, self.exploration, opened, made, out))
        frame = int(self.state.frame)
        return await self._back.aside(partial(write_prediction, self.exploration, opened, made, frame, out))


def _counted(exploration: Exploration, look_at: Callable[[], Opened]) -> tuple[Opened, Numbers]:
    """Another case and its numbers; where they fail, the case before stays."""
    before = exploration.opened
    try:
        opened = look_at()
        return opened, Numbers.of(exploration, opened)
    except Exception:
        exploration.opened = before
        raise


def _drawn(exploration: Exploration, opened: Opened, view: View) -> Drawing | None:
    """None where another case has been opened meanwhile."""
    return draw(exploration, view) if exploration.opened is opened else None
