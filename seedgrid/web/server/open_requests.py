"""OpenRequests: bounds how many requests of one address are open at once.

A stream that nobody reads, a slow reader and an upload that never ends each hold a descriptor for
as long as they like. Knows nothing of what is asked for.
"""

from collections import Counter

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from seedgrid.web.server.waiting import network_of

_SAID = "too many requests from your network are open: close some, or try again in a minute"


class OpenRequests:
    """Stands before everything else that answers."""

    def __init__(self, app: ASGIApp, limit: int | None = None) -> None:
        self._app = app
        self._limit = limit
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with 429."""
        if scope["type"] not in ("http", "websocket") or self._limit is None:
            await self._app(scope, receive, send)
            return
        address = network_of((scope.get("client") or ("",))[0])
        if self._open[address] >= self._limit:
            refusal = PlainTextResponse(_SAID, status_code=429, headers={"Retry-After": "60"})
            await refusal(scope, receive, send)
            return
        self._open[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]
