"""What the page's own server answers besides trame: files in, files out, and nobody else's page."""

import logging
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from lrsa.errors import LrsaError

LARGEST = 2 * 10**9
"""Bytes of a file that is dropped."""
OWN = ("127.0.0.1", "localhost", "::1")


def add_routes(app: Any, studio: Any) -> None:
    """Uploads, downloads, and where the page finds its socket."""
    app.middlewares.append(_only_this_page)
    app.router.add_routes(
        [
            web.post("/upload", _upload(studio)),
            web.get("/download/{kind:vtu|csv}", _download(studio)),
            # trame's page asks for a launcher before it takes the address that it came from.
            web.post("/paraview/", _launcher),
        ]
    )


@web.middleware
async def _only_this_page(request: web.Request, handler: Any) -> web.StreamResponse:
    """Another page in the same browser could reach this address, too: refuse what it sends."""
    origin = request.headers.get("Origin")
    names = [urlsplit(f"//{request.host}").hostname, urlsplit(origin).hostname if origin else "localhost"]
    if any(name not in OWN for name in names):
        raise web.HTTPForbidden(text="this page is for this machine only")
    return await handler(request)


async def _launcher(request: web.Request) -> web.Response:
    return web.json_response({"sessionURL": "ws://USE_HOST/ws", "secret": "wslink-secret"})


def _upload(studio: Any) -> Any:
    async def upload(request: web.Request) -> web.Response:
        """A file of the user's, kept while the page is open."""
        name = re.sub(r"[^\w.+-]", "_", Path(request.query.get("name", "")).name).lstrip(".") or "case"
        folder = studio.scratch / str(len(list(studio.scratch.iterdir())))
        folder.mkdir()
        size = await _keep(request, folder / name)
        if size > LARGEST:
            (folder / name).unlink()
            raise web.HTTPRequestEntityTooLarge(LARGEST, size)
        try:
            await studio.drop(folder / name)
        except Exception as error:  # whatever a file does to its reader, the page goes on
            problem = _said(error, name).replace(f"{folder}/", "")
            with studio.state:
                studio.state.problem = problem
            return web.json_response({"problem": problem}, status=422)
        return web.json_response({"points": studio.state.points})

    return upload


def _said(error: Exception, name: str) -> str:
    if isinstance(error, LrsaError):
        return str(error)
    logging.getLogger(__name__).warning("a file makes no case", exc_info=error)
    return f"{name} makes no case ({type(error).__name__}: {' '.join(str(error).split())[:200]})"


async def _keep(request: web.Request, path: Path) -> int:
    """Write the body to a file, up to what is too large; how much of it was read."""
    size = 0
    with open(path, "wb") as file:
        async for part in request.content.iter_chunked(1 << 20):
            size += len(part)
            if size > LARGEST:
                break
            file.write(part)
    return size


def _download(studio: Any) -> Any:
    async def download(request: web.Request) -> web.StreamResponse:
        try:
            path = await studio.download(request.match_info["kind"])
        except LrsaError as error:
            raise web.HTTPConflict(text=str(error)) from error
        headers = {"Content-Disposition": f'attachment; filename="{path.name}"'}
        return web.FileResponse(path, headers=headers)

    return download
