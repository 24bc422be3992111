"""Packed: the page's scripts and styles, packed once and kept, whoever asks for them.

Gradio packs each of them anew for every visitor, on the one thread that answers everybody: two
megabytes of scripts for each first visit. Knows nothing of what they say.
"""

import asyncio
from dataclasses import dataclass
from posixpath import normpath
from typing import Final

import brotli
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.web.server.limits import route_path

_FOLDERS: Final = ("/assets/", "/seedgrid/assets/", "/static/js/", "/theme.css")
_ENDINGS: Final = (".js", ".css", ".svg", ".json")
_QUALITY: Final = 6
_MAX_KEPT_BYTES: Final = 32 * 1024**2
_FOREVER: Final = "public, max-age=31536000, immutable"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A whole answer: its start and its body, packed for those who can unpack it."""

    start: Message
    body: bytes
    packed: bytes

    async def send(self, scope: Scope, send: Send) -> None:
        """Send it, packed where the browser takes Brotli."""
        takes_brotli = "br" in Headers(scope=scope).get("accept-encoding", "")
        body = self.packed if takes_brotli else self.body
        start = {**self.start, "headers": list(self.start["headers"])}
        headers = MutableHeaders(scope=start)
        headers["Content-Length"] = str(len(body))
        headers.add_vary_header("Accept-Encoding")
        if takes_brotli:
            headers["Content-Encoding"] = "br"
        await send(start)
        await send({"type": "http.response.body", "body": body})


async def whole(app: ASGIApp, scope: Scope, receive: Receive) -> tuple[Message, bytes]:
    """Return what an application answers, as a start and one body."""
    start: Message = {"type": "http.response.start", "status": 500, "headers": []}
    parts: list[bytes] = []

    async def hold(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, hold)
    return start, b"".join(parts)


async def pack(start: Message, body: bytes) -> Answer:
    """Pack a body, on another thread."""
    packed = await to_thread.run_sync(lambda: brotli.compress(body, quality=_QUALITY))
    return Answer(start=start, body=body, packed=packed)


class Packed:
    """Stands before Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[str, Answer] = {}
        self._num_bytes = 0
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; only whole scripts and styles are kept."""
        if not _is_kept(scope):
            await self._app(scope, receive, send)
            return
        path = route_path(scope)
        if path != normpath(path):
            # The same file by one more name would be packed and kept once more.
            await PlainTextResponse("there is no such file", 404)(scope, receive, send)
            return
        answer = self._kept.get(path)
        if answer is None:
            async with self._making:
                answer = await self._make(path, _for_the_whole(scope), receive)
        await answer.send(scope, send)

    async def _make(self, path: str, scope: Scope, receive: Receive) -> Answer:
        """Return what others have made meanwhile, or make it."""
        if path in self._kept:
            return self._kept[path]
        answer = await pack(*await whole(self._app, scope, receive))
        size = len(answer.body) + len(answer.packed)
        if answer.start["status"] == 200 and self._num_bytes + size <= _MAX_KEPT_BYTES:
            if path.startswith("/assets/"):  # Gradio's names change with the content.
                MutableHeaders(scope=answer.start)["Cache-Control"] = _FOREVER
            self._kept[path] = answer
            self._num_bytes += size
        return answer


def _is_kept(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    path = route_path(scope)
    return path.startswith(_FOLDERS) and path.endswith(_ENDINGS)


def _for_the_whole(scope: Scope) -> Scope:
    """Return the request without its conditions: for a part of a file Gradio packs it anew."""
    conditions = (b"range", b"if-")
    headers = [pair for pair in scope["headers"] if not pair[0].startswith(conditions)]
    return {**scope, "headers": headers}
