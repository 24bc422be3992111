"""PageHead: the page as it is sent: Gradio's, with our head in it, made once and then remembered.

Gradio renders its page anew for every visitor, on one thread of the interpreter after the other:
a hundred first visitors at once waited seconds for it. It is the same for all who ask for it
under the same name.
"""

import asyncio
import logging
from collections import Counter
from importlib.metadata import version
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from seedgrid.web.server.headers import page_policy
from seedgrid.web.server.limits import route_path
from seedgrid.web.server.packed import Answer, pack, whole

logger = logging.getLogger(__name__)

_NUM_KEPT: Final = 16
_NAMES: Final = ("host", "x-forwarded-host", "x-forwarded-proto", "x-gradio-server")
"""Headers from which Gradio makes the page's own address."""


class PageHead:
    """Puts our head first in the page's own: Gradio adds `head=` only after it chose a language."""

    def __init__(self, app: ASGIApp, head: str, frames: str = "") -> None:
        self._app = app
        self._head = head.encode()
        self._frames = frames
        self._kept: dict[tuple[str, ...], Answer] = {}
        self._asked = Counter[tuple[str, ...]]()
        self._making = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; only the page itself is changed."""
        is_page = scope["type"] == "http" and scope["method"] == "GET" and route_path(scope) == "/"
        if not is_page:
            await self._app(scope, receive, send)
            return
        answer = await self._answer(scope, receive)
        await answer.send(scope, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        """Return the page for this name; who asks for it while it is made waits for it.

        A name is what anybody sends: those that come once wait for each other, and make nobody's
        page forgotten that is asked for again.
        """
        headers = Headers(scope=scope)
        names = (headers.get(name, "") for name in _NAMES)
        key = (scope["scheme"], scope.get("root_path", ""), *names)
        answer = self._kept.get(key)
        if answer is None:
            async with self._making:
                answer = self._kept.get(key)
                if answer is None:
                    # What a link says is for the browser; Gradio makes nothing of it.
                    answer = await self._make({**scope, "query_string": b""}, receive)
                    self._keep(key, answer)
        self._asked[key] += key in self._kept
        return answer

    def _keep(self, key: tuple[str, ...], answer: Answer) -> None:
        if answer.start["status"] != 200:
            return
        if len(self._kept) >= _NUM_KEPT:
            rarest = min(self._kept, key=self._asked.__getitem__)  # the oldest of equals
            del self._kept[rarest], self._asked[rarest]
        self._kept[key] = answer

    async def _make(self, scope: Scope, receive: Receive) -> Answer:
        start, body = await whole(self._app, scope, receive)
        page = with_head(body, self._head)
        headers = MutableHeaders(scope=start)
        headers["Content-Security-Policy"] = page_policy(page, frames=self._frames)
        return await pack(start, page)


def with_head(page: bytes, head: bytes) -> bytes:
    """Put our head first in the page's own, before any script of Gradio's.

    Nothing public says how Gradio begins its head. In one that begins otherwise ours goes before
    the page, where browsers make a head of it.
    """
    if b"<head>" in page:
        return page.replace(b"<head>", b"<head>\n" + head, 1)
    logger.warning("gradio %s: its page has no plain <head>", version("gradio"))
    return b"<!doctype html>\n" + head + page
