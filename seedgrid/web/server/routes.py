"""PageServices: the page's actions for a studio; page_routes: a POST route for each action.

FastAPI checks the arguments by the action's signature. An action that yields updates is answered
with a stream of events.
"""

import inspect
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response, StreamingResponse

from seedgrid.core.errors import SeedGridError
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.variations import STRONG, SUBTLE
from seedgrid.library.visitor_libraries import VisitorLibraries
from seedgrid.studio import Studio
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.painting import PaintingActions
from seedgrid.web.server.page import json_answer
from seedgrid.web.server.waiting import FileWork, FileWorkBounds
from seedgrid.web.state.page_state import PageUpdate
from seedgrid.web.state.snapshot import OneLibrary, Snapshots

_STREAM_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_HEARTBEAT: Final = ": still here\n\n"


class PageServices:
    """The page's actions for a studio, and what its other routes need; no model is loaded."""

    def __init__(
        self,
        studio: Studio,
        libraries: OneLibrary | VisitorLibraries | None = None,
        bounds: FileWorkBounds = FileWorkBounds(),  # noqa: B008 - frozen
    ) -> None:
        self.studio = studio
        self.libraries = libraries or OneLibrary(studio)
        self.file_work = FileWork(bounds)
        snapshots = Snapshots(studio, self.libraries)
        self.handlers = PaintingActions(studio, snapshots, self.file_work)
        self.library = LibraryActions(studio, snapshots)


def starting_suffixes(studio: Studio) -> tuple[str, ...]:
    """Return the four variations' default suffixes: the model's own, else the guide's."""
    try:
        suffixes = studio.card().suffixes
    except SeedGridError:  # The page opens anyway and says what is wrong.
        return GUIDE_SUFFIXES
    return suffixes if len(suffixes) == len(GUIDE_SUFFIXES) else GUIDE_SUFFIXES


def page_routes(services: PageServices) -> APIRouter:
    """Return the routes of all actions."""
    painting, library = services.handlers, services.library
    actions: dict[str, Callable[..., PageUpdate | AsyncIterator[PageUpdate]]] = {
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
        "stop": painting.on_stop,
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
        "trash": library.on_trash,
        "mark": library.on_mark,
        "follow": painting.follow,
        "live-generate": painting.on_live_generate,
        "live-refine": painting.on_live_refine,
        "verify": painting.on_verify,
    }
    router = APIRouter(prefix="/seedgrid/do")
    for name, action in actions.items():
        router.add_api_route(f"/{name}", _endpoint(action), methods=["POST"], response_model=None)
    return router


def _endpoint(
    action: Callable[..., PageUpdate | AsyncIterator[PageUpdate]],
) -> Callable[..., Response]:
    """Return a route's function with the action's signature, by which FastAPI passes arguments."""

    def endpoint(**arguments: Any) -> Response:  # noqa: ANN401 (of any action)
        answer = action(**arguments)
        if isinstance(answer, PageUpdate):
            return json_answer(answer.parts())
        return StreamingResponse(
            lines(answer), media_type="text/event-stream", headers=_STREAM_HEADERS
        )

    endpoint.__signature__ = inspect.signature(action, eval_str=True)  # type: ignore[attr-defined] # FastAPI reads it
    return endpoint


async def lines(updates: AsyncIterator[PageUpdate]) -> AsyncIterator[str]:
    """Write each update as an event, without parts that are the same objects as in the last."""
    sent: dict[str, Any] = {}
    async with aclosing(updates) as each:  # type: ignore[type-var] # all of ours are generators
        async for update in each:
            parts = update.parts()
            new = {name: value for name, value in parts.items() if value is not sent.get(name)}
            yield f"data: {json.dumps(new, ensure_ascii=False)}\n\n" if new else _HEARTBEAT
            sent = parts
