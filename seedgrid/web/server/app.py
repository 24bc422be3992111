"""What the web server adds to Gradio: pictures by their id, our scripts and styles, and a guard.

Pictures are served as they are on disk, byte for byte; an id is 128 random bits, so only who was
shown a picture can ask for it. Knows nothing of components.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from seedgrid.core.errors import SeedGridError, told_of
from seedgrid.core.fields import IN_LINKS, ON_PAGE
from seedgrid.storage import starts
from seedgrid.storage.assets import assets_folder
from seedgrid.studio import Studio
from seedgrid.web.serializers import pictures
from seedgrid.web.server.downloads import download_routes
from seedgrid.web.server.file_work import FileWork
from seedgrid.web.server.first import first_routes, script_address, style_address
from seedgrid.web.server.guard import Guard, NoAddresses
from seedgrid.web.server.headers import FOREVER, HARMLESS, SPACE_FRAMES, SecurityHeaders
from seedgrid.web.server.health import health_route
from seedgrid.web.server.later import ADDRESS, asset_address, later_route, later_version
from seedgrid.web.server.limits import BoundedBody
from seedgrid.web.server.looking import looking_routes, no_picture
from seedgrid.web.server.mcp_tools import mcp_routes
from seedgrid.web.server.metrics import metrics_routes
from seedgrid.web.server.models import model_routes
from seedgrid.web.server.open_requests import OpenRequests
from seedgrid.web.server.openapi import api_routes
from seedgrid.web.server.packed import Packed
from seedgrid.web.server.page_head import PageHead
from seedgrid.web.server.stream import Follow, follow_route
from seedgrid.web.server.unreadable import Unreadable
from seedgrid.web.server.uploads import UploadBounds, UploadGate
from seedgrid.web.state.opening import opening_files
from seedgrid.web.state.visitor_libraries import Libraries
from seedgrid.web.texts import page_languages

ASSETS: Final = assets_folder()
_THUMB_PX: Final = 192
_OPENING_PX: Final = 256
_THUMB_QUALITY: Final = 80
_IN_ONE_PIECE: Final = 200_000
MAX_FILE_MB: Final = 64
"""What one file may have that is dropped on the page; it says so before anything is sent."""
_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}


def routes(
    studio: Studio, libraries: Libraries, file_work: FileWork, follow: Follow
) -> list[Route]:
    """Return the routes of our own: under `/seedgrid/`, agents' tools, and `/healthz`."""
    thumbs = FileWork()  # Apart from what is heavy: a page asks for sixty of them at once.

    def picture(request: Request) -> Response:
        path = libraries.file_of(request.path_params["id"])
        headers = FOREVER | HARMLESS
        try:
            # In one piece: a FileResponse goes to another thread and back for every 64 KB. But
            # who asks for large ones and does not read them would have us keep them.
            if path is None or path.stat().st_size > _IN_ONE_PIECE:
                return _there(path, "image/png", headers)
            return Response(path.read_bytes(), media_type="image/png", headers=headers)
        except OSError:
            return _there(None, "image/png", headers)

    async def thumb(request: Request) -> Response:
        wanted = request.path_params["id"]
        data = await thumbs.run(
            lambda: _thumb_of(libraries.file_of(wanted) or starts.place_of(wanted))
        )
        if data is None:
            return no_picture()
        return Response(data, media_type="image/jpeg", headers=FOREVER | HARMLESS)

    def opening(request: Request) -> Response:
        names = {str(number): file for number, file in enumerate(opening_files(), 1)}
        file = names.get(request.path_params["number"])
        if file is None:
            return no_picture()
        data = _thumb(file, _OPENING_PX)
        return Response(data, media_type="image/jpeg", headers=HARMLESS)

    def asset(request: Request) -> Response:
        path = ASSETS / request.path_params["name"]
        kind = _TYPES.get(path.suffix)
        if kind is None or not _is_in(path, ASSETS):
            return PlainTextResponse("there is no such file", status_code=404)
        return FileResponse(path, media_type=kind, headers=FOREVER)

    return [
        Route("/seedgrid/follow", follow_route(follow), methods=["POST"]),
        *download_routes(libraries, file_work),
        *looking_routes(studio, libraries, file_work),
        Route("/seedgrid/opening/{number}.jpg", opening),
        Route("/seedgrid/pictures/{id}.png", picture),
        Route("/seedgrid/thumbs/{id}.jpg", thumb),
        later_route(),
        *first_routes(),
        Route("/seedgrid/assets/{name:path}", asset),
        health_route(studio),
        *metrics_routes(studio),
        *model_routes(studio, file_work),
        *api_routes(),
        *mcp_routes(studio, libraries, file_work),
    ]


