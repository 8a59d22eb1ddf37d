"""What every request passes before it is looked at: whose it is, for which host, and whether we are open."""

import hmac
import ipaddress
import json
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/health",)
"""What needs no token."""
LONGEST = 500
"""Characters of a reason."""


class Gate:
    """Around the service: refuses strangers, and everybody once the service is stopping.

    Without a token only programs of this machine may call. A page from elsewhere could still make a browser
    here send requests, under a name of its own that leads here: so the host must be a loopback one.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self.app, self.token = app, token
        self.stopping = False
        self.running = 0
        """Requests that are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
                return
            await self.app(scope, receive, send)
            return
        self.running += 1
        try:
            refusal = self._refusal(scope)
            await (refusal or self.app)(scope, receive, self._closing(send))
        finally:
            self.running -= 1

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        if self.stopping and path not in OPEN:
            return problem(503, "the service is stopping")
        if self.token is None:
            return (
                None if is_loopback(_host(headers)) else problem(421, "this service is for this machine only")
            )
        said = headers.get("authorization", "").encode("latin-1")
        if path in OPEN or hmac.compare_digest(said, f"Bearer {self.token}".encode()):
            return None
        return problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def _closing(self, send: Send) -> Send:
        """Who hears from a service that is stopping is not to send more on that connection."""

        async def closing(message: Message) -> None:
            if self.stopping and message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        return closing


def problem(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as JSON, in ASCII: a reason may have in it whatever a request had."""
    retry = {"Retry-After": "1"} if status == 503 else {}
    content = json.dumps({"detail": reason[:LONGEST]})
    return Response(content, status, {**retry, **(headers or {})}, "application/json")


def is_loopback(host: str) -> bool:
    """Whether this address is of this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(headers: Headers) -> str:
    host = headers.get("host", "").lower()
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
