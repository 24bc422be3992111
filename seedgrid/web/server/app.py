"""The page's server, a `gradio.Server`: api.py has Gradio's endpoints, the page is FastAPI routes.

server = make_server(answers, Site(uploads=folder))
server.launch()
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi.exceptions import RequestValidationError
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

import seedgrid
from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.core.variables import is_zero_gpu
from seedgrid.studio import Studio
from seedgrid.web.api import PARAMETERS, publish
from seedgrid.web.server.calls import (
    BoundedBody,
    ProgramCalls,
    Unexpected,
    UploadBounds,
    refuse_call,
)
from seedgrid.web.server.exports import export_routes
from seedgrid.web.server.files import file_routes
from seedgrid.web.server.guard import SPACE_FRAMES, UNCACHED, Guard, SecurityHeaders, page_policy
from seedgrid.web.server.models import model_routes
from seedgrid.web.server.page import document, files
from seedgrid.web.server.routes import Answers, page_routes, starting_suffixes
from seedgrid.web.server.who import welcome
from seedgrid.web.texts import choose_language


@dataclass(frozen=True, kw_only=True)
class Site:
    """How the page is served."""

    uploads: Path  # The folder of programs' uploads, and of copies for them
    bounds: UploadBounds = field(default_factory=UploadBounds)  # Of uploads
    language: str | None = None  # The page's language; None leaves it to the browser
    host: str | None = None  # The name under which it listens; None on a Space, behind a proxy


class GuardedServer(gr.Server):  # type: ignore[misc] # gradio has no types
    """A server whose guard runs before Gradio's middleware, which lets other sites read answers."""

    def __init__(self, site: Site, **options: Any) -> None:  # noqa: ANN401 (`gr.Server`'s own)
        super().__init__(**options)
        self._site = site

    def build_middleware_stack(self) -> ASGIApp:
        """Return the application with its middleware, the guard outside."""
        guarded = Guard(super().build_middleware_stack(), self._site.uploads, self._site.host)
        return SecurityHeaders(Unexpected(guarded), _frames(self._site))


def _frames(site: Site) -> str:
    return SPACE_FRAMES if site.host is None else ""


def make_server(answers: Answers, site: Site) -> gr.Server:
    """Return the server; it is not launched."""
    server = GuardedServer(
        site,
        title="SeedGrid",
        version=seedgrid.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(BoundedBody, folder=site.uploads, bounds=site.bounds),
            Middleware(ProgramCalls, files=site.uploads, parameters=PARAMETERS),
        ],
        exception_handlers={
            SeedGridError: _refuse,
            MemoryError: _refuse,
            RequestValidationError: _refuse_form,
            Exception: refuse_call,
        },
    )
    server.include_router(page_routes(answers))
    server.include_router(file_routes(answers))
    server.include_router(export_routes(answers))
    server.include_router(model_routes(answers.studio, answers.file_work))
    server.router.routes.extend(
        [
            _page_route(answers, site.language, page_policy(_frames(site))),
            Route("/seedgrid/assets/{version}/{name:path}", files().answer),
            _health_route(answers.studio),
        ]
    )
    publish(server, answers, site.uploads)
    return server


def _page_route(answers: Answers, fixed: str | None, policy: str) -> Route:
    headers = UNCACHED | {"Content-Security-Policy": policy}

    def page(request: Request) -> Response:
        wishes = (request.query_params.get("__lang"), fixed, request.headers.get("accept-language"))
        suffixes = starting_suffixes(answers.studio)
        answer = document(request, choose_language(*wishes), suffixes, headers)
        welcome(request, answer)
        return answer

    return Route("/", page)


def _health_route(studio: Studio) -> Route:
    """Report whether this process can paint, for supervisors: 503 when its engine is lost.

    {"status": "ok", "model": {"name": "bundled", "state": "ready"}, "queue": {"waiting": 0, …}}
    """

    def healthz(_: Request) -> Response:
        load, warmth = studio.engine.load, studio.engine.warmth
        state = "lent" if is_zero_gpu() else warmth.state
        report = {
            "status": "lost" if load.is_lost else "ok",
            "version": seedgrid.__version__,
            "engine": "lost" if load.is_lost else "busy" if load.num_waiting else "idle",
            "model": {"name": studio.card().ref.id, "state": state},
            "queue": {"waiting": load.num_waiting, "left_s": round(load.left_s, 1)},
            "workers": studio.engine.num_painters,
        }
        return JSONResponse(report, status_code=503 if load.is_lost else 200, headers=UNCACHED)

    return Route("/healthz", healthz)


async def _refuse(_request: Request, error: Exception) -> Response:
    """Answer an error by its code, since its sentence may name a visitor's folder."""
    status_code = 503 if isinstance(error, MemoryError) else 409
    text = f"this cannot be answered now: {as_ours(error).code}"
    return PlainTextResponse(text, status_code=status_code)


async def _refuse_form(_request: Request, error: Exception) -> Response:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    where = ".".join(str(part)[:40] for part in first.get("loc", ()))
    text = f"the request cannot be read: {where}: {first.get('msg', '')}"
    return PlainTextResponse(text.encode("ascii", "replace").decode(), status_code=422)
