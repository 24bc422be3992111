"""Listens to a run as a page does, to its end, or until somebody has heard enough."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import anyio

from seedgrid.web.actions.painting import Handlers
from seedgrid.web.serializers.answers import PageUpdate


def follow(
    handlers: Handlers, kept: object, enough: Callable[[PageUpdate], object] = lambda _: False
) -> list[PageUpdate]:
    """Return the news up to the end, or up to the first with which somebody has heard enough."""

    async def listen() -> list[PageUpdate]:
        heard = []
        async with aclosing(handlers.follow(kept)) as news:
            async for each in news:
                heard.append(each)
                if enough(each):
                    break
        return heard

    return anyio.run(listen)
