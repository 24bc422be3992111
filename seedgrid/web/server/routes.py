"""Routes of the page: a POST for each action, told the page state, answered with what changes.

Each body is checked by its type before anything looks at it; what is too large was refused before
(`limits.py`). Answers that come in pieces are event streams.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, StringConstraints
from starlette.responses import Response, StreamingResponse

from seedgrid.core.errors import SeedGridError
from seedgrid.core.request import STRONG, SUBTLE
from seedgrid.web.actions.form import FormPayload, RoundPayload
from seedgrid.web.actions.library import Query
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.actions.selected import Mark, Outcome, Throw
from seedgrid.web.answers import Answers
from seedgrid.web.serializers import offers, stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.server.headers import json_answer
from seedgrid.web.server.stream import event_stream
from seedgrid.web.server.who import Asks
from seedgrid.web.state.page_state import read_page_state

Json = dict[str, Any]
Id = Annotated[str, StringConstraints(max_length=64)]
Text = Annotated[str, StringConstraints(max_length=2000)]


class Asked(BaseModel):
    """A question of the page: where its browser is, as the browser keeps it."""

    state: dict[str, Any] = {}


class Arrives(Asked):
    """The page opens, or the browser goes back or forward."""

    place: Id | None = None
    link: Annotated[str, StringConstraints(max_length=20_000)] = ""
    start: bool = False
    offer: bool = False
    """Whether the settings are still empty."""


class Generates(Asked):
    """Generate was pressed."""

    fields: FormPayload


class Rounds(Asked):
    """A round around the picked picture is asked for."""

    around: RoundPayload


class Names(Asked):
    """A picture, a round or a folder is named, or nothing."""

    id: Text | None = None


class Loves(Asked):
    """A picture is marked as a favourite, or not."""

    id: Id
    favourite: bool


class Notes(Asked):
    """A note is written to a picture."""

    id: Id
    note: Text


class Shows(Asked):
    """One of the opening page's pictures is clicked."""

    example: Annotated[int, Field(ge=1, le=99)]


class Searches(Asked):
    """The library is asked."""

    asked: Query


class Throws(Asked):
    """Pictures are thrown away or taken back."""

    asked: Throw


class Marks(Asked):
    """Pictures are marked."""

    asked: Mark


class Offers(Asked):
    """What a model offers is asked for."""

    model: Text | None = None
    turbo: bool = False


class Typed(Asked):
    """What the fields show, for advice before a click."""

    fields: FormPayload
    around: RoundPayload


def page_routes(answers: Answers) -> APIRouter:
    """Return the routes of all actions."""
    router = APIRouter(prefix="/seedgrid/do")
    _add_rounds(router, answers)
    _add_card(router, answers)
    _add_library(router, answers)
    _add_settings(router, answers)
    return router


def _add_rounds(router: APIRouter, answers: Answers) -> None:
    """Add what starts a run or goes to another place."""
    handlers = answers.handlers

    @router.post("/load")
    def load(asked: Arrives, who: Asks) -> Response:
        said = asked.model_dump(include={"place", "link", "start"})
        update = handlers.on_load(who.stands(asked.state), said, who.address)
        first = _offer(handlers, None, who.language) if asked.offer else {}
        return json_answer({"keyed": not who.has_cookie} | first | _parts(update))

    @router.post("/generate")
    def generate(asked: Generates, who: Asks) -> Response:
        return _page(handlers.on_generate(asked.fields, who.stands(asked.state), who.address))

    @router.post("/again")
    def again(asked: Asked, who: Asks) -> Response:
        return _page(handlers.on_again(who.stands(asked.state), who.address))

    @router.post("/back")
    def back(asked: Asked, who: Asks) -> Response:
        return _page(handlers.on_back(who.stands(asked.state)))

    @router.post("/go")
    def go(asked: Names, who: Asks) -> Response:
        return _page(handlers.on_go(asked.id, who.stands(asked.state)))

    @router.post("/stop")
    def stop(asked: Asked, who: Asks) -> Response:
        handlers.on_stop(who.stands(asked.state))
        answers.checks.stop(who.visitor)
        return json_answer({})

    def add_round(name: str, start: Callable[[RoundPayload, object, str], PageUpdate]) -> None:
        @router.post(f"/{name}", name=name)
        def around(asked: Rounds, who: Asks) -> Response:
            return _page(start(asked.around, who.stands(asked.state), who.address))

    add_round("refine", handlers.on_refine)
    add_round("subtle", partial(handlers.on_variations, SUBTLE))
    add_round("strong", partial(handlers.on_variations, STRONG))
    add_round("final", partial(handlers.on_final, 2))
    add_round("final-4", partial(handlers.on_final, 4))


