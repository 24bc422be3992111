"""UploadGate: bounds what is uploaded, by request, by address and together, and tidies up.

Gradio writes an upload to the disk before anybody looks at it, and forgets what was broken off.
What is taken in is deleted at once; what nobody took in goes after an hour, or sooner where room is
needed. Knows no component.
"""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from seedgrid.web.server.limits import body_length, is_upload
from seedgrid.web.server.waiting import network_of

HOUR_S: Final = 3600.0
PRESSED_S: Final = 300.0
"""The page takes an upload in at once: where room is needed, older ones were left lying."""
LEAST_BYTES: Final = 8192
"""What a file takes on the disk, however little is in it: a block, and one for its folder."""
_FILES: Final = ContextVar[list[None]]("_FILES")
"""One for each file of the upload that is being read."""


def file_arrives() -> None:
    """Count a file of the upload that this is called for."""
    _FILES.get([]).append(None)


@dataclass(frozen=True, kw_only=True)
class UploadBounds:
    """In bytes; None bounds nothing.

    Attributes:
        request: One upload, with all its files.
        together: All that lies on the disk.
        address: What one address may upload in an hour.
    """

    request: float | None = None
    together: float | None = None
    address: float | None = None


class UploadGate:
    """Stands before Gradio.

    Args:
        app: What comes after it.
        folder: Where Gradio puts uploads; nothing else is in it.
        bounds: What is let in.
        clock: Seconds; tests have their own.
    """

    def __init__(
        self,
        app: ASGIApp,
        folder: Path,
        bounds: UploadBounds,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._folder = folder
        self._bounds = bounds
        self._clock = clock
        self._recent: deque[tuple[float, str, int]] = deque()  # when, where from, bytes
        self._arriving = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse an upload: 411, 413, 429 or 507, and when to try again."""
        if scope["type"] != "http" or not is_upload(scope):
            await self._app(scope, receive, send)
            return
        length = body_length(Headers(scope=scope))
        # No more than that can come: the server below stops reading there.
        address = network_of((scope.get("client") or ("",))[0])
        refusal = await self._refusal(length, address)
        if refusal is not None or length is None:
            await (refusal or _refuse(411, "say how long the upload is"))(scope, receive, send)
            return
        self._arriving += length
        files: list[None] = []
        _FILES.set(files)
        try:
            await self._app(scope, receive, send)
        finally:
            self._arriving -= length
            self._recent.append((self._clock(), address, LEAST_BYTES * max(1, len(files))))

    async def _refusal(self, length: int | None, address: str) -> PlainTextResponse | None:
        if length is None:
            return _refuse(411, "say how long the upload is")
        bounds = self._bounds
        if bounds.request is not None and length > bounds.request:
            return _refuse(413, f"an upload may have {bounds.request / 1e6:,.0f} MB")
        now_s = self._clock()
        while self._recent and self._recent[0][0] < now_s - HOUR_S:
            self._recent.popleft()
        own = [each for each in self._recent if each[1] == address]
        if bounds.address is not None and sum(size for *_, size in own) + length > bounds.address:
            wait_s = own[0][0] + HOUR_S - now_s if own else HOUR_S
            said = f"{bounds.address / 1e6:,.0f} MB an hour may be uploaded from one place"
            return _refuse(429, said, wait_s=wait_s)
        if bounds.together is not None:
            room = bounds.together - self._arriving - length
            if await to_thread.run_sync(self._lying, now_s, room) > room:
                return _refuse(507, "there is no room for uploads at the moment", wait_s=60.0)
        self._recent.append((now_s, address, length))
        return None

    def _lying(self, now_s: float, room: float) -> int:
        """Return how many bytes lie there, after tidying up as far as so much room asks for it."""
        lying = sweep(self._folder, now_s)
        return lying if lying <= room else sweep(self._folder, now_s, PRESSED_S)


class Copies:
    """The newest of what Gradio serves copies of: so many bytes, beside which uploads have room.

    Args:
        max_bytes: None is any number.
    """

    def __init__(self, max_bytes: float | None) -> None:
        self._max_bytes = max_bytes
        self._sizes: dict[Path, int] = {}  # the newest at the end
        self._guard = threading.Lock()

    def add(self, copy: Path) -> None:
        """Know a copy, and delete the oldest of those that are too many together."""
        if self._max_bytes is None:
            return
        with self._guard:
            self._sizes.pop(copy, None)
            self._sizes[copy] = max(copy.stat().st_size, LEAST_BYTES)
            while sum(self._sizes.values()) > self._max_bytes and len(self._sizes) > 1:
                oldest = next(iter(self._sizes))
                del self._sizes[oldest]
                taken_in(oldest)


def sweep(folder: Path, now_s: float, age_s: float = HOUR_S) -> int:
    """Delete what nobody took in for so long; return how many bytes still lie there."""
    total = 0
    for root, folders, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(root) / name
            with contextlib.suppress(OSError):
                status = path.stat()
                if status.st_mtime < now_s - age_s:
                    path.unlink()
                else:
                    total += max(status.st_size, LEAST_BYTES)
        for name in folders:
            with contextlib.suppress(OSError):
                _remove_old_folder(Path(root) / name, now_s - age_s)
    return total


def taken_in(path: Path) -> None:
    """Delete an upload that was read; never more than its file, and its folder when it is empty."""
    with contextlib.suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def _remove_old_folder(folder: Path, since_s: float) -> None:
    if folder.stat().st_mtime < since_s:
        folder.rmdir()


def _refuse(status: int, said: str, *, wait_s: float | None = None) -> PlainTextResponse:
    headers = {}
    if wait_s is not None:
        headers["Retry-After"] = str(max(1, round(wait_s)))
        said += f": try again in {max(1, round(wait_s / 60))} minutes"
    return PlainTextResponse(said, status_code=status, headers=headers)
