"""The stream: how a run goes, told to the page in the moment it happens.

Gradio's own queue copies every value of a streamed output leaf by leaf in the browser, on the
processors that paint; one line of JSON costs a tenth of that. Who listens holds no thread. Knows
no component.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from seedgrid.web.serializers.answers import Progress

Follow = Callable[[object], AsyncGenerator[Progress, None]]
"""What tells how the run of a page goes: `Following.follow`."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT: Final = ": still here\n\n"


def follow_route(follow: Follow) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers a page state with the news of its run."""

    async def answer(request: Request) -> Response:
        try:
            state = await request.json()
        except (ValueError, RecursionError):
            return PlainTextResponse("a page state is a JSON object", status_code=400)
        news = _lines(follow(state))
        return StreamingResponse(news, media_type="text/event-stream", headers=_HEADERS)

    return answer


async def _lines(news: AsyncGenerator[Progress, None]) -> AsyncGenerator[str, None]:
    told: Progress | None = None
    async with aclosing(news):
        async for progress in news:
            yield line(progress, told)
            told = progress


def line(progress: Progress, told: Progress | None) -> str:
    """Write one piece of news; what was told just before is not told again."""
    parts = {
        name: value
        for name, value in vars(progress).items()
        if value is not None and (told is None or value is not getattr(told, name))
    }
    return f"data: {json.dumps(parts, ensure_ascii=False)}\n\n" if parts else _HEARTBEAT
