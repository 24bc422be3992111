"""Looking: the pictures of a tree for a slideshow, and the film of one of them.

An id is 128 random bits: only who was shown a picture can ask for it, as for the picture itself.
"""

from __future__ import annotations

from concurrent.futures import CancelledError
from contextlib import ExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import to_thread
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.picture import PictureId
from seedgrid.core.recipe import Value
from seedgrid.export.film import SUFFIXES, write_film
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures
from seedgrid.web.server.downloads import written
from seedgrid.web.server.file_work import FileWork, Holding
from seedgrid.web.server.waiting import StepWatch, asker, network_of, steps_of
from seedgrid.web.state.visitor_libraries import Libraries

if TYPE_CHECKING:
    from seedgrid.core.picture import Entry

MAX_PICTURES: Final = 1000


class FilmAsked(Value):
    """A film that is asked for.

    Attributes:
        kind: `"webp"` or `"gif"`.
    """

    id: PictureId
    kind: str = "webp"


def looking_routes(studio: Studio, libraries: Libraries, file_work: FileWork) -> list[Route]:
    """Return the addresses: `tree/ID.json`, `film/ID.json`, and POST `film`."""

    async def slides(request: Request) -> Response:
        wanted, address = request.path_params["id"], network_of(_host(request))

        def listed() -> Response:
            entries = libraries.family(wanted, scope="work")[:MAX_PICTURES]
            return JSONResponse([pictures.slide(entry) for entry in entries if not entry.lost])

        try:
            return await file_work.do(address, listed)
        except RunError as error:
            return PlainTextResponse(str(error), status_code=429)

    def cost(request: Request) -> Response:
        """Say before the click what a film would cost."""
        entry = _one(libraries, request.path_params["id"])
        if entry is None:
            return no_picture()
        seconds = studio.verifier.film_s(entry)
        return JSONResponse({"seconds": seconds, "steps": entry.recipe.num_inference_steps})

    async def film(request: Request) -> Response:
        try:
            wanted = FilmAsked.model_validate_json(await request.body())
        except ValidationError:
            return PlainTextResponse("name a picture, and webp or gif", status_code=400)
        entry = await to_thread.run_sync(_one, libraries, wanted.id)
        if entry is None or f".{wanted.kind}" not in SUFFIXES:
            return no_picture()
        return await _filmed(studio, entry, wanted.kind, request)

    return [
        Route("/seedgrid/tree/{id}.json", slides),
        Route("/seedgrid/film/{id}.json", cost),
        Route("/seedgrid/film", film, methods=["POST"]),
    ]


async def _filmed(studio: Studio, entry: Entry, kind: str, request: Request) -> Response:
    """Paint it again; whoever goes away before the end stops it."""
    watch = StepWatch()
    try:
        future = studio.verifier.start_film(entry, watch, **asker("film", None, _host(request)))
        async with aclosing(steps_of(future, watch)) as steps:
            async for _ in steps:
                if await request.is_disconnected():
                    return no_picture()
        film = future.result()
    except CancelledError:
        return no_picture()
    except SeedGridError as error:
        return JSONResponse({"key": f"error_{error.code}", "data": error.data}, status_code=409)
    name = f"seedgrid-film-{entry.id[:8]}.{kind}"
    with ExitStack() as kept:
        answer = await to_thread.run_sync(written, name, partial(write_film, film), kept)
        answer.headers["X-SeedGrid-Same"] = str(film.is_same).lower()
        return Holding(answer, kept.pop_all())


def _host(request: Request) -> str | None:
    return request.client.host if request.client else None


def _one(libraries: Libraries, picture_id: str) -> Entry | None:
    found = libraries.family(picture_id, scope="picture")
    return found[0] if found else None


def no_picture() -> Response:
    """Answer that there is no such picture."""
    return PlainTextResponse("there is no such picture", status_code=404)
