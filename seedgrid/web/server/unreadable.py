"""Unreadable: what Gradio's own readers cannot read gets an answer, not a traceback.

An event that there is not, a body that is no JSON, a list where an object belongs, too few values:
Gradio ends in an error of Python, and anybody could fill a log with those, fifty lines for a
request of one. Knows nothing of what is asked for.
"""

import json
import logging
from typing import Any, Final

import gradio as gr
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.errors import told_of
from seedgrid.core.text import one_line
from seedgrid.web.server.limits import route_path

logger = logging.getLogger(__name__)

_GRADIO: Final = "/gradio_api/"
_DIRECT: Final = ("/gradio_api/run/", "/gradio_api/api/")
"""Where an event is answered at once, and an error of whoever asks with 500."""
_LONGEST: Final = 200


class ReadingBlocks(gr.Blocks):  # type: ignore[misc] # Gradio is untyped
    """A page that says in one sentence, here and to who asks, what it cannot read."""

    async def process_api(self, block_fn: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Answer an event.

        Raises:
            gr.Error: It is one that only the browser's own script answers; or no memory is left.
        """
        found = self.fns[block_fn] if isinstance(block_fn, int) else block_fn
        if not found.fn:
            raise _unreadable("nothing is computed for this event")
        try:
            return await super().process_api(block_fn, *args, **options)
        except MemoryError as error:
            raise gr.Error(str(told_of(error)), print_exception=False) from error

    async def preprocess_data(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        """Read the values of an event.

        Raises:
            gr.Error: They are none of its.
        """
        try:
            return await super().preprocess_data(*args, **options)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # Whatever Gradio's components raise.
            raise _unreadable(repr(error)) from error


def _unreadable(why: str) -> gr.Error:
    logger.warning("nobody can read an event: %s", one_line(why, limit=_LONGEST))
    return gr.Error("nobody can read the request", print_exception=False)


class _Answers:
    """Passes an answer on; a sentence for who asks is no fault of the server's."""

    def __init__(self, send: Send, *, is_direct: bool) -> None:
        self.has_begun = False
        self._send = send
        self._is_direct = is_direct
        self._held: Message | None = None

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        if self._is_direct and message.get("status") == 500:
            self._held = message
            return
        if self._held is not None:
            start, self._held = self._held, None
            await self._send({**start, "status": 400 if _is_sentence(message) else 500})
        await self._send(message)


def _is_sentence(message: Message) -> bool:
    try:
        said = json.loads(message.get("body", b""))
    except ValueError:
        return False
    return isinstance(said, dict) and isinstance(said.get("error"), str)


class Unreadable:
    """Stands right before Gradio."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: 400 where Gradio fails, or the end where it has begun to answer."""
        if scope["type"] != "http" or not route_path(scope).startswith(_GRADIO):
            await self._app(scope, receive, send)
            return
        answers = _Answers(send, is_direct=route_path(scope).startswith(_DIRECT))
        try:
            await self._app(scope, receive, answers)
        except (OSError, MemoryError):  # Of this machine, not of the request.
            raise
        except Exception as error:  # noqa: BLE001 (Gradio raises whatever its parsers do)
            told = f"{route_path(scope)}: {error!r}"
            logger.warning("Gradio cannot answer %s", one_line(told, limit=_LONGEST))
            if answers.has_begun:
                await send({"type": "http.response.body", "body": b""})
            else:
                refusal = PlainTextResponse("nobody can read the request", status_code=400)
                await refusal(scope, receive, send)
