"""What a browser is told to refuse: foreign scripts, foreign frames, guesses at a file's kind.

The page's policy names the hash of every script that stands in it. Two things Gradio 6 does not
do without: it makes functions from texts (`unsafe-eval`: the templates of gr.HTML and every `js=`)
and writes styles into elements (`unsafe-inline` for styles alone). Everything else the server
sends may run nothing at all, an uploaded file included.
"""

import base64
import hashlib
from collections.abc import Iterator
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOREVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
"""Of what has its content, or 128 random bits, in its address."""
UNCACHED: Final = {"Cache-Control": "no-store"}
HARMLESS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}
"""Of files: whatever is in one, it runs nothing and shows nothing else."""

SPACE_FRAMES: Final = "https://huggingface.co https://*.hf.space"
_NOTHING: Final = "default-src 'none'; frame-ancestors 'none'"


class SecurityHeaders:
    """What an answer says for itself stays."""

    def __init__(self, app: ASGIApp, frames: str = "") -> None:
        self._app = app
        self._frames = frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Referrer-Policy", "same-origin")
                headers.setdefault("Content-Security-Policy", _NOTHING)
                if not self._frames:
                    headers.setdefault("X-Frame-Options", "SAMEORIGIN")
            await send(message)

        await self._app(scope, receive, harden)


def page_policy(page: bytes, *, frames: str) -> str:
    """Return the policy of a page: its own inline scripts by their hashes, no others."""
    hashes = " ".join(sorted({_hash(script) for script in _inline_scripts(page)}))
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' 'unsafe-eval' {hashes}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "media-src 'self' blob:",
            "worker-src 'self' blob:",
            "manifest-src 'self'",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            f"frame-ancestors 'self' {frames}".strip(),
        )
    )


def _inline_scripts(page: bytes) -> Iterator[bytes]:
    """Yield what stands between the tags of each script without an address of its own."""
    for piece in page.split(b"<script")[1:]:
        tag, _, rest = piece.partition(b">")
        if not any(word.startswith(b"src=") for word in tag.split()):
            yield rest.partition(b"</script>")[0]


def _hash(script: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'"
