"""The stream: how a run goes, told to the page in the moment it happens.

Gradio's own queue copies every value of a streamed output leaf by leaf in the browser, on the
processors that paint; one line of JSON costs a tenth of that. Knows no component.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import lru_cache
from typing import Final

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from seedgrid.web.serializers.answers import Progress
from seedgrid.web.server.waiting import network_of

MAX_FOLLOWERS: Final = 400
"""Each holds a thread that sleeps."""
MAX_FOLLOWERS_OF_ONE: Final = 150
"""From one address, so that nobody holds all of them."""

Follow = Callable[[object], Iterator[Progress]]
"""What tells how the run of a page goes: `Handlers.follow`."""

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT: Final = ": still here\n\n"


def follow_route(follow: Follow) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers a page state with the news of its run."""
    following: Counter[str] = Counter()

    async def counted(news: AsyncIterator[str], address: str) -> AsyncIterator[str]:
        following[address] += 1
        try:
            async for each in news:
                yield each
        finally:
            following[address] -= 1
            if not following[address]:
                del following[address]

    async def answer(request: Request) -> Response:
        address = network_of(request.client.host if request.client else None)
        if following[address] >= MAX_FOLLOWERS_OF_ONE:
            return PlainTextResponse("too many pages follow from here", status_code=429)
        try:
            state = await request.json()
        except (ValueError, RecursionError):
            return PlainTextResponse("a page state is a JSON object", status_code=400)
        news = counted(_lines(follow(state)), address)
        return StreamingResponse(news, media_type="text/event-stream", headers=_HEADERS)

    return answer


async def _lines(news: Iterator[Progress]) -> AsyncIterator[str]:
    """Tell the news as they come; each wait is in a thread that a closed tab leaves alone."""
    told: Progress | None = None
    while True:
        progress = await anyio.to_thread.run_sync(
            next, news, None, limiter=_followers(), abandon_on_cancel=True
        )
        if progress is None:
            return
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


@lru_cache(maxsize=1)
def _followers() -> anyio.CapacityLimiter:
    """Followers do not take the threads that serve pictures."""
    return anyio.CapacityLimiter(MAX_FOLLOWERS)
