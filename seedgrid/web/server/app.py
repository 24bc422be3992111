"""The page's server: Gradio's endpoints of api.py, FastAPI routes of the page, and their guard.

An address or method that is not listed gets 404, another site's POST, PUT or DELETE 403, an
unknown host name 400. The page runs its own modules from here; no other answer may run a script.
"""

import os
import re
from pathlib import Path
from typing import Any, Final

import gradio as gr
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import seedgrid
from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.core.variables import is_zero_gpu, megabytes, named_hosts
from seedgrid.studio import Studio
from seedgrid.web.api import PARAMETERS, publish
from seedgrid.web.server.calls import (
    CALLS,
    MCP,
    BoundedBody,
    CheckedApiCalls,
    LogUnexpectedErrors,
    ip_of,
    lies_in,
    refuse_call,
    route_path,
)
from seedgrid.web.server.files import export_routes, file_routes
from seedgrid.web.server.models import model_routes
from seedgrid.web.server.page import UNCACHED, choose_language, compressed, document, file_answer
from seedgrid.web.server.routes import PageServices, page_routes, starting_suffixes
from seedgrid.web.state.page_state import set_visitor

SPACE_FRAMES: Final = "https://huggingface.co https://*.hf.space"
_NOTHING: Final = "default-src 'none'; frame-ancestors 'none'"  # For all but the page

_READ: Final = ("GET", "HEAD")
_FILE: Final = "/gradio_api/file="
_ALLOWED: Final = (
    (_READ, re.compile(r"/|/(config|robots\.txt|healthz)")),
    (("GET", "HEAD", "POST", "PUT"), re.compile(r"/seedgrid/.+")),
    (_READ, re.compile(r"/gradio_api/(info|openapi\.json|app_id|startup-events)/?")),
    (_READ, re.compile(r"/gradio_api/(queue/data|heartbeat/[^/]+|call/(v2/)?[a-z]+/[0-9a-f]{32})")),
    (("POST",), CALLS),
    (("POST",), re.compile(r"/gradio_api/(upload|cancel|reset)/?")),
    (("GET", "POST", "DELETE"), MCP),
)


class GuardedServer(gr.Server):  # type: ignore[misc] # gradio has no types
    """A server whose guard runs before Gradio's middleware, which lets other sites read answers."""

    def __init__(self, uploads: Path, host: str | None, **options: Any) -> None:  # noqa: ANN401 (`gr.Server`'s own)
        super().__init__(**options)
        self._uploads = uploads
        self._host = host
        self.frames = SPACE_FRAMES if host is None else ""  # Sites that may frame the page

    def build_middleware_stack(self) -> ASGIApp:
        """Return the application and its middleware, within the guard, the log and the headers."""
        guarded = Guard(super().build_middleware_stack(), self._uploads, self._host)
        return SecurityHeaders(LogUnexpectedErrors(guarded), self.frames)


def make_server(
    services: PageServices, uploads: Path, *, language: str | None = None, host: str | None = None
) -> gr.Server:
    """Return the server; it is not launched.

    `uploads` is the folder of programs' uploads and of copies for them. `language` is the page's;
    None: the browser's. `host` is the name at which the server listens; None on a Space.
    """
    server = GuardedServer(
        uploads,
        host,
        title="SeedGrid",
        version=seedgrid.__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(
                BoundedBody,
                folder=uploads,
                upload_bytes=megabytes("SEEDGRID_MAX_UPLOAD_MB"),
                total_bytes=megabytes("SEEDGRID_MAX_UPLOADS_MB"),
            ),
            Middleware(CheckedApiCalls, files=uploads, parameters=PARAMETERS),
        ],
        exception_handlers={
            SeedGridError: _refuse,
            MemoryError: _refuse,
            RequestValidationError: _refuse_form,
            Exception: refuse_call,
        },
    )
    server.include_router(page_routes(services))
    server.include_router(file_routes(services))
    server.include_router(export_routes(services))
    server.include_router(model_routes(services.studio, services.file_work))
    server.router.routes.extend(
        [
            _page_route(services, language, server.frames),
            Route("/seedgrid/assets/{version}/{name:path}", file_answer),
            _health_route(services.studio),
        ]
    )
    publish(server, services, uploads)
    return server


def _page_route(services: PageServices, language: str | None, frames: str) -> Route:
    headers = UNCACHED | {"Content-Security-Policy": page_policy(frames)}

    def page(request: Request) -> Response:
        asked, accepted = request.query_params.get("__lang"), request.headers.get("accept-language")
        chosen = choose_language(asked, language, accepted)
        body = document(chosen, starting_suffixes(services.studio))
        answer = compressed(request, body, "text/html", headers)
        set_visitor(request, answer)
        return answer

    return Route("/", page)


def _health_route(studio: Studio) -> Route:
    """Report whether this process can paint, for supervisors: 503 when its engine is lost."""

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


class Guard:
    """The middleware around Gradio's: refuses requests that are not allowed.

    `files` is Gradio's folder of uploads and copies, the only one that it may serve files from;
    `host` is the name at which this server listens.
    """

    def __init__(self, app: ASGIApp, files: Path, host: str | None = None) -> None:
        self._app = app
        self._files = files.resolve()
        self._hosts = named_hosts() | {"localhost"} | ({host.lower()} if host else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            await (refusal or self._app)(scope, receive, send)
        # Websockets are not served.

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers, method, path = Headers(scope=scope), str(scope["method"]), route_path(scope)
        name = _host_name(headers.get("host", ""))
        if not self._is_own_host(name):
            sentence = f"this page is not known as {name[:80]!r}: name it in SEEDGRID_HOSTS"
            return PlainTextResponse(sentence, status_code=400)
        if method not in _READ and _is_cross_site(headers):
            return PlainTextResponse("requests from other sites are refused", status_code=403)
        if path.startswith(_FILE):
            is_allowed = method in _READ and lies_in(self._files, path.removeprefix(_FILE))
        else:
            is_allowed = any(method in each and form.fullmatch(path) for each, form in _ALLOWED)
        return (
            None if is_allowed else PlainTextResponse("there is no such address", status_code=404)
        )

    def _is_own_host(self, name: str) -> bool:
        is_space = "SPACE_ID" in os.environ and name.endswith(".hf.space")
        return is_space or name in self._hosts or ip_of(name) is not None


def _host_name(host: str) -> str:
    """Return the name in a Host header, without its port or the brackets of an address."""
    name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
    return name.strip("[]").lower().removesuffix(".")


def _is_cross_site(headers: Headers) -> bool:
    if headers.get("sec-fetch-site") == "cross-site":
        return True
    origin = headers.get("origin")
    own = (headers.get("host"), headers.get("x-forwarded-host"))
    return origin is not None and origin.partition("://")[2] not in own


def page_policy(frames: str = "") -> str:
    """Return the page's Content-Security-Policy; `frames` are other sites that may frame it."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        + f"frame-ancestors 'self' {frames}".strip()
    )


class SecurityHeaders:
    """Adds security headers, and removes Gradio's that let other sites read answers (CORS)."""

    def __init__(self, app: ASGIApp, frames: str = "") -> None:
        self._app = app
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                headers.setdefault("Content-Security-Policy", _NOTHING)
                for name in {n for n in headers if n.startswith("access-control-")}:
                    del headers[name]
                if not self._frames:
                    headers.setdefault("X-Frame-Options", "SAMEORIGIN")
            await send(message)

        await self._app(scope, receive, harden)