def _add_card(router: APIRouter, answers: Answers) -> None:
    """Add what starts no round and goes nowhere."""
    handlers = answers.handlers

    @router.post("/pick")
    def pick(asked: Names, who: Asks) -> Response:
        return _page(handlers.on_pick(asked.id, who.stands(asked.state)))

    @router.post("/favourite")
    def favourite(asked: Loves, who: Asks) -> Response:
        kept = who.stands(asked.state)
        return _page(handlers.on_favourite(asked.id, asked.favourite, kept))

    @router.post("/note")
    def note(asked: Notes, who: Asks) -> Response:
        error = answers.library.on_note(asked.id, asked.note, who.stands(asked.state))
        return json_answer(_problem(error, asked.state))

    @router.post("/follow")
    async def follow(asked: Asked, who: Asks) -> StreamingResponse:
        """Tell how the run of a page goes."""
        return event_stream(handlers.follow(who.stands(asked.state)))

    @router.post("/verify")
    async def verify(asked: Names, who: Asks) -> StreamingResponse:
        async def news() -> AsyncIterator[Json]:
            state = who.stands(asked.state)
            async for each in answers.checks.on_verify(asked.id, state, who.address):
                yield {"verdict": each}

        return event_stream(news())


def _add_library(router: APIRouter, answers: Answers) -> None:
    """Add the library page, its selection, and the opening page's pictures."""
    library, selected = answers.library, answers.selected

    @router.post("/search")
    def search(asked: Searches, who: Asks) -> Response:
        try:
            found = library.on_search(asked.asked, who.stands(asked.state))
        except SeedGridError as error:
            return json_answer(_problem(error, asked.state))
        return json_answer({"library": found})

    @router.post("/open")
    def open_(asked: Names, who: Asks) -> Response:
        return _page(library.on_open(asked.id, who.stands(asked.state)))

    @router.post("/example")
    def example(asked: Shows, who: Asks) -> Response:
        return _page(library.on_example(asked.example, who.stands(asked.state)))

    @router.post("/empty")
    def empty(asked: Asked, who: Asks) -> Response:
        return json_answer(_problem(library.on_empty_trash(who.stands(asked.state)), asked.state))

    @router.post("/folder")
    def folder(asked: Names, who: Asks) -> Response:
        status = library.on_folder(asked.id, who.stands(asked.state), who.host)
        return json_answer({} if status is None else {"status": status})

    @router.post("/trash")
    def trash(asked: Throws, who: Asks) -> Response:
        return _outcome(selected.on_trash(asked.asked, who.stands(asked.state)))

    @router.post("/mark")
    def mark(asked: Marks, who: Asks) -> Response:
        return _outcome(selected.on_mark(asked.asked, who.stands(asked.state)))


def _add_settings(router: APIRouter, answers: Answers) -> None:
    """Add what a model offers, and advice at the fields."""
    handlers = answers.handlers

    @router.post("/offer")
    def offer(asked: Offers, who: Asks) -> Response:
        return json_answer(_offer(handlers, asked.model, who.language, turbo=asked.turbo))

    @router.post("/advise")
    def advise(asked: Typed, who: Asks) -> Response:
        return _page(handlers.advise(asked.fields, asked.around, who.language))

    @router.post("/portable")
    async def portable(asked: Offers) -> StreamingResponse:
        """Tell what portable pictures cost on this machine, once a trial has found out."""

        async def news() -> AsyncIterator[Json]:
            try:
                async for key, data in handlers.portable_news(asked.model):
                    yield {"portable": {"key": key, "data": data}}
            except SeedGridError:  # Generate says what is wrong with the model.
                return

        return event_stream(news())


def _offer(handlers: Handlers, model: str | None, language: str, *, turbo: bool = False) -> Json:
    try:
        found = handlers.offer(model, turbo=turbo)
    except SeedGridError as error:
        return _problem(error, {})
    return {"offer": offers.offered(found, language)}


def _parts(update: PageUpdate) -> Json:
    """Return all that changes on the page; its state, `place` says."""
    return {name: value for name, value in vars(update).items() if name != "state"}


def _page(update: PageUpdate) -> Response:
    return json_answer(_parts(update))


def _outcome(outcome: Outcome) -> Response:
    return json_answer({"status": outcome.status, "library": outcome.answer})


def _problem(error: SeedGridError | None, state: Json) -> Json:
    if error is None:
        return {}
    return {"status": stage.complain(read_page_state(state).move().epoch, error)}
