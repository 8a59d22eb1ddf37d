"""The HTTP service: trained surrogates for other programs.

GET  /health                     whether it is up
GET  /v1/models                  all surrogates
GET  /v1/models/NAME             fields, units, ranges and needs of one
POST /v1/models/NAME/predict     a case in, its fields out, in the same form: JSON, or a file in a form
GET  /docs, /openapi.json        its description, for people and for programs
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from lrsa.errors import LrsaError
from lrsa.pointset import PointSet
from lrsa.studio.batching import Batcher, Refused
from lrsa.studio.service_bodies import JSON_MEGABYTES, MEGABYTE, Bodies, Limits, read_form
from lrsa.studio.service_description import ANSWERS, Health, Problem, accepted, describe
from lrsa.studio.service_files import Files
from lrsa.studio.service_gate import Gate, problem
from lrsa.studio.service_models import Model, Models, Served, unknown
from lrsa.studio.service_page import page
from lrsa.studio.service_quality import quantity_answers
from lrsa.surrogate.ensemble import mean_of
from lrsa.version import __version__

ROWS = 4096
"""Points that are put into words at one time; between them others are served."""
WARNED = 4000
"""Characters of warnings in a header."""


class Service:
    """The surrogates, and all that it takes to answer for them."""

    def __init__(
        self,
        served: Mapping[str, Served],
        folder: Path,
        limits: Limits | None = None,
        token: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.served, self.limits = served, limits or Limits()
        self.bodies, self.files = Bodies(self.limits), Files(self.limits, folder)
        self.batcher = Batcher(self.limits.waiting, threads, self.limits.together, self.files.tidy)
        self.app = self._app(token)
        self.gate = Gate(self.app, token)

    @property
    def health(self) -> Health:
        return Health(
            status="stopping" if self.gate.stopping else "ok",
            models=len(self.served),
            waiting=self.batcher.waiting,
            running=self.gate.running,
            cases=self.batcher.cases,
            batches=self.batcher.batches,
        )

    def stop(self) -> None:
        """What runs ends, what waits is refused, what comes is refused."""
        self.gate.stopping = True
        self.bodies.stop()
        self.batcher.stop()

    def close(self) -> None:
        """After the last answer."""
        self.batcher.stop()
        self.batcher.join()
        self.files.close()

    async def answer(self, served: Served, request: Request) -> Response:
        """The prediction for the case in a request, in the form in which it came."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise HTTPException(415, "compressed bodies are not taken")
        if kind == "application/json":
            largest = min(JSON_MEGABYTES * MEGABYTE, self.limits.bytes)
            async with self.bodies.receive(request, largest) as body, self._in_time():
                return await self._json(served, body)
        if kind == "multipart/form-data":
            async with self.bodies.receive(request, self.limits.bytes) as body, self._in_time():
                return await self._file(served, request, body)
        raise HTTPException(415, "a case is application/json, or a file in multipart/form-data")

    async def _json(self, served: Served, body: bytes) -> Response:
        try:
            asked = served.body.model_validate_json(body)
        except ValidationError as error:
            raise HTTPException(422, _first(error)) from None
        case = served.case_of(asked)
        every = await self._predict(served, case)
        u = mean_of(every)
        u = u[0] if case.times is not None and np.ndim(vars(asked)["time"]) == 0 else u
        quantities, refused = await self._quantities(served, case, every)
        about = {
            "targets": [c.name for c in served.about.targets],
            "quantities": quantities,
            "warnings": [*served.warnings(case), *refused],
        }
        pieces = _words(u, about)
        if u.size // u.shape[-1] <= ROWS:
            return Response(b"".join(pieces), media_type="application/json")
        return StreamingResponse(_in_turn(pieces), media_type="application/json")

    async def _file(self, served: Served, request: Request, body: bytes) -> Response:
        form = await read_form(request, body)
        with self.files.folder_of_request() as folder:
            received = await self.files.read(served, form, Path(folder))
            case = received.loaded.case
            every = await self._predict(served, case)
            quantities, refused = await self._quantities(served, case, every)
            asked = every[..., : received.loaded.asked, :]
            doubts = served.doubts.fields(asked, received.inputs.channels)
            name, content = await self.files.write(received, mean_of(asked), doubts)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        if quantities:
            headers["Lrsa-Quantities"] = json.dumps(quantities)
        if warnings := [*served.warnings(case), *refused]:
            headers["Lrsa-Warnings"] = json.dumps(warnings)[:WARNED]
        return Response(content, headers=headers, media_type="application/octet-stream")

    async def _predict(self, served: Served, case: PointSet) -> np.ndarray:
        """(K, ..., N, o) what every member says."""
        asked = len(case) * (1 if case.times is None else len(case.times))
        if asked > self.limits.points:
            raise HTTPException(
                422, f"{asked} points are asked for; at most {self.limits.points} are predicted"
            )
        return await self.batcher.predict(served.surrogate, case)

    async def _quantities(
        self, served: Served, case: PointSet, every: np.ndarray
    ) -> tuple[dict[str, Any], list[str]]:
        """Those that the run names, by name, and why one of them is not there."""
        if not served.doubts.named:
            return {}, []
        # Surfaces of large meshes take a while, in which others are served.
        row, refused = await asyncio.to_thread(served.doubts.quantities, case, every)
        return {name: one.model_dump() for name, one in quantity_answers(row).items()}, refused

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """Errors become answers, and so does the end of patience."""
        try:
            async with asyncio.timeout(self.limits.seconds):
                yield
        except TimeoutError:
            raise HTTPException(503, f"there was no prediction within {self.limits.seconds:g} s") from None
        except Refused as error:
            raise HTTPException(503, str(error)) from None
        except LrsaError as error:
            raise HTTPException(422, "; ".join(error.lines)) from None
        except OSError as error:
            raise HTTPException(503, f"no file can be kept here now ({error.strerror})") from None

    def _app(self, token: str | None) -> FastAPI:
        app = FastAPI(
            title="lrsa",
            version=__version__,
            description="Trained surrogates of PDE solvers. Physical units in, physical units out.",
            docs_url=None,
            redoc_url=None,
        )
        refused: dict[int | str, dict[str, Any]] = {} if token is None else {401: {"model": Problem}}

        @app.get("/health", response_model=Health, responses={503: {"model": Health}})
        async def health() -> Response:
            """Whether the service is up. It needs no token."""
            state = self.health
            return Response(
                state.model_dump_json(), 200 if state.status == "ok" else 503, media_type="application/json"
            )

        @app.get("/v1/models", responses=refused)
        async def models() -> Models:
            """All surrogates, with their fields, units, ranges and needs."""
            return Models(models=[one.about for one in self.served.values()])

        for one in self.served.values():
            self._add(app, one, refused)

        @app.get("/v1/models/{name}", include_in_schema=False)
        @app.post("/v1/models/{name}/predict", include_in_schema=False)
        async def other(name: str) -> None:
            raise HTTPException(404, unknown(name, list(self.served)))

        @app.get("/docs", response_class=HTMLResponse, responses=refused)
        async def docs() -> HTMLResponse:
            """This description as a page."""
            # Whatever is in a name, nothing is fetched and nothing runs.
            safe = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
            return HTMLResponse(page(app.openapi()), headers=safe)

        @app.exception_handler(StarletteHTTPException)
        async def refuse(request: Request, error: StarletteHTTPException) -> Response:
            return problem(error.status_code, str(error.detail), error.headers)

        @app.exception_handler(ClientDisconnect)
        async def gone(request: Request, error: ClientDisconnect) -> Response:
            return problem(400, "the request was cut off")

        @app.exception_handler(Exception)
        async def broken(request: Request, error: Exception) -> Response:
            return problem(500, "this is a bug of the service, which has told of it where it was started")

        describe(app, token)
        return app

    def _add(self, app: FastAPI, one: Served, refused: Mapping[int | str, dict[str, Any]]) -> None:
        """The two addresses of a surrogate."""

        async def about() -> Model:
            return one.about

        async def predict(request: Request) -> Response:
            return await self.answer(one, request)

        path = f"/v1/models/{one.name}"
        app.get(
            path,
            name=f"about {one.name}",
            description="What goes in and what comes out.",
            responses={**refused},
        )(about)
        app.post(
            f"{path}/predict",
            name=f"predict {one.name}",
            description="A case in, its fields out: as JSON, or in the same kind of file.",
            responses={**refused, **ANSWERS},
            openapi_extra={"requestBody": {"required": True, "content": accepted(one)}},
        )(predict)


def _words(u: np.ndarray, about: Mapping[str, Any]) -> Iterator[bytes]:
    """{"u": (N, o) or (T, N, o), ...} piece by piece. Every float32 is written so that it comes back."""
    yield b'{"u":'
    for t, frame in enumerate(u if u.ndim == 3 else [u]):
        yield (b"," if t else b"[") if u.ndim == 3 else b""
        for start in range(0, len(frame), ROWS):
            yield b"," if start else b"["
            yield json.dumps(frame[start : start + ROWS].tolist(), separators=(",", ":"))[1:-1].encode()
        yield b"]"
    yield (b"]" if u.ndim == 3 else b"") + b"," + json.dumps(about)[1:].encode()


async def _in_turn(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)


def _first(error: ValidationError) -> str:
    """The first thing that is wrong with a body, and where."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    more = error.error_count() - 1
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}".removeprefix(": ") + (f" (and {more} more)" if more else "")
