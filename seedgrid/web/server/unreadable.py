"""Unreadable: what Gradio's own readers cannot read gets an answer, not a traceback.

An event that there is not, a body that is no JSON, a list where an object belongs: Gradio ends in
an error of Python, and anybody could fill a log with those, fifty lines for a request of one. Knows
nothing of what is asked for.
"""

from __future__ import annotations

import logging
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.plain import one_line
from seedgrid.web.server.limits import route_path

logger = logging.getLogger(__name__)

_GRADIO: Final = "/gradio_api/"
_LONGEST: Final = 200


class Unreadable:
    """Stands right before Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: 400 where Gradio fails, or the end where it has begun to answer."""
        if scope["type"] != "http" or not route_path(scope).startswith(_GRADIO):
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except (OSError, MemoryError):  # Of this machine, not of the request.
            raise
        except Exception as error:  # noqa: BLE001 (Gradio raises whatever its parsers do)
            told = f"{route_path(scope)}: {error!r}"
            logger.warning("Gradio cannot answer %s", one_line(told, limit=_LONGEST))
            if has_begun:
                await send({"type": "http.response.body", "body": b""})
            else:
                refusal = PlainTextResponse("nobody can read the request", status_code=400)
                await refusal(scope, receive, send)
