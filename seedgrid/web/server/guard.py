"""Guard: the list of what is answered at all, and under which names; all else is not there.

It stands before the framework. A route, a method or a form that is not on the list gets 404,
another site's request 403, an unknown host name 400. No address in a caller's data reaches the
framework, which would fetch it.
"""

import ipaddress
import json
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.variables import named_hosts
from seedgrid.web.server.limits import route_path, whole_body

_READ: Final = ("GET", "HEAD")
_CALLS: Final = re.compile(r"/gradio_api/(queue/join|(call|call/v2)/[^/]+)/?")
"""Where a program's data goes to the framework."""
_AGENTS: Final = re.compile(r"/gradio_api/mcp(/.*)?")
_FILE: Final = "/gradio_api/file="
_ALLOWED: Final = (
    (_READ, re.compile(r"/|/(config|robots\.txt|healthz|metrics)")),
    (("GET", "HEAD", "POST", "PUT"), re.compile(r"/seedgrid/.+")),
    (_READ, re.compile(r"/gradio_api/(info|openapi\.json|app_id|startup-events)/?")),
    (_READ, re.compile(r"/gradio_api/(queue/data|heartbeat/[^/]+|call/[^/]+/.+)")),
    (("POST",), _CALLS),
    (("POST",), re.compile(r"/gradio_api/(upload|cancel|reset)/?")),
    (("GET", "POST", "DELETE"), _AGENTS),
)
_ADDRESS: Final = re.compile(r"\s*([a-z][a-z0-9+.-]+:|//|\\\\)", re.IGNORECASE)
"""What a framework could fetch: a scheme of two letters or more, or a place in a network."""


class Guard:
    """Stands before everything else.

    Args:
        app: What comes after it.
        files: Where the framework keeps uploads and copies: it serves no file from elsewhere.
        host: The name under which this page listens, where that is a name.
    """

    def __init__(self, app: ASGIApp, files: Path, host: str | None = None) -> None:
        self._app = app
        self._files = files.resolve()
        self._hosts = named_hosts() | ({host.lower()} if host else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is on the list."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            await (refusal or self._app)(scope, receive, _without_cors(send))
        # A websocket is nobody's.

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers, method, path = Headers(scope=scope), str(scope["method"]), route_path(scope)
        name = host_name(headers.get("host", ""))
        if not self._is_known(name):
            sentence = f"this page is not known as {name[:80]!r}: name it in SEEDGRID_HOSTS"
            return PlainTextResponse(sentence, status_code=400)
        if method not in _READ and _is_foreign(headers):
            return PlainTextResponse("requests from other sites are refused", status_code=403)
        if path.startswith(_FILE):
            is_there = method in _READ and self._is_ours(path.removeprefix(_FILE))
        else:
            is_there = is_listed(method, path)
        return None if is_there else PlainTextResponse("there is no such address", status_code=404)

    def _is_ours(self, address: str) -> bool:
        try:
            return not _ADDRESS.match(address) and Path(address).resolve().is_relative_to(
                self._files
            )
        except (OSError, ValueError):  # A name may be too long for a file, or hold a NUL.
            return False

    def _is_known(self, name: str) -> bool:
        if name == "localhost" or name in self._hosts:
            return True
        if "SPACE_ID" in os.environ and name.endswith(".hf.space"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class NoAddresses:
    """Stands behind what bounds a body: an address in a call's data is refused, never fetched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; 400 where its data name an address as a file."""
        path = route_path(scope) if scope["type"] == "http" else ""
        is_agent = bool(_AGENTS.fullmatch(path)) and scope["method"] == "POST"
        if not (is_agent or _CALLS.fullmatch(path)):
            await self._app(scope, receive, send)
            return
        message = await whole_body(receive)()
        try:
            data = json.loads(message.get("body", b""), parse_constant=_no_number)
        except (ValueError, RecursionError):
            await PlainTextResponse("this is no JSON", status_code=400)(scope, receive, send)
            return
        if _names_address(data) or (is_agent and _holds_address(_arguments(data))):
            sentence = "a file is uploaded, never fetched from an address"
            await PlainTextResponse(sentence, status_code=400)(scope, receive, send)
            return
        body = json.dumps(data).encode()
        scope = {**scope, "headers": [*scope["headers"]]}
        MutableHeaders(scope=scope)["content-length"] = str(len(body))
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)


def is_listed(method: str, path: str) -> bool:
    """Tell whether a route is answered, files of the framework's own folder apart."""
    return any(method in methods and form.fullmatch(path) for methods, form in _ALLOWED)


def _no_number(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity, which no JSON has


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port or the brackets of an address."""
    name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
    return name.strip("[]").lower().removesuffix(".")


def _names_address(data: Any) -> bool:  # noqa: ANN401 (JSON)
    """Tell whether data name an address as a file's place, also in a text that is JSON itself.

    The `url` beside a file's path is what the page made of it, and is taken away.
    """
    if isinstance(data, str):
        if not data.lstrip().startswith(("{", "[")):
            return False
        try:
            return _names_address(json.loads(data))
        except (ValueError, RecursionError):
            return False
    if isinstance(data, list):
        return any(map(_names_address, data))
    if not isinstance(data, dict):
        return False
    if "path" in data or "meta" in data:
        data.pop("url", None)
    places = (data.get("path"), data.get("url"))
    if any(isinstance(place, str) and _ADDRESS.match(place) for place in places):
        return True
    return any(map(_names_address, data.values()))


def _arguments(data: object) -> list[object]:
    """Return what the tools of agents' messages are told."""
    messages = data if isinstance(data, list) else [data]
    params = [each.get("params") for each in messages if isinstance(each, dict)]
    return [each.get("arguments") for each in params if isinstance(each, dict)]


def _holds_address(data: Any) -> bool:  # noqa: ANN401 (JSON)
    """Tell whether any text is an address: of an agent's, a framework takes each for a file."""
    if isinstance(data, str):
        return bool(_ADDRESS.match(data)) and not data.startswith("data:")
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(map(_holds_address, inner))


def _is_foreign(headers: Headers) -> bool:
    if headers.get("sec-fetch-site") == "cross-site":
        return True
    origin = headers.get("origin")
    here = (headers.get("host"), headers.get("x-forwarded-host"))
    return origin is not None and urlsplit(origin).netloc not in here


def _without_cors(send: Send) -> Send:
    """Let no answer say that another site may read it."""

    async def bare(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = (
                pair for pair in message["headers"] if not pair[0].startswith(b"access-control-")
            )
            message = {**message, "headers": list(kept)}
        await send(message)

    return bare
