"""From a slider of `lrsa studio` to the new picture: how long, and where the time goes.

    python studies/studio.py [--points 10000] [--moves 40] [--out results]

The page runs in Chromium without a window, whose software draws in place of a graphics card. Every move of
the slider is one press of an arrow key, and is waited for. The three parts add up:

model       the surrogate on the server, by its own clock
transfer    all else until the browser has the new scene: the key, the surfaces, the socket, the arrays
drawing     from there until the pixels of the picture can be read
"""

import argparse
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from cylinder import cylinder, write

import lrsa

PARTS = ("model", "transfer", "drawing")
GRAPHICS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
CLOCKS = """() => {
  window.moves = []; window.asked = 0;
  document.addEventListener('keydown', () => { window.asked = performance.now(); }, true);
  const before = window.studio.drawn;
  window.studio.drawn = () => {
    before();
    const loaded = performance.now();
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const gl = document.querySelector('#canvas canvas').getContext('webgl2');
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
      window.moves.push([loaded - window.asked, performance.now() - loaded]);
    }));
  };
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=10000)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run, alone = trained(Path(folder), options.points)
        rows = measured(Path(folder), options.moves)
    text = page(rows, options.points, run, alone)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "studio.md").write_text(text)
    print(text)


def trained(folder: Path, points: int) -> tuple[str, float]:
    """A run of one epoch, of the model that such data is given: what it is, and what a prediction takes.

    The latter in milliseconds of the processor, which count the same however many others use it.
    """
    side = round(points**0.5)
    data = write(folder / "flow.h5", train=4, test=1, rings=side, spokes=points // side)
    surrogate = lrsa.fit(data, out=folder / "flow", epochs=1)
    count = sum(p.numel() for p in surrogate.model.parameters())
    case, taken = cylinder(1, 1, side, points // side), []
    for _ in range(11):
        begun = time.process_time()
        surrogate.predict(case)
        taken.append(1000 * (time.process_time() - begun))
    return f"LRSA as chosen for the data, {count} parameters", statistics.median(taken)


def measured(folder: Path, moves: int) -> list[dict[str, float]]:
    """Milliseconds of every move."""
    from playwright.sync_api import sync_playwright

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "lrsa", "studio", str(folder), "--port", str(port), "--no-browser"]
    with (
        sync_playwright() as playwright,
        subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        server.stdout.readline()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=GRAPHICS)
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        tab.set_default_timeout(120_000)
        tab.goto(f"http://127.0.0.1:{port}/")
        tab.get_by_role("button", name="Explore flow").click()
        tab.wait_for_selector(".overlay .title")
        time.sleep(5)
        tab.evaluate(CLOCKS)
        slider = tab.get_by_role("slider", name="speed [m/s]")
        slider.focus()
        rows = [moved(tab, slider, i) for i in range(moves + 3)]
        browser.close()
        server.terminate()
    return rows[3:]  # the first ones change from three panels to one


def moved(tab: Any, slider: Any, index: int) -> dict[str, float]:
    """Of one press of a key, there and back again."""
    before = tab.evaluate("window.moves.length")
    slider.press("ArrowRight" if index % 10 < 5 else "ArrowLeft")
    tab.wait_for_function(f"window.moves.length > {before}")
    time.sleep(0.4)
    (until, drawing), model = (
        tab.evaluate("window.moves").pop(),
        tab.evaluate("trame.state.get('milliseconds')"),
    )
    return {"model": model, "transfer": until - model, "drawing": drawing}


def page(rows: list[dict[str, float]], points: int, run: str, alone: float) -> str:
    """The table, with what it was made by."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    libraries = ("torch", "vtk", "trame", "trame-vtk")
    versions = ", ".join(f"{name} {version(name)}" for name in libraries)
    lines = [
        "# From the slider to the picture",
        "",
        f"`python studies/studio.py --points {points} --moves {len(rows)}`: {run}; medians of all moves,"
        f" each waited for; {versions}, Python {platform.python_version()}, Chromium drawing by software,"
        f" {cores} shared cores, load {os.getloadavg()[0]:.1f}, {os.environ.get('OMP_NUM_THREADS', 'all')}"
        " thread(s) of the model.",
        "",
        "| part | median, ms | quartiles, ms |",
        "|---|---|---|",
    ]
    for part in (*PARTS, "together"):
        values = [sum(row.values()) if part == "together" else row[part] for row in rows]
        low, middle, high = statistics.quantiles(values, n=4)
        lines.append(f"| {part} | {middle:.0f} | {low:.0f} to {high:.0f} |")
    lines += [
        "",
        f"The model by itself takes {alone:.0f} ms of the processor (median of 11).",
        "",
        "model: the surrogate, by the server's clock. transfer: the key, the surface with its values, the"
        " socket, the arrays. drawing: until the pixels can be read, two frames of the browser included.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
