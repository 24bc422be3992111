"""What a page keeps of its place, and how it listens to a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import anyio

from seedgrid.core.picture import Entry
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.state.page_state import PageState, PageUpdate


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


def place_of(entry: Entry) -> dict[str, Any]:
    """Return what the browser keeps of a page that has this picture picked."""
    lineage = entry.lineage
    state = PageState(
        visitor="0" * 32, work=lineage.work_id, round=lineage.round_id, picked=entry.id
    )
    return state.model_dump(mode="json")
