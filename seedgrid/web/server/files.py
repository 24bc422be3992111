"""Routes of pictures by their id, thumbnails, and files that are dropped on the page.

Pictures are served byte for byte, from the visitor's own library alone: a published one has its id.
"""

import json
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from anyio import to_thread
from fastapi import APIRouter, Form, UploadFile
from fastapi.responses import FileResponse, Response

from seedgrid.core.errors import SeedGridError
from seedgrid.formats import png
from seedgrid.web.serializers import pictures, stage
from seedgrid.web.server.exports import no_picture
from seedgrid.web.server.guard import FOREVER, HARMLESS, UNCACHED, json_answer
from seedgrid.web.server.routes import Answers
from seedgrid.web.server.waiting import FileWork
from seedgrid.web.server.who import Asks
from seedgrid.web.state.page_state import PageUpdate, next_epoch
from seedgrid.web.state.studio_view import opening_files

_THUMB_PX: Final = 192
_OPENING_PX: Final = 256
_QUALITY: Final = 80
_IN_ONE_PIECE: Final = 200_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_LONGEST: Final = 100
_MAX_STATE: Final = 10_000


def file_routes(answers: Answers) -> APIRouter:
    """Return the routes of pictures, thumbnails, the opening pictures, and of dropped files."""
    router = APIRouter(prefix="/seedgrid")
    thumbs = FileWork()  # Of its own: a page asks for sixty of them at once.
    libraries = answers.libraries

    @router.get("/pictures/{picture_id}.png")
    def picture(picture_id: str, who: Asks) -> Response:
        path = libraries.of(who.visitor).file_of(picture_id)
        if path is None:
            return no_picture()
        headers = FOREVER | HARMLESS
        try:
            # In one piece: a FileResponse changes threads every 64 KB. Large ones would stay in
            # memory while a client does not read them.
            if path.stat().st_size <= _IN_ONE_PIECE:
                return Response(path.read_bytes(), media_type="image/png", headers=headers)
        except OSError:
            return no_picture()
        return FileResponse(path, media_type="image/png", headers=headers)

    @router.get("/live/{recipe_id}.png")
    def live(recipe_id: str, who: Asks) -> Response:
        pixels = answers.studio.engine.painted_live(who.visitor, recipe_id)
        if pixels is None:
            return no_picture()
        data, headers = png.pack(pixels), UNCACHED | HARMLESS
        return Response(data, media_type="image/png", headers=headers)

    @router.get("/thumbs/{picture_id}.jpg")
    async def thumb(picture_id: str, who: Asks) -> Response:
        def find() -> bytes | None:
            library = libraries.of(who.visitor)
            is_start = _DIGEST.fullmatch(picture_id)
            path = library.starts / f"{picture_id}.png" if is_start else library.file_of(picture_id)
            try:
                return _thumb(path) if path else None
            except OSError:
                return None

        data = await thumbs.run(find)
        if data is None:
            return no_picture()
        return Response(data, media_type="image/jpeg", headers=FOREVER | HARMLESS)

    @router.get("/opening/{number}.webp")
    def opening(number: int) -> Response:
        if not 1 <= number <= len(opening_files()):
            return no_picture()
        data = _opening(opening_files()[number - 1])
        headers = {"Cache-Control": "max-age=3600"} | HARMLESS
        return Response(data, media_type="image/webp", headers=headers)

    @router.post("/drop")
    async def drop(
        files: list[UploadFile], state: Annotated[str, Form(max_length=_MAX_STATE)], who: Asks
    ) -> Response:
        """Take dropped files: a form with the page state and the files."""
        kept = {**_read_state(state), "visitor": who.visitor}
        limit = answers.file_work.bounds.dropped
        folder = Path(tempfile.mkdtemp(prefix="seedgrid-drop-"))
        try:
            names = [
                await to_thread.run_sync(_keep, folder, file, n) for n, file in enumerate(files)
            ]
            update = await answers.file_work.do(
                who.address,
                lambda: answers.library.on_drop(names, kept, limit, who.address),
            )
        except SeedGridError as error:
            update = PageUpdate(status=stage.complain(next_epoch(), error))
        finally:
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
        return json_answer(update.parts())

    return router


def _read_state(text: str) -> dict[str, Any]:
    """Read the page state that a browser sends; an empty one where it is no object."""
    try:
        state = json.loads(text)
    except (ValueError, RecursionError):
        state = None
    return state if isinstance(state, dict) else {}


def _keep(folder: Path, file: UploadFile, number: int) -> str:
    """Write an upload into a folder of its own, under its name without odd characters."""
    name = re.sub(r"[^\w. -]", "_", file.filename or "file")[-_LONGEST:].lstrip(".")
    path = folder / str(number) / (name or "file")
    path.parent.mkdir()
    with path.open("wb") as target:
        shutil.copyfileobj(file.file, target)
    return str(path)


@lru_cache(maxsize=4096)
def _thumb(path: Path) -> bytes:
    """A thumbnail, cached: a file is named by the digest of its content."""
    return pictures.small(path, _THUMB_PX, quality=_QUALITY)


@lru_cache
def _opening(path: Path) -> bytes:
    """An opening picture, which every new visitor loads: WebP has two thirds of a JPEG's bytes."""
    return pictures.small(path, _OPENING_PX, quality=_QUALITY, kind="WEBP")
