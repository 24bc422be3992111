"""BoundedBody: refuses a request that is larger than anything the page or the API ever sends.

Gradio reads a JSON body into memory before it looks at it. Uploads are left to Gradio, which counts
them while they arrive (`max_file_size`). Knows nothing of components.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MAX_BODY_BYTES: Final = 2_000_000
_UPLOAD: Final = "/upload"
_WITHOUT_BODY: Final = ("GET", "HEAD", "OPTIONS")


class BoundedBody:
    """Stands before Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it: 413 for too much, 411 when it does not say how much."""
        refusal = _refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def _refusal(scope: Scope) -> PlainTextResponse | None:
    if scope["method"] in _WITHOUT_BODY or scope["path"].endswith(_UPLOAD):
        return None
    headers = Headers(scope=scope)
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit()):
        return PlainTextResponse("say how long the request is", status_code=411)
    if int(length) > MAX_BODY_BYTES:
        limit = f"at most {MAX_BODY_BYTES:,} bytes"
        return PlainTextResponse(f"the request is too large: {limit}", status_code=413)
    return None
