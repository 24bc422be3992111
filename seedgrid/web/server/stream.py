"""Event streams: answers that come piece by piece, each in the moment in which it happens.

Who listens holds no thread.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import StreamingResponse

from seedgrid.web.serializers.answers import Progress

_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT: Final = ": still here\n\n"


def event_stream(news: AsyncIterator[Any]) -> StreamingResponse:
    """Answer with each piece of news: a `Progress`, or a mapping of parts of the page."""
    return StreamingResponse(_lines(news), media_type="text/event-stream", headers=_HEADERS)


async def _lines(news: AsyncIterator[Any]) -> AsyncIterator[str]:
    told: dict[str, Any] = {}
    async with aclosing(news) as each:  # type: ignore[type-var] # all of ours are generators
        async for progress in each:
            parts = vars(progress) if isinstance(progress, Progress) else progress
            yield line(parts, told)
            told = parts


def line(parts: dict[str, Any], told: dict[str, Any]) -> str:
    """Write one piece of news; a part that was told just before is not told again."""
    new = {k: v for k, v in parts.items() if v is not None and v is not told.get(k)}
    return f"data: {json.dumps(new, ensure_ascii=False)}\n\n" if new else _HEARTBEAT
