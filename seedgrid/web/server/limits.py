"""Limits of request bodies, checked before a body is read.

Uploads of programs stay on the disk (`/gradio_api/upload`): their total size is limited too, and a
timer deletes old ones. Slow bodies are the proxy's task (docs/operations.md).
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

MAX_BODY_BYTES: Final = 300_000
"""Limit of requests without files: room for a long prompt, or the ids of 2,000 pictures."""
MODEL_FILES: Final = "/seedgrid/models/file/"
"""The route of model files: it checks the client and the free disk space itself."""
_UPLOADS: Final = ("/gradio_api/upload", "/seedgrid/drop")
LYING_S: Final = 3600.0
"""How long uploads, and copies for API clients, are kept."""
_TIDY_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class UploadBounds:
    """Bytes of one upload request, and of all kept uploads together; None is no limit."""

    request: float | None = None
    together: float | None = None


class BoundedBody:
    """Middleware that limits bodies; uploads are kept in `folder`."""

    def __init__(self, app: ASGIApp, folder: Path, bounds: UploadBounds) -> None:
        self._app = app
        self._folder = folder
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it: 411 without a length, 413 or 507 for too many bytes."""
        has_body = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
        refusal = self._refusal(route_path(scope), Headers(scope=scope)) if has_body else None
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> PlainTextResponse | None:
        length = body_length(headers)
        if length is None:
            return PlainTextResponse("say how long the request is", status_code=411)
        if path.startswith(MODEL_FILES):
            return None
        is_upload = path.rstrip("/") in _UPLOADS
        limit = self._bounds.request if is_upload else MAX_BODY_BYTES
        if limit is not None and length > limit:
            said = f"the request is too large: more than {limit:,.0f} bytes"
            return PlainTextResponse(said, status_code=413)
        together = self._bounds.together
        if is_upload and together is not None and lying(self._folder) + length > together:
            said = "there is no room for uploads at the moment: try again in some minutes"
            return PlainTextResponse(said, status_code=507, headers={"Retry-After": "600"})
        return None


def route_path(scope: Scope) -> str:
    """Return the decoded path without a proxy's prefix, as the router sees it."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def body_length(headers: Headers) -> int | None:
    """Return the content length of a request; None if it is missing or chunked."""
    length = headers.get("content-length", "" if "transfer-encoding" in headers else "0")
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    return int(length) if is_number and "transfer-encoding" not in headers else None


def lying(folder: Path, older_than_s: float | None = None) -> int:
    """Return the bytes of a folder's files, after deleting older ones."""
    total, now_s = 0, time.time()
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(root) / name
            with contextlib.suppress(OSError):
                status = path.stat()
                if older_than_s is not None and status.st_mtime < now_s - older_than_s:
                    path.unlink()
                else:
                    total += max(status.st_size, 4096)
        if Path(root) != folder:
            with contextlib.suppress(OSError):  # It is not empty.
                Path(root).rmdir()
    return total


def every_minute(tidy: Callable[[], object]) -> None:
    """Call `tidy` every minute on a thread."""

    def repeat() -> None:
        while True:
            time.sleep(_TIDY_S)
            tidy()

    threading.Thread(target=repeat, name="seedgrid-tidy", daemon=True).start()
