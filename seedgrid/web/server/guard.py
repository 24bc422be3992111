"""What stands before the framework: the list of what is answered at all, and security headers.

A route, method or form that is not listed gets 404, another site's request 403, an unknown host
name 400. The page runs its own modules from this server; all else that is sent may run nothing.
"""

import ipaddress
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seedgrid.core.variables import named_hosts
from seedgrid.web.server.calls import AGENTS, CALLS, lies_in, route_path

FOREVER: Final = {
    "Cache-Control": "private, max-age=31536000, immutable"
}  # For addresses with a digest or a random id
UNCACHED: Final = {"Cache-Control": "no-store"}
HARMLESS: Final = {  # For files: a browser runs nothing that is in one
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}

SPACE_FRAMES: Final = "https://huggingface.co https://*.hf.space"
_NOTHING: Final = "default-src 'none'; frame-ancestors 'none'"

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
    """The outermost middleware: refuses requests that are not allowed.

    The framework keeps uploads and copies in `files`, and serves no other file; `host` is the name
    under which this page listens.
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
        # There are no websockets.

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
        is_space = "SPACE_ID" in os.environ and name.endswith(".hf.space")
        if is_space or name in self._hosts:
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


def page_policy(frames: str = "") -> str:
    """Return the policy of the page; `frames` are other sites that may show it in a frame."""
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data: blob:",
            "font-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            f"frame-ancestors 'self' {frames}".strip(),
        )
    )


def json_answer(parts: Mapping[str, object]) -> Response:
    """Answer with the parts of the page that change."""
    body = json.dumps(parts, ensure_ascii=False).encode()
    return Response(body, media_type="application/json", headers=UNCACHED)


class SecurityHeaders:
    """Adds security headers, and takes away Gradio's that let other sites read answers."""

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
