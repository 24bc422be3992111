"""What a page keeps of its place, and how it listens to a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import anyio

from seedgrid.core.picture import Entry, new_id
from seedgrid.web.actions.painting import PaintingActions
from seedgrid.web.state.page_state import PageState, PageUpdate


def follow(
    handlers: PaintingActions,
    state: PageState,
    enough: Callable[[PageUpdate], object] = lambda _: False,
) -> list[PageUpdate]:
    """Return the news up to the end, or up to the first with which somebody has heard enough."""

    async def listen() -> list[PageUpdate]:
        heard = []
        async with aclosing(handlers.follow(state)) as news:
            async for each in news:
                heard.append(each)
                if enough(each):
                    break
        return heard

    return anyio.run(listen)


def nowhere() -> PageState:
    """Return the state of a new visitor's page."""
    return PageState(visitor=new_id())


def place_of(entry: Entry) -> PageState:
    """Return the state of a page that has this picture picked."""
    lineage = entry.lineage
    return PageState(
        visitor="0" * 32, work=lineage.work_id, round=lineage.round_id, picked=entry.id
    )
