"""Headers of answers: content security policy and caching.

The page runs only module scripts of this server, nothing inline. All other answers may run
nothing.
"""

import json
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOREVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
"""For answers whose address contains a digest or a random id."""
UNCACHED: Final = {"Cache-Control": "no-store"}
HARMLESS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}
"""For files: a browser runs nothing in them."""

SPACE_FRAMES: Final = "https://huggingface.co https://*.hf.space"
_NOTHING: Final = "default-src 'none'; frame-ancestors 'none'"


def page_policy(frames: str = "") -> str:
    """Return the policy of the page; `frames` are other sites that may show it in a frame."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            f"frame-ancestors 'self' {frames}".strip(),
        )
    )


def json_answer(parts: Mapping[str, object]) -> Response:
    """Answer with the parts of the page that change."""
    body = json.dumps(parts, ensure_ascii=False).encode()
    return Response(body, media_type="application/json", headers=UNCACHED)


class SecurityHeaders:
    """Middleware that adds missing headers, and removes Gradio's permission for other sites."""

    def __init__(self, app: ASGIApp, frames: str = "") -> None:
        self._app = app
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                headers.setdefault("Content-Security-Policy", _NOTHING)
                for name in {n for n in headers if n.startswith("access-control-")}:
                    del headers[name]
                if not self._frames:
                    headers.setdefault("X-Frame-Options", "SAMEORIGIN")
            await send(message)

        await self._app(scope, receive, harden)
