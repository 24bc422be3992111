"""Checks of API calls, before Gradio sees them.

A call names one of our endpoints and its parameters, and a file in it must have been uploaded here:
no address is fetched for a caller. Errors are answered in one sentence. What Gradio raises anyway
becomes one line of the log.
"""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.text import one_line
from seedgrid.web.server.limits import route_path

CALLS: Final = re.compile(
    r"/gradio_api/(?:queue/join|call/(?P<list>[^/]+)|call/v2/(?P<names>[^/]+))/?"
)
"""Routes with the arguments of an endpoint: as a list, or by name."""
AGENTS: Final = re.compile(r"/gradio_api/mcp(/.*)?")
_ADDRESS: Final = re.compile(r"\s*([a-z][a-z0-9+.-]+:|//|\\\\)", re.IGNORECASE)
"""An address that could be fetched: a scheme of two letters or more, or a network path."""
_MAX_DEPTH: Final = 32
_ADVICE: Final = "/gradio_api/info says what each endpoint takes"

logger = logging.getLogger(__name__)


class ProgramCalls:
    """Middleware behind the limit of bodies; uploads are kept in `files`.

    `parameters` are the parameter names of each endpoint, in order.
    """

    def __init__(self, app: ASGIApp, files: Path, parameters: Mapping[str, Sequence[str]]) -> None:
        self._app = app
        self._files = files.resolve()
        self._parameters = parameters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a valid call on; answer 404, 400 or 422 to others."""
        path = route_path(scope) if scope["type"] == "http" else ""
        call = CALLS.fullmatch(path)
        is_agent = bool(AGENTS.fullmatch(path)) and scope["method"] == "POST"
        if not (is_agent or call):
            await self._app(scope, receive, send)
            return
        try:
            data = json.loads(await Request(scope, receive).body(), parse_constant=_no_number)
            refusal = self._refusal_of_agent(data) if is_agent else self._refusal(data, call)
        except ClientDisconnect:
            return
        except (ValueError, RecursionError):
            refusal = PlainTextResponse("this is no JSON, or too deep", status_code=400)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        body = json.dumps(data).encode()
        scope = {**scope, "headers": [*scope["headers"]]}
        MutableHeaders(scope=scope)["content-length"] = str(len(body))
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    def _refusal(self, data: object, call: re.Match[str] | None) -> PlainTextResponse | None:
        name = call["list"] or call["names"] if call else None
        if name is not None and name not in self._parameters:
            return PlainTextResponse(f"there is no such endpoint; {_ADVICE}", status_code=404)
        if (refusal := self._refusal_of_files(data)) is not None:
            return refusal
        if not isinstance(data, dict):
            return PlainTextResponse(f"a call is a JSON object; {_ADVICE}", status_code=422)
        takes = self._parameters.get(name or "", ())
        if call and call["names"] and not data.keys() <= set(takes):
            known = ", ".join(takes)
            return PlainTextResponse(f"/{name} takes {known} and no others", status_code=422)
        values = data.get("data")
        if call and call["list"] and not (isinstance(values, list) and len(values) == len(takes)):
            form = f"/{name} takes a list of {len(takes)} values as `data`: {', '.join(takes)}"
            return PlainTextResponse(f"{form}; /call/v2 takes some by name", status_code=422)
        return None

    def _refusal_of_agent(self, data: object) -> PlainTextResponse | None:
        """Refuse addresses: Gradio may read any text of an agent as a file."""
        if any(_holds_address(each) for each in _arguments(data)):
            return PlainTextResponse(_NO_ADDRESS, status_code=400)
        return self._refusal_of_files(data)

    def _refusal_of_files(self, data: object) -> PlainTextResponse | None:
        if all(self._is_upload(place) for place in _places_of_files(data)):
            return None
        return PlainTextResponse(_NO_ADDRESS, status_code=400)

    def _is_upload(self, place: object) -> bool:
        if not isinstance(place, str):
            return place is None
        return lies_in(self._files, place) and Path(place).is_file()


_NO_ADDRESS: Final = (
    "a file is one that was uploaded to /gradio_api/upload within the hour; none is fetched from an"
    " address"
)


class Unexpected:
    """Middleware that logs unexpected errors on one line.

    Starlette has answered by then; Uvicorn would log the request's data with its line ends and
    terminal commands.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:
            if scope["type"] != "http":
                raise
            path = one_line(str(scope["path"]))[:200]
            reason = one_line(f"{type(error).__name__}: {error}")[:300]
            is_call = path.startswith("/gradio_api/")
            logger.warning("%s failed: %s", path, reason, exc_info=None if is_call else error)


async def refuse_call(request: Request, _error: Exception) -> Response:
    """Answer an unexpected error."""
    if request.url.path.startswith("/gradio_api/"):
        return PlainTextResponse(f"this cannot be answered; {_ADVICE}", status_code=400)
    return PlainTextResponse("this failed here; the log says why", status_code=500)


def lies_in(folder: Path, place: str) -> bool:
    """Tell whether a text is a path inside a folder, and no address."""
    try:
        return not _ADDRESS.match(place) and Path(place).resolve().is_relative_to(folder)
    except (OSError, ValueError):  # Too long for a path, or with a NUL.
        return False


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON.


def _places_of_files(data: Any, depth: int = 0) -> list[object]:  # noqa: ANN401 (JSON)
    """Return the paths of the files in a call, also those in a text that is JSON itself.

    A `url` beside a file's path is removed.

    Raises:
        RecursionError: It is nested too deep.
    """
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(data, str):
        if not data.lstrip().startswith(("{", "[")):
            return []
        try:
            return _places_of_files(json.loads(data), depth + 1)
        except ValueError:  # A text that begins with a bracket.
            return []
    if isinstance(data, list):
        return [place for each in data for place in _places_of_files(each, depth + 1)]
    if not isinstance(data, dict):
        return []
    is_file = "path" in data or "meta" in data
    found = [data.get("path")] if is_file else []
    if is_file:
        data.pop("url", None)
    elif isinstance(data.get("url"), str):
        found = [data["url"]]
    return found + _places_of_files(list(data.values()), depth + 1)


def _arguments(data: object) -> list[object]:
    """Return the arguments of the tools in agents' messages."""
    messages = data if isinstance(data, list) else [data]
    params = [each.get("params") for each in messages if isinstance(each, dict)]
    return [each.get("arguments") for each in params if isinstance(each, dict)]


def _holds_address(data: Any) -> bool:  # noqa: ANN401 (JSON)
    """Tell whether any text in an agent's arguments is an address."""
    if isinstance(data, str):
        return bool(_ADDRESS.match(data)) and not data.startswith("data:")
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(map(_holds_address, inner))
