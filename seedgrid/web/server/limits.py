"""BoundedBody: refuses a request that is larger than anything the page or the API ever sends.

Gradio reads a JSON body into memory and builds it before it looks at it. Here it is counted while
it arrives and looked through as text. The routes that take files are exempt: their bodies go to
the disk piece by piece, pictures counted by `uploads.UploadGate`, models by their own route.
Knows nothing of components.
"""

from collections import Counter
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.web.server.json_bounds import problem
from seedgrid.web.server.waiting import network_of

MAX_BODY_BYTES: Final = 2_000_000
MAX_IN_WORK_BYTES: Final = 6 * MAX_BODY_BYTES
"""Of the bodies of one address that arrive or are answered, which are in memory."""
UPLOAD_ROUTE: Final = "/gradio_api/upload"
MODEL_FILES: Final = "/seedgrid/models/file/"
"""Where a model's file may come to, of any size: its route looks who asks and what has room."""
_WITHOUT_BODY: Final = ("GET", "HEAD", "OPTIONS")


class BoundedBody:
    """Stands before Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_work: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it: 413 or 429 for too much, 411 without a length, 400."""
        if scope["type"] != "http" or scope["method"] in _WITHOUT_BODY or is_upload(scope):
            await self._app(scope, receive, send)
            return
        is_model = is_model_file(scope)
        headers = Headers(scope=scope)
        refusal = _refusal(headers, limit=None if is_model else MAX_BODY_BYTES)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif is_model:
            await self._app(scope, receive, send)
        else:
            length = body_length(headers) or 0
            await self._counted(length, scope, receive, send)

    async def _counted(self, length: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what has a body of this length, unless too much of its address is in work."""
        address = network_of((scope.get("client") or ("",))[0])
        if self._in_work[address] + length > MAX_IN_WORK_BYTES:
            said = "too much from your network is still arriving: try again in a minute"
            await PlainTextResponse(said, 429, {"Retry-After": "60"})(scope, receive, send)
            return
        self._in_work[address] += length
        try:
            body = await _read(receive)
            found = problem(body)
            app = self._app if found is None else _refused(*found)
            await app(scope, _replaying(body, receive), send)
        finally:
            self._in_work[address] -= length
            if not self._in_work[address]:
                del self._in_work[address]


def is_upload(scope: Scope) -> bool:
    """Tell whether this is a request to the one route that takes files, as the router sees it."""
    return str(scope["method"]) == "POST" and route_path(scope) == UPLOAD_ROUTE


def is_model_file(scope: Scope) -> bool:
    """Tell whether this is a model's file for the models panel."""
    return str(scope["method"]) == "PUT" and route_path(scope).startswith(MODEL_FILES)


def route_path(scope: Scope) -> str:
    """Return the path that the router compares: percent signs read, a proxy's prefix taken off."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def body_length(headers: Headers, *, default: str = "") -> int | None:
    """Return how long a request says that its body is; None where it does not say."""
    length = headers.get("content-length", default)
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    return int(length) if is_number and "transfer-encoding" not in headers else None


def _refusal(headers: Headers, limit: int | None) -> PlainTextResponse | None:
    length = body_length(headers, default="0" if limit else "")
    if length is None:
        return PlainTextResponse("say how long the request is", status_code=411)
    if limit is not None and length > limit:
        return _refused(413, f"more than {limit:,} bytes")
    return None


def _refused(status: int, said: str) -> PlainTextResponse:
    why = "the request is too large" if status == 413 else "nobody can read the request"
    return PlainTextResponse(f"{why}: {said}", status_code=status)


async def _read(receive: Receive) -> bytes:
    """Read the body; the server below stops at the length that the request named."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read, then whatever comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
