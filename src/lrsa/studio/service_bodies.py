"""The bodies of requests: how large they may be, how long they may take, and what is in a form."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import HTTPException, Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

MEGABYTE = 10**6
JSON_MEGABYTES = 8
"""Numbers in words take the interpreter a tenth of a second by then, in which nobody else is served."""
HELD = 4
"""Bodies of the largest size for which there is room at one time."""
FIELD = 10_000
"""Bytes of a field of a form that is no file."""


@dataclass(frozen=True)
class Limits:
    """What a request may ask for."""

    megabytes: float = 64.0
    """Of a body."""
    points: int = 1_000_000
    """Of a case, times the number of times that are asked for."""
    seconds: float = 60.0
    """Until a body has come; and then until the answer is there."""
    waiting: int = 256
    """Cases that may wait for their prediction."""
    together: int = 64
    """Cases that may be predicted in one batch; with 1, answers have the same bits whoever else asks."""

    @property
    def bytes(self) -> int:
        return int(self.megabytes * MEGABYTE)


@dataclass(frozen=True)
class Form:
    """A file, and what is said of it."""

    suffix: str
    """Of its name, which is used for nothing else."""
    content: bytes
    fields: dict[str, str]


class Bodies:
    """Receives bodies within the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0
        """Bytes of all bodies that are here."""
        self.stopping = False
        self._receiving: set[asyncio.Timeout] = set()

    @asynccontextmanager
    async def receive(self, request: Request, largest: int) -> AsyncIterator[bytes]:
        """The body, whose room is free again afterwards."""
        received = bytearray()
        try:
            yield await self._receive(request, largest, received)
        finally:
            self.held -= len(received)

    def stop(self) -> None:
        """Who has not sent all of his request yet is not waited for."""
        self.stopping = True
        for timer in self._receiving:
            if not timer.expired():
                timer.reschedule(0)

    async def _receive(self, request: Request, largest: int, received: bytearray) -> bytes:
        too_large = HTTPException(
            413,
            f"the body is larger than {largest / MEGABYTE:g} MB"
            + ("" if largest == self.limits.bytes else ". Send large cases as a file in a form"),
        )
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > largest:
            raise too_large
        timer = asyncio.timeout(self.limits.seconds)
        try:
            async with timer:
                self._receiving.add(timer)
                async for chunk in request.stream():
                    self.held += len(chunk)
                    received += chunk
                    if len(received) > largest:
                        raise too_large
                    if self.held > HELD * self.limits.bytes:
                        raise HTTPException(503, "too many large requests at once. Try again in a moment")
        except TimeoutError:
            if self.stopping:
                raise HTTPException(503, "the service is stopping") from None
            raise HTTPException(408, f"the body did not come within {self.limits.seconds:g} s") from None
        finally:
            self._receiving.discard(timer)
        return bytes(received)


async def read_form(request: Request, body: bytes) -> Form:
    """The one file of a form, kept in memory, and its fields."""

    async def stream() -> AsyncIterator[bytes]:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=4, max_part_size=FIELD)  # pyright: ignore[reportArgumentType]
    parser.spool_max_size = len(body) + 1  # never on the disk
    try:
        form = await parser.parse()
        file = form.get("file")
        content = await file.read() if isinstance(file, UploadFile) else b""
    except (MultiPartException, ValueError, LookupError) as error:
        reason = getattr(error, "message", None) or type(error).__name__
        raise HTTPException(422, f"the form is not readable: {reason}") from error
    finally:
        for kept in parser._files_to_close_on_error:  # that of a body which is cut off is in no form
            kept.close()
    if not isinstance(file, UploadFile):
        raise HTTPException(422, 'the form has no "file", or is cut off')
    fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    _, mark, suffix = (file.filename or "").rpartition(".")
    return Form(f".{suffix.lower()}" if mark else "", content, fields)
