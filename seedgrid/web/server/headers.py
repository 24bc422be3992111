"""What a browser is told of an answer: what it may run, show and keep.

The page runs its own modules from this server and nothing else: no script and no style stands in
it. Everything else the server sends may run nothing at all, a picture from elsewhere included.
"""

import json
from collections.abc import Mapping
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOREVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
"""Of what has its content, or 128 random bits, in its address."""
UNCACHED: Final = {"Cache-Control": "no-store"}
HARMLESS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}
"""Of files: whatever is in one, it runs nothing and shows nothing else."""

SPACE_FRAMES: Final = "https://huggingface.co https://*.hf.space"
_NOTHING: Final = "default-src 'none'; frame-ancestors 'none'"


def page_policy(frames: str = "") -> str:
    """Return the policy of the page; `frames` are who else may show it in a frame."""
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
    """Answer with the parts of a page that change."""
    body = json.dumps(parts, ensure_ascii=False).encode()
    return Response(body, media_type="application/json", headers=UNCACHED)


class SecurityHeaders:
    """Stands before everything else; what an answer says for itself stays.

    But no answer says that another site may read it, as Gradio's would.
    """

    def __init__(self, app: ASGIApp, frames: str = "") -> None:
        self._app = app
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
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
