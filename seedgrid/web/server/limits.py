"""Body: bounds what a request carries, before anything of it is read.

Where what is uploaded lies on the disk (`/gradio_api/upload`, for programs), it is bounded together
too, and tidied up by a timer. How fast a body must come is the proxy's (docs/operations.md).
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
"""Of everything but a file: a long prompt, or the ids of 2,000 pictures."""
MODEL_FILES: Final = "/seedgrid/models/file/"
"""Where a model's file may come to, of any size: its route looks who asks and what has room."""
_UPLOADS: Final = ("/gradio_api/upload", "/seedgrid/drop")
LYING_S: Final = 3600.0
"""Uploads, and copies for programs, stay for so long."""
_TIDY_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class UploadBounds:
    """In bytes, of one upload with all its files and of all that lie together; None is no bound."""

    request: float | None = None
    together: float | None = None


class BoundedBody:
    """Stands before whatever reads a body; uploads lie in `folder`."""

    def __init__(self, app: ASGIApp, folder: Path, bounds: UploadBounds) -> None:
        self._app = app
        self._folder = folder
        self._bounds = bounds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it: 411 without a length, 413 or 507 for too much."""
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
    """Return the path that the router compares: percent signs read, a proxy's prefix taken off."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if path.startswith(f"{root}/") else path


def body_length(headers: Headers) -> int | None:
    """Return how long a request says that its body is; None where it does not say."""
    length = headers.get("content-length", "" if "transfer-encoding" in headers else "0")
    is_number = length.isascii() and length.isdigit() and len(length) < 20
    return int(length) if is_number and "transfer-encoding" not in headers else None


def lying(folder: Path, older_than_s: float | None = None) -> int:
    """Return how many bytes lie in a folder, after deleting what is older than so long."""
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
            with contextlib.suppress(OSError):  # Others are in it.
                Path(root).rmdir()
    return total


def every_minute(tidy: Callable[[], object]) -> None:
    """Tidy up by a timer from now on, whether anybody comes or not."""

    def repeat() -> None:
        while True:
            time.sleep(_TIDY_S)
            tidy()

    threading.Thread(target=repeat, name="seedgrid-tidy", daemon=True).start()
