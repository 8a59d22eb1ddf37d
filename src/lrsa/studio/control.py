"""Between the page and the numbers: what is asked for goes in as state, what is drawn comes out.

Predictions run in a thread of their own, one at a time. While one runs, only the last of what was asked for
meanwhile is kept, so that the picture follows a slider however slow the model is.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lrsa.errors import LrsaError
from lrsa.studio.asking import ASKED, FIRST, place_of, slider_of, threshold_of, view_of
from lrsa.studio.cameras import Camera
from lrsa.studio.curves import line_chart, loss_chart
from lrsa.studio.downloads import write_points, write_prediction
from lrsa.studio.drawing import Drawing, draw, vectors_of
from lrsa.studio.exploring import Exploration, Opened
from lrsa.studio.probes import along, named, picked, probe
from lrsa.studio.runs import Runs, read_curve
from lrsa.studio.summaries import Faces, body_faces, measures, summary
from lrsa.studio.window import Window, marks_at

POLL, PLAY = 1.0, 0.15
"""Seconds between two looks at the runs, and between two frames."""
NARROW, FOOT = 700, 54
"""Pixels of width below which panels stand above each other, and of a panel that its scale takes."""
Made = TypeVar("Made")


class Studio:
    """The state of the page and what it stands for."""

    def __init__(self, server: Any, folder: Path) -> None:
        self.server, self.state, self.folder = server, server.state, folder
        self.runs, self.window = Runs(folder), Window()
        self.exploration: Exploration | None = None
        self.scratch = Path(tempfile.mkdtemp(prefix="lrsa-studio-"))
        self.push: Callable[[bool], None] = lambda whole: None
        """Sends the scene to the browser, whole or what has changed of it."""
        self._worker = ThreadPoolExecutor(1)
        self._asked = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._size, self._fit, self._whole = (900.0, 500.0), True, True
        self._weights = np.ones(0)
        self._faces: Faces = []
        self._drawing: Drawing | None = None
        self.state.update({**FIRST, "folder": str(folder), "trame__title": "LRSA studio"})
        self.state.change(*ASKED)(lambda **_: self._asked.set())
        self.state.change("chosen")(lambda **_: self._draw_curves())
        self.state.change("case_index")(lambda case_index, **_: self._begin(self._choose(case_index)))
        for name in ("explore", "clicked", "sized", "home", "reset_view"):
            server.controller.trigger(name)(getattr(self, name))

    def close(self) -> None:
        """Forget the files that were dropped."""
        self._worker.shutdown(cancel_futures=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self) -> None:
        """Follow the runs, draw what is asked for and play, until the server stops."""
        for work in (self._follow(), self._redraw(), self._play()):
            self._begin(work)

    async def _follow(self) -> None:
        before: Any = None
        while True:
            if self.state.view == "runs":
                rows = [run.row() for run in await self._aside(self.runs.table)]
                if rows != before:
                    with self.state:
                        self.state.runs = before = rows
                        self._draw_curves()
            await asyncio.sleep(POLL)

    def _draw_curves(self) -> None:
        paths = {row["name"]: Path(row["path"]) for row in self.state.runs}
        curves = {name: read_curve(paths[name]) for name in self.state.chosen if name in paths}
        curves = {name: rows for name, rows in curves.items() if rows}
        self.state.curves = loss_chart(curves) if curves else ""

    async def explore(self, path: str) -> None:
        """Open a run, and the first of its test cases."""
        with self._saying():
            made = await self._aside(partial(Exploration, Path(path)))
            self.exploration, config = made, made.config
            fields = [{"title": named(n, made.units.get(n, "")), "value": n} for n in made.fields]
            with self.state:
                self.state.update(
                    {
                        "view": "explore",
                        "run": path,
                        "title": f"{Path(path).name}: {config.model} on {config.schema.name}",
                        "missing": made.missing,
                        "cases": [{"title": n, "value": i} for i, n in enumerate(made.names)],
                        "case_index": 0 if made.cases is not None else None,
                        "fields": fields,
                        "field": made.fields[0],
                        "parameters": [slider_of(p) for p in made.parameters],
                        "bars": [],
                    }
                )
            await self._choose(self.state.case_index)

    async def _choose(self, index: int | None) -> None:
        if self.exploration is not None and index is not None and index >= 0:
            with self._saying():
                self._open(await self._aside(partial(self.exploration.choose, int(index))))

    async def drop(self, path: Path) -> None:
        """Look at a file of the user's."""
        if self.exploration is None:
            raise LrsaError("open a run first, then drop a file on it")
        opened = await self._aside(partial(self.exploration.drop, path))
        tests = [case for case in self.state.cases if case["value"] >= 0]
        with self.state:
            self.state.update({"case_index": -1, "cases": [*tests, {"title": path.name, "value": -1}]})
        self._open(opened)

    def _open(self, opened: Opened) -> None:
        """Settings that depend on the case."""
        assert self.exploration is not None
        exploration, shape, case = self.exploration, opened.shape, opened.case
        self._weights, self._faces, self._fit = measures(case), body_faces(case), True
        coords = exploration.config.schema.names.coords or tuple("xyz")
        reset = {name: ASKED[name] for name in ("frame", "warp", "clip", "clip_axis", "threshold")}
        reset |= {name: ASKED[name] for name in ("threshold_range", "probe_at", "line_from", "line_to")}
        with self.state:
            self.state.update(
                {
                    **reset,
                    "values": exploration.start(),
                    "times": exploration.frames(),
                    "playing": False,
                    "warps": ["", *vectors_of(exploration, opened)],
                    "clip_axes": [{"title": coords[a], "value": i} for i, a in enumerate(shape.axes)],
                    "points": len(case),
                    "has_body": shape.has_body,
                    "force": bool(self._faces),
                    "problem": "",
                }
            )
        self._asked.set()

    async def _redraw(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            exploration = self.exploration
            if exploration is None or exploration.opened is None:
                continue
            opened = exploration.opened
            with self._saying():
                view = view_of(self.state, exploration, opened)
                drawing = await self._aside(partial(draw, exploration, view))
                if opened is exploration.opened:
                    with self.state:
                        self._show(exploration, opened, drawing)

    def _show(self, exploration: Exploration, opened: Opened, drawing: Drawing) -> None:
        state, made = self.state, drawing.prediction
        self._drawing = drawing
        values, channel = [float(v) for v in state.values], exploration.fields.index(state.field)
        known = None if made.truth is None else made.truth[:, channel]
        rowwise = self._size[0] < NARROW and len(drawing.panels) > 1
        changed = rowwise != state.rowwise or len(drawing.panels) != len(state.bars)
        marks = self._mark(exploration, opened, drawing, channel)
        self.window.show(drawing.panels, rowwise, bool(state.lines), opened.shape.flat, marks)
        low, high = threshold_of(state, opened)
        state.update(
            {
                "bars": [panel.bar() for panel in self.window.shown()],
                "rowwise": rowwise,
                "unit": exploration.units.get(state.field, ""),
                "numbers": summary(opened.case, made.u[:, channel], known, self._weights, self._faces),
                "warnings": exploration.warnings(values),
                "milliseconds": round(made.milliseconds, 1) or state.milliseconds,
                "moved": not exploration.at_home(values),
                "has_truth": drawing.has_truth,
                "threshold_words": f"{low:.4g} to {high:.4g}",
            }
        )
        self.push(self._whole)
        self._whole = False
        if self._fit or changed:
            self._fit = False
            self.reset_view()

    def _mark(self, exploration: Exploration, opened: Opened, drawing: Drawing, channel: int) -> Any:
        """Values at the places that are asked for, and these places as marks."""
        state, made = self.state, drawing.prediction
        at, start, end = (place_of(state[name]) for name in ("probe_at", "line_from", "line_to"))
        state.probe = None if at is None else probe(exploration, opened, made, at)
        state.line = ""
        if start is not None and end is not None and np.any(start != end):
            name, coords = state.field, exploration.config.schema.names.coords
            unit = exploration.units.get(coords[0], "") if coords else ""
            sampled = along(opened, made, channel, start, end)
            state.line = line_chart(sampled, named(name, exploration.units.get(name, "")), unit)
        return marks_at(at, start, end)

    def home(self) -> None:
        """Back to the parameters of the case."""
        if self.exploration is not None and self.exploration.opened is not None:
            self.state.values = self.exploration.start()

    def reset_view(self) -> None:
        """All of the case in the picture."""
        if self.exploration is not None and self.exploration.opened is not None:
            shape, (width, height) = self.exploration.opened.shape, self._size
            foot = FOOT / (height / max(len(self.window.panels), 1) if self.window.rows else height)
            camera = Camera.fitted(shape.bounds(), self.window.aspect(width, height), shape.flat, foot)
            self.window.look(camera)
            self.server.js_call("view", "setCamera", camera.to_browser())

    def sized(self, width: float, height: float) -> None:
        """The picture on the page has this size: it was resized, or the page was opened just now."""
        self._size, self._fit, self._whole = (float(width), float(height)), True, True
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
        if found is None or self.exploration is None or self.exploration.opened is None:
            return
        (panel, right, above), shape = found, self.exploration.opened.shape
        eye, aspect = Camera.from_browser(camera), self.window.aspect(*self._size)
        places = [picked(surface, eye, right, above, aspect) for surface in panel.surfaces]
        place = next((p for p in places if p is not None), None)
        if place is None:
            return
        if panel.points is not None:  # what was warped is asked for where it came from
            place = shape.points[np.linalg.norm(panel.points - place, axis=1).argmin()]
        words = ", ".join(f"{v:.5g}" for v in place[: 2 if shape.flat else 3])
        if self.state.tool == "probe":
            self.state.probe_at = words
        elif not self.state.line_from or self.state.line_to:
            self.state.update({"line_from": words, "line_to": ""})
        else:
            self.state.line_to = words

    async def download(self, kind: str) -> Path:
        """The prediction that is drawn, as a VTU or CSV file."""
        if self.exploration is None or self.exploration.opened is None or self._drawing is None:
            raise LrsaError("there is no prediction yet: open a run and choose a case")
        opened, made = self.exploration.opened, self._drawing.prediction
        out = self.scratch / f"{Path(opened.name).stem.replace(' ', '-')}-predicted.{kind}"
        if kind == "csv":
            return await self._aside(partial(write_points, self.exploration, opened, made, out))
        frame = int(self.state.frame)
        return await self._aside(partial(write_prediction, self.exploration, opened, made, frame, out))

    async def _aside(self, call: Callable[[], Made]) -> Made:
        """Call something slow while the page goes on."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """What goes wrong is said on the page."""
        try:
            yield
        except LrsaError as error:
            with self.state:
                self.state.problem = str(error)
        except Exception as error:  # the page goes on, whatever one case is like
            with self.state:
                self.state.problem = f"{type(error).__name__}: {error}. This is a bug"
