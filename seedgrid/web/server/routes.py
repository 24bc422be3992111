"""The routes of the page's actions: a POST each, answered with the parts that change.

FastAPI validates the arguments by the action's signature; `limits.py` has limited the size. Actions
that are async generators answer with a stream of server-sent events, without holding a thread.
"""

import inspect
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from seedgrid.core.request import STRONG, SUBTLE
from seedgrid.web.answers import Answers
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.server.headers import json_answer

_STREAM_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT: Final = ": still here\n\n"


def page_routes(answers: Answers) -> APIRouter:
    """Return the routes of all actions."""
    painting, library, selected = answers.handlers, answers.library, answers.selected
    router = APIRouter(prefix="/seedgrid/do")
    news: dict[str, Callable[..., AsyncIterator[PageUpdate]]] = {
        "follow": painting.follow,
        "live-generate": answers.live.on_generate,
        "live-refine": answers.live.on_refine,
        "portable": painting.portable_news,
        "verify": answers.checks.on_verify,
    }
    actions: dict[str, Callable[..., PageUpdate]] = {
        "load": painting.on_load,
        "generate": painting.on_generate,
        "refine": painting.on_refine,
        "subtle": partial(painting.on_variations, SUBTLE),
        "strong": partial(painting.on_variations, STRONG),
        "final": partial(painting.on_final, 2),
        "final-4": partial(painting.on_final, 4),
        "again": painting.on_again,
        "back": painting.on_back,
        "go": painting.on_go,
        "stop": answers.on_stop,
        "queue": painting.on_queue,
        "pick": painting.on_pick,
        "favourite": painting.on_favourite,
        "offer": painting.on_offer,
        "advise": painting.advise,
        "search": library.on_search,
        "open": library.on_open,
        "example": library.on_example,
        "note": library.on_note,
        "empty": library.on_empty_trash,
        "trash": selected.on_trash,
        "mark": selected.on_mark,
    }
    for name, action in actions.items():
        router.add_api_route(f"/{name}", _answering(action), methods=["POST"], response_model=None)
    for name, told in news.items():
        router.add_api_route(f"/{name}", _telling(told), methods=["POST"], response_model=None)
    return router


def _answering(action: Callable[..., PageUpdate]) -> Callable[..., Response]:
    def answer(**told: Any) -> Response:  # noqa: ANN401 (as the action's signature says)
        return json_answer(action(**told).parts())

    answer.__signature__ = inspect.signature(action, eval_str=True)  # type: ignore[attr-defined] # FastAPI reads it
    return answer


def _telling(
    news: Callable[..., AsyncIterator[PageUpdate]],
) -> Callable[..., Coroutine[Any, Any, Response]]:
    async def answer(**told: Any) -> Response:  # noqa: ANN401 (as the generator's signature says)
        body = lines(news(**told))
        return StreamingResponse(body, media_type="text/event-stream", headers=_STREAM_HEADERS)

    answer.__signature__ = inspect.signature(news, eval_str=True)  # type: ignore[attr-defined] # FastAPI reads it
    return answer


async def lines(news: AsyncIterator[PageUpdate]) -> AsyncIterator[str]:
    """Write each update as a server-sent event, without parts that the last one had too."""
    told: dict[str, Any] = {}
    async with aclosing(news) as each:  # type: ignore[type-var] # all of ours are generators
        async for update in each:
            parts = update.parts()
            new = {name: value for name, value in parts.items() if value is not told.get(name)}
            yield f"data: {json.dumps(new, ensure_ascii=False)}\n\n" if new else _HEARTBEAT
            told = parts
