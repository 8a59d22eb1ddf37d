"""`lrsa studio`: the page on this machine, until it is stopped."""

import os
import socket
import webbrowser
from pathlib import Path
from typing import Any

from lrsa.console import console
from lrsa.errors import LrsaError

HOST = "127.0.0.1"


def run_studio(folder: Path, port: int = 0, browser: bool = True) -> None:
    """Serve the page of the runs in a folder."""
    if not folder.is_dir():
        raise LrsaError(f"{folder} is no folder. Name one with runs in it; `lrsa train` makes runs/")
    os.environ["WSLINK_READY_MSG"] = ""  # else it is printed
    try:
        from trame.app import get_server

        from lrsa.studio.control import Studio
        from lrsa.studio.page import build
        from lrsa.studio.routes import add_routes
    except ImportError as error:
        raise LrsaError(
            "the page needs trame and PyVista. Install them with `pip install lrsa[studio]`"
        ) from error
    server: Any = get_server("lrsa-studio", client_type="vue3")
    studio = Studio(server, folder)
    build(server, studio)
    address = f"http://{HOST}:{port or _free_port()}/"
    controller = server.controller
    controller.on_server_bind.add(lambda wslink: add_routes(wslink.app, studio))

    def ready(**_: object) -> None:
        studio.start()
        console.print(f"studio: {address} shows the runs in {folder}. Stop it with Ctrl-C")
        if browser:
            webbrowser.open(address)

    controller.on_server_ready.add(ready)
    number = int(address.rpartition(":")[2].strip("/"))
    try:
        server.start(
            port=number,
            host=HOST,
            open_browser=False,
            show_connection_info=False,
            disable_logging=True,
            timeout=0,
        )
    except OSError as error:
        raise LrsaError(f"port {number} is in use. Name another with --port, or none at all") from error
    finally:
        studio.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
