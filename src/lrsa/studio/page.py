"""The page: `page.html` with its style and behaviour, all of it served from installed packages."""

from pathlib import Path
from typing import Any

from trame.ui.vuetify3 import VAppLayout
from trame.widgets import client, vtk

from lrsa.studio.control import Studio

HERE = Path(__file__).parent
ASSETS = ("studio.js", "studio.css")


def build(server: Any, studio: Studio) -> None:
    """Lay out the page, and tell the studio how the scene gets there."""
    script, style = (f"__lrsa/{name}" for name in ASSETS)
    folder = studio.scratch / "assets"
    folder.mkdir()
    for name in ASSETS:
        (folder / name).write_text((HERE / name).read_text())
    server.enable_module({"serve": {"__lrsa": str(folder)}, "scripts": [script], "styles": [style]})
    with VAppLayout(server) as layout:
        view: Any = vtk.VtkLocalView(
            studio.window.vtk, ref="view", after_scene_loaded="window.studio.drawn()"
        )
        layout.root.clear()
        client.ClientTriggers(mounted="window.studio.watch()")
        layout.root.add_child((HERE / "page.html").read_text().replace("<!-- view -->", str(view.html)))

    def push(whole: bool) -> None:
        """Tell the browser what has changed; all of it, where it has just been opened."""
        if server.protocol:
            scene = view.module.scene(studio.window.vtk, new_state=whole)
            server.protocol.publish("trame.vtk.delta", scene)

    studio.push = push
