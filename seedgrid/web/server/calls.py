"""Request bodies: limited in size before they are read, and checked before Gradio reads them.

Programs may pass only files that they uploaded to this server, no addresses to fetch files from.
A proxy in front sets the minimum speed of a body (docs/operations.md).
"""

import contextlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.text import one_line

MAX_BODY_BYTES: Final = 300_000  # Without files: a long prompt, or 2,000 pictures' ids
MODEL_FILES: Final = "/seedgrid/models/file/"  # Any size: the route checks sender and disk
_UPLOADS: Final = ("/gradio_api/upload", "/seedgrid/drop")
_LEAST_BYTES: Final = 65_536  # What a file counts at least: looking at each takes time, too
KEPT_S: Final = 3600.0  # How long uploads, and copies for programs, are kept
_TIDY_S: Final = 60.0  # Between two calls of a task of `every_minute`

CALLS: Final = re.compile(  # Routes of the Gradio API: values as a list, or by names
    r"/gradio_api/(?:queue/join|call/(?P<list>[^/]+)|call/v2/(?P<names>[^/]+))/?"
)
MCP: Final = re.compile(r"/gradio_api/mcp(/.*)?")
_ADDRESS: Final = re.compile(r"\s*([a-z][a-z0-9+.-]+:|//|\\\\)", re.IGNORECASE)
"""What Gradio could fetch: an address with a scheme of two letters or more, or a network path."""
_MAX_DEPTH: Final = 32
_ADVICE: Final = "/gradio_api/info says what each endpoint takes"
_NO_ADDRESS: Final = (
    "a file is one that was uploaded to /gradio_api/upload within the hour;"
    " none is fetched from an address"
)

logger = logging.getLogger(__name__)


class BoundedBody:
    """Limits the size of a request's body before it is read; `folder` has uploads and copies.

    `upload_bytes` limits one upload, `total_bytes` the folder with that upload; None is no limit.
    """

    def __init__(
        self, app: ASGIApp, folder: Path, upload_bytes: float | None, total_bytes: float | None
    ) -> None:
        self._app = app
        self._folder = folder
        self._upload_bytes = upload_bytes
        self._total_bytes = total_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it: 411 without a length, 413 or 507 for too many bytes."""
        has_body = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
        refusal = await self._refusal(scope) if has_body else None
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        path, length = route_path(scope), body_length(Headers(scope=scope))
        if length is None:
            return PlainTextResponse("say how long the request is", status_code=411)
        if path.startswith(MODEL_FILES):
            return None
        is_upload, room = path.rstrip("/") in _UPLOADS, self._total_bytes
        limit = self._upload_bytes if is_upload else MAX_BODY_BYTES
        if limit is not None and length > limit:
            text = f"the request is too large: more than {limit:,.0f} bytes"
            return PlainTextResponse(text, status_code=413)
        if path.rstrip("/") != _UPLOADS[0] or room is None:  # Drops are kept nowhere.
            return None
        if await to_thread.run_sync(delete_old_files, self._folder) + length > room:
            text = "there is no room for uploads at the moment: try again within the hour"
            return PlainTextResponse(text, status_code=507, headers={"Retry-After": "3600"})
        return None


def route_path(scope: Scope) -> str:
    """Return the decoded path without a proxy's prefix, as the router sees it."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a host is; None for a name."""
    with contextlib.suppress(ValueError):
        return ip_address(host)
    return None


def body_length(headers: Headers) -> int | None:
    """Return the length of a request's body by its headers; None where they do not say."""
    length = headers.get("content-length", "" if "transfer-encoding" in headers else "0")
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    return int(length) if is_number and "transfer-encoding" not in headers else None


def delete_old_files(folder: Path, older_than_s: float | None = None) -> int:
    """Return the size of a folder in bytes, after deleting files older than `older_than_s`."""
    total, now_s = 0, time.time()
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(root) / name
            with contextlib.suppress(OSError):
                status = path.stat()
                if older_than_s is not None and status.st_mtime < now_s - older_than_s:
                    path.unlink()
                else:
                    total += max(status.st_size, _LEAST_BYTES)
        if Path(root) != folder:
            with contextlib.suppress(OSError):  # The folder is not empty.
                Path(root).rmdir()
    return total


def every_minute(task: Callable[[], object]) -> None:
    """Start a thread that calls a function once a minute."""

    def repeat() -> None:
        while True:
            time.sleep(_TIDY_S)
            task()

    threading.Thread(target=repeat, name="seedgrid-tidy", daemon=True).start()


