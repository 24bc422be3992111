"""Guard: the allow-list of routes, methods and host names, before the framework.

Other routes and methods get 404, requests from other sites 403, unknown host names 400. The data of
API calls is checked by `calls.py`.
"""

import ipaddress
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from seedgrid.core.variables import named_hosts
from seedgrid.web.server.calls import AGENTS, CALLS, lies_in
from seedgrid.web.server.limits import route_path

_READ: Final = ("GET", "HEAD")
_FILE: Final = "/gradio_api/file="
_ALLOWED: Final = (
    (_READ, re.compile(r"/|/(config|robots\.txt|healthz)")),
    (("GET", "HEAD", "POST", "PUT"), re.compile(r"/seedgrid/.+")),
    (_READ, re.compile(r"/gradio_api/(info|openapi\.json|app_id|startup-events)/?")),
    (_READ, re.compile(r"/gradio_api/(queue/data|heartbeat/[^/]+|call/(v2/)?[a-z]+/[0-9a-f]{32})")),
    (("POST",), CALLS),
    (("POST",), re.compile(r"/gradio_api/(upload|cancel|reset)/?")),
    (("GET", "POST", "DELETE"), AGENTS),
)


class Guard:
    """The outermost middleware.

    Gradio serves files only from `files`; `host` is the host name that the page listens on.
    """

    def __init__(self, app: ASGIApp, files: Path, host: str | None = None) -> None:
        self._app = app
        self._files = files.resolve()
        self._hosts = named_hosts() | ({host.lower()} if host else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an allowed request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            await (refusal or self._app)(scope, receive, send)
        # Websockets are not used.

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers, method, path = Headers(scope=scope), str(scope["method"]), route_path(scope)
        name = host_name(headers.get("host", ""))
        if not self._is_known(name):
            sentence = f"this page is not known as {name[:80]!r}: name it in SEEDGRID_HOSTS"
            return PlainTextResponse(sentence, status_code=400)
        if method not in _READ and _is_foreign(headers):
            return PlainTextResponse("requests from other sites are refused", status_code=403)
        if path.startswith(_FILE):
            is_there = method in _READ and lies_in(self._files, path.removeprefix(_FILE))
        else:
            is_there = any(method in them and form.fullmatch(path) for them, form in _ALLOWED)
        return None if is_there else PlainTextResponse("there is no such address", status_code=404)

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


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port or the brackets of an address."""
    name = host.rpartition(":")[0] if re.search(r":\d*$", host) else host
    return name.strip("[]").lower().removesuffix(".")


def _is_foreign(headers: Headers) -> bool:
    if headers.get("sec-fetch-site") == "cross-site":
        return True
    origin = headers.get("origin")
    here = (headers.get("host"), headers.get("x-forwarded-host"))
    return origin is not None and urlsplit(origin).netloc not in here