async def refuse(_request: Request, error: Exception) -> Response:
    """Answer where something hinders; by its code, since its words may name a visitor's folder."""
    code = error.code if isinstance(error, SeedGridError) else "unknown"
    return PlainTextResponse(f"this cannot be answered now: {code}", status_code=409)


async def refuse_for_memory(_request: Request, error: Exception) -> Response:
    """Answer where no memory is left."""
    return PlainTextResponse(str(told_of(error)), status_code=503)


def middleware(
    *,
    language: str | None,
    host: str | None,
    uploads: Path,
    bounds: UploadBounds,
    max_open: int | None = None,
    is_framed: bool = False,
) -> list[Middleware]:
    """Return what stands before Gradio.

    Args:
        language: The page's language, whatever the browser says; None leaves it to the browser.
        host: The name under which the page listens, where that is one.
        uploads: Where Gradio puts uploads.
        bounds: What may be uploaded.
        max_open: How many requests of one address may be open at once.
        is_framed: Whether Hugging Face shows the page in a frame.
    """
    head, frames = page_head(language), SPACE_FRAMES if is_framed else ""
    return [
        Middleware(SecurityHeaders, frames=frames),
        Middleware(Guard, files=uploads, host=host),
        Middleware(OpenRequests, limit=max_open),
        Middleware(BoundedBody),
        Middleware(NoAddresses),
        Middleware(UploadGate, folder=uploads, bounds=bounds),
        Middleware(PageHead, head=head, frames=frames),
        Middleware(Packed),
        Middleware(Unreadable),
    ]


def page_head(language: str | None) -> str:
    """Return what the page's head holds beside Gradio's: styles, words, scripts."""
    config = {
        "language": language,
        "languages": {
            name: about | {"script": script_address(name)}
            for name, about in page_languages().items()
        },
        "fields": [row.id for row in ON_PAGE],
        "max_upload_mb": MAX_FILE_MB,
        "links": [row.name for row in IN_LINKS],
        "later": f"{ADDRESS}?v={later_version()}",
    }
    words = json.dumps(config, ensure_ascii=False).replace("<", "\\u003c")
    return "\n".join(
        [
            '<meta charset="utf-8">',
            '<meta name="color-scheme" content="light dark">',
            f'<link rel="icon" type="image/svg+xml" href="{asset_address("icon.svg")}">',
            f'<link rel="stylesheet" href="{style_address()}">',
            f"<script>window.SeedGridConfig = {words};</script>",
            f"<script>{(ASSETS / 'language.js').read_text('utf-8')}</script>",
        ]
    )


def _is_in(path: Path, folder: Path) -> bool:
    try:
        return path.is_file() and folder in path.resolve().parents
    except OSError:  # A name may be longer than any file's.
        return False


def _there(path: Path | None, kind: str, headers: dict[str, str]) -> Response:
    """Answer with a file from the disk, piece by piece, if it is there."""
    if path is None or not path.is_file():
        return no_picture()
    return FileResponse(path, media_type=kind, headers=headers)


def _thumb_of(path: Path | None) -> bytes | None:
    try:
        return None if path is None else _thumb(path)
    except OSError:
        return None


@lru_cache(maxsize=4096)
def _thumb(path: Path, side_px: int = _THUMB_PX) -> bytes:
    """A thumbnail, made once: a file is named by the digest of its content."""
    return pictures.small_jpeg(path, side_px, quality=_THUMB_QUALITY)