class CheckedApiCalls:
    """Checks programs' calls: uploads lie in `files`; `parameters` are names by endpoint."""

    def __init__(self, app: ASGIApp, files: Path, parameters: Mapping[str, Sequence[str]]) -> None:
        self._app = app
        self._files = files.resolve()
        self._parameters = parameters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a call on, or refuse a wrong one with 404, 400 or 422."""
        path = route_path(scope) if scope["type"] == "http" else ""
        call = CALLS.fullmatch(path)
        is_agent = bool(MCP.fullmatch(path)) and scope["method"] == "POST"
        if not (is_agent or call):
            await self._app(scope, receive, send)
            return
        try:
            data = json.loads(await Request(scope, receive).body(), parse_constant=_refuse_constant)
            refusal = self._refusal(data, call)
        except ClientDisconnect:
            return
        except (ValueError, RecursionError):
            refusal = PlainTextResponse("this is no JSON, or too deep", status_code=400)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        body = json.dumps(data).encode()
        headers = MutableHeaders(raw=[*scope["headers"]])
        headers.update({"content-length": str(len(body)), "content-type": "application/json"})
        scope = {**scope, "headers": headers.raw}
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, replay, send)

    def _refusal(self, data: object, call: re.Match[str] | None) -> PlainTextResponse | None:
        """Return a refusal or None; `call` is None for an agent, whose texts Gradio may fetch."""
        name = call["list"] or call["names"] if call else None
        if name is not None and name not in self._parameters:
            return PlainTextResponse(f"there is no such endpoint; {_ADVICE}", status_code=404)
        has_address = call is None and any(_holds_address(each) for each in _arguments(data))
        if has_address or not all(map(self._is_upload, _drop_urls_and_find_files(data))):
            return PlainTextResponse(_NO_ADDRESS, status_code=400)
        if call is None:
            return None
        if not isinstance(data, dict):
            return PlainTextResponse(f"a call is a JSON object; {_ADVICE}", status_code=422)
        takes = self._parameters.get(name or "", ())
        if call["names"] and not data.keys() <= set(takes):
            names = ", ".join(takes)
            return PlainTextResponse(f"/{name} takes {names} and no others", status_code=422)
        values = data.get("data")
        if call["list"] and not (isinstance(values, list) and len(values) == len(takes)):
            form = f"/{name} takes a list of {len(takes)} values as `data`: {', '.join(takes)}"
            return PlainTextResponse(f"{form}; /call/v2 takes some by name", status_code=422)
        return None

    def _is_upload(self, path: object) -> bool:
        if not isinstance(path, str):
            return path is None
        return lies_in(self._files, path) and Path(path).is_file()


class LogUnexpectedErrors:
    """Logs unexpected errors; Uvicorn would log parts of the request unescaped."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
    """Answer after an unexpected error."""
    if request.url.path.startswith("/gradio_api/"):
        return PlainTextResponse(f"this cannot be answered; {_ADVICE}", status_code=400)
    return PlainTextResponse("this failed here; the log says why", status_code=500)


def lies_in(folder: Path, place: str) -> bool:
    """Tell whether a text is a path inside a folder, and not an address to fetch."""
    try:
        return not _ADDRESS.match(place) and Path(place).resolve().is_relative_to(folder)
    except (OSError, ValueError):  # Too long for a path, or with a NUL.
        return False


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON.


def _drop_urls_and_find_files(data: Any, depth: int = 0) -> list[object]:  # noqa: ANN401 (JSON)
    """Return paths and addresses of files, also in JSON texts; outside texts delete their `url`."""
    if depth > _MAX_DEPTH:
        raise RecursionError
    if isinstance(data, str):
        if not data.lstrip().startswith(("{", "[")):
            return []
        try:
            return _drop_urls_and_find_files(json.loads(data), depth + 1)
        except ValueError:  # A text that is no JSON though it begins with a bracket.
            return []
    if isinstance(data, list):
        return [path for each in data for path in _drop_urls_and_find_files(each, depth + 1)]
    if not isinstance(data, dict):
        return []
    is_file = "path" in data or "meta" in data
    paths = [data.get("path")] if is_file else []
    if is_file:
        data.pop("url", None)
    elif isinstance(data.get("url"), str):
        paths = [data["url"]]
    return paths + _drop_urls_and_find_files(list(data.values()), depth + 1)


def _arguments(data: object) -> list[object]:
    """Return the arguments of the tool calls in agents' (MCP) messages."""
    messages = data if isinstance(data, list) else [data]
    params = [each.get("params") for each in messages if isinstance(each, dict)]
    return [each.get("arguments") for each in params if isinstance(each, dict)]


def _holds_address(data: Any) -> bool:  # noqa: ANN401 (JSON)
    """Tell whether any text in an agent's arguments is an address, except a `data:` one."""
    if isinstance(data, str):
        return bool(_ADDRESS.match(data)) and not data.startswith("data:")
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(map(_holds_address, inner))
