"""The page in a real browser: Debian's Chromium, without a window and without a graphics card.

Every test also fails on an error in the console, and on a request to any other machine.
"""

import io
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import pyvista
from cylinder import cylinder
from PIL import Image
from small import WORDS

from lrsa.mesh.writing import write_mesh
from lrsa.studio.shapes import Shape

pytest_plugins = ["studio_runs"]

CHROMIUM = shutil.which("chromium")
WAIT = 90
"""Seconds for what takes one on an idle machine."""
GRAPHICS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Software rendering, for machines without a graphics card."""

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")]


def until(what: Callable[[], Any], words: str) -> Any:
    """What it gives when it gives something."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.2)
    raise AssertionError(f"not within {WAIT} s: {words}")


@pytest.fixture(scope="module")
def folder(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained run, and one of another version."""
    made = Path(shutil.copytree(runs, tmp_path_factory.mktemp("page") / "runs"))
    (made / "older").mkdir()
    (made / "older" / "config.json").write_text('{"format": 99}')
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "lrsa", "studio", str(folder), "--port", str(port), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"studio: http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/"
        process.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=GRAPHICS)
        yield made
        made.close()


class Visit:
    """A page that is open, and what went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page, self.wrong = page, []
        page.set_default_timeout(1000 * WAIT)
        page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", lambda request: self._ask(request.url))

    def _ask(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self.wrong.append(f"asked for {url}")

    def explore(self) -> None:
        self.page.get_by_role("button", name="Explore flow").click()
        self.page.wait_for_selector("#canvas", state="visible")
        until(lambda: self.page.locator(".overlay .title").count() == 3, "three panels")
        self.settle()

    def settle(self) -> np.ndarray:
        """(H, W, 3) the picture, when it has stopped changing and is not empty."""
        before = [self.picture()]

        def still() -> bool:
            time.sleep(0.5)
            before.append(self.picture())
            return before[-1].shape == before[-2].shape and np.array_equal(before[-1], before[-2])

        until(still, "a picture that stands still")
        return before[-1]

    def picture(self) -> np.ndarray:
        shot = self.page.locator("#canvas canvas").screenshot()
        return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)

    def row(self, name: str) -> str:
        return self.page.locator(f"tr[data-run='{name}']").inner_text()


@pytest.fixture(params=[1400, 400])
def width(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def visit(browser: Any, address: str, width: int) -> Iterator[Visit]:
    page = browser.new_page(viewport={"width": width, "height": 850}, accept_downloads=True)
    made = Visit(page)
    page.goto(address)
    page.get_by_role("tab", name="Runs").click()
    page.wait_for_selector("tr[data-run='flow']")
    yield made
    page.close()
    assert made.wrong == []


def coloured(picture: np.ndarray) -> float:
    """The share of the pixels that are neither white nor grey."""
    return float((np.ptp(picture, axis=-1) > 30).mean())


def test_a_case_is_drawn_and_follows_its_parameter(visit: Visit, width: int):
    """Pixels of two values of the slider, both apart from the case, differ where the field does."""
    visit.explore()
    assert coloured(visit.settle()) > 0.1
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    slider = visit.page.get_by_role("slider", name="speed [m/s]")
    slider.focus()
    slider.press("Home")
    until(lambda: visit.page.locator(".overlay .title").all_inner_texts() == ["prediction"], "one panel")
    slow = visit.settle()
    slider.press("End")
    until(lambda: "back to the case" in visit.page.inner_text("aside"), "a way back")
    until(lambda: not np.array_equal(visit.settle(), slow), "another picture")
    fast = visit.settle()
    assert fast.shape == slow.shape
    assert coloured(fast) > 0.1
    assert (np.abs(fast - slow).max(axis=-1) > 10).mean() > 0.02
    visit.page.locator("#value-0").fill("9")
    visit.page.locator("#value-0").press("Enter")
    until(lambda: "parameter speed is 9" in visit.page.inner_text("main"), "the range warning")
    assert visit.page.locator(".parameter.outside").count() == 1
    visit.page.get_by_text("back to the case").click()
    until(lambda: visit.page.locator(".overlay .title").count() == 3, "three panels again")


@pytest.mark.parametrize("width", [1400], indirect=True)
def test_a_run_is_explored_before_the_studio_hears_that_the_runs_are_shown(visit: Visit, folder: Path):
    """While a call is under way, the browser keeps to itself which view was chosen."""
    visit.explore()
    visit.page.evaluate(
        "async path => { const { client, state, trigger } = window.trame; trigger('reset_view');"
        " while (!client.isBusy()) await null;"
        " state.set('view', 'runs'); trigger('explore', [path]); }",
        str(folder / "flow"),
    )
    visit.page.wait_for_selector("#canvas", state="hidden")
    visit.page.wait_for_selector("#canvas", state="visible")


@pytest.mark.parametrize("width", [1400], indirect=True)
def test_a_dropped_mesh_comes_back_predicted(visit: Visit, tmp_path: Path):
    visit.explore()
    source = write_mesh(Shape(cylinder(1, 1, 5, 12)).mesh.copy(), tmp_path / "part.vtu", {}, "point")
    dropped = visit.page.evaluate_handle(
        "bytes => { const all = new DataTransfer();"
        " all.items.add(new File([new Uint8Array(bytes)], 'part.vtu')); return all; }",
        list(source.read_bytes()),
    )
    visit.page.locator("#canvas").dispatch_event("drop", {"dataTransfer": dropped})
    until(lambda: "60 points" in visit.page.inner_text("main"), "the dropped case")
    assert coloured(visit.settle()) > 0.1
    for kind, count in (("VTU", None), ("CSV", 61), ("PNG", None)):
        with visit.page.expect_download() as coming:
            visit.page.get_by_text(kind, exact=True).click()
        path = tmp_path / coming.value.suggested_filename
        coming.value.save_as(path)
        if kind == "VTU":
            assert {"u_predicted", "v_predicted", "p_predicted"} <= set(pyvista.read(path).point_data)
        elif kind == "CSV":
            assert len(path.read_text().splitlines()) == count
        else:
            assert coloured(np.asarray(Image.open(path).convert("RGB")).astype(int)) > 0.05
    visit.page.locator("#file").set_input_files({"name": "bad.vtu", "mimeType": "", "buffer": b"no mesh"})
    until(lambda: "bad.vtu" in visit.page.get_by_role("alert").inner_text(), "what is wrong with it")
    (refused,) = until(lambda: visit.wrong, "the refusal, which the browser writes down by itself")
    assert "422" in refused
    visit.wrong.clear()


@pytest.mark.parametrize("width", [1400], indirect=True)
def test_a_click_shows_the_value_and_two_the_line(visit: Visit):
    visit.explore()
    box = visit.page.locator("#canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 0.47 * box["height"])
    reach = 0.1 * box["width"]
    visit.page.mouse.click(middle[0] + reach, middle[1])
    until(lambda: visit.page.locator(".probe").count(), "the value at the point")
    assert "u [m/s]" in visit.page.inner_text(".probe")
    visit.page.get_by_label("click twice: values along a line").click()
    visit.page.mouse.click(middle[0] + reach, middle[1])
    until(lambda: visit.page.locator("#line_from").input_value(), "the first end")
    visit.page.mouse.click(middle[0] - reach, middle[1] + reach / 2)
    until(
        lambda: visit.page.locator("[aria-label='u [m/s] along the line']").count(), "the chart of the line"
    )


@pytest.mark.parametrize("width", [1400], indirect=True)
def test_all_of_the_page_is_reached_by_keys(visit: Visit):
    """By the tabulator alone: the views, the runs, the case, the parameters, the tools, the files."""
    visit.explore()
    visit.page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(60):
        visit.page.keyboard.press("Tab")
        seen.add(
            visit.page.evaluate(
                "(e => e.getAttribute('aria-label') || e.id || e.innerText.trim())(document.activeElement)"
            )
        )
    wanted = {
        "Explore",
        "file",
        "value-0",
        "speed [m/s]",
        "show all",
        "turn left",
        "VTU",
        "CSV",
        "PNG",
        "probe_at",
    }
    assert wanted <= seen
    before = visit.settle()
    visit.page.get_by_label("turn left").press("Enter")
    until(lambda: not np.array_equal(visit.settle(), before), "a picture that turned")


@pytest.mark.parametrize("width", [1400], indirect=True)
def test_a_training_advances_on_the_page(visit: Visit, folder: Path):
    """The row counts epochs and says what is left; killed, it says stopped. The other version says why."""
    assert "format 99" in visit.row("older")
    out = folder / "now"
    words = ["train", str(folder / "cylinder.h5"), "--out", str(out), "--train.epochs", "5000", *WORDS]
    with subprocess.Popen([sys.executable, "-m", "lrsa", *words], stdout=subprocess.DEVNULL) as process:
        try:
            visit.page.wait_for_selector("tr[data-run='now'] .state.training")

            def epoch() -> int:
                found = re.search(r"epoch (\d+) of 5000", visit.row("now"))
                return int(found[1]) if found else 0

            first = until(epoch, "the first epoch")
            until(lambda: epoch() > first, "further epochs")
            until(lambda: "left" in visit.row("now"), "the time that is left")
            visit.page.get_by_label("curve of now").check()
            visit.page.wait_for_selector(".chart svg")
        finally:
            process.kill()
    visit.page.wait_for_selector("tr[data-run='now'] .state.stopped")
