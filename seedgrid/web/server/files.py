"""Routes of files: pictures and thumbnails by id, dropped files, downloads and exports.

Pictures are served byte for byte, and only from the visitor's own library, as ids are no secret.
Downloads and exports are made by `FileWork`; an archive of pictures is sent while it is made.
"""

import io
import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Form, UploadFile
from PIL import Image
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.responses import StreamingResponse as Streaming

from seedgrid.core.errors import InputError, LibraryError, RunError, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.export.bundle import packed_pictures, weight_files, write_bundle
from seedgrid.export.script import script
from seedgrid.export.sheets import write_sheet
from seedgrid.formats import png
from seedgrid.library import Library
from seedgrid.storage.files import size_of
from seedgrid.storage.unpacking import unpacked
from seedgrid.studio import check_starts
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.stage import opening_files
from seedgrid.web.server.page import FOREVER, UNCACHED, json_answer, sentence
from seedgrid.web.server.routes import PageServices
from seedgrid.web.server.waiting import FileWork, FileWorkBounds, Holding
from seedgrid.web.state.page_state import Asks, PageUpdate, Who, next_epoch, read_state

MAX_NAMED: Final = 200  # Maximum number of ids in the address of `selected.zip`
MAX_PICTURES: Final = 1000  # Maximum number in one download or export
_THUMB_PX: Final = 192
_OPENING_PX: Final = 256
_QUALITY: Final = 80  # Of thumbnails
_IN_ONE_PIECE_BYTES: Final = 200_000
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_MAX_NAME: Final = 60  # Letters, of up to 4 bytes; a file system takes 255 bytes
_MAX_STATE: Final = 10_000
Scope = Literal["round", "work"]


def file_routes(services: PageServices) -> APIRouter:
    """Return the routes of pictures, thumbnails, the opening pictures, and of dropped files."""
    router = APIRouter(prefix="/seedgrid")
    thumbs = FileWork()  # Without bounds: a page asks for sixty thumbnails at once.
    libraries = services.libraries

    @router.get("/pictures/{picture_id}.png")
    def picture(picture_id: str, who: Asks) -> Response:
        path = libraries.of(who.visitor).file_of(picture_id)
        if path is None:
            return _no_picture()
        try:
            # A small file in one piece, as FileResponse changes threads every 64 KB. A large one
            # would stay in memory while a client does not read it.
            if path.stat().st_size <= _IN_ONE_PIECE_BYTES:
                return Response(path.read_bytes(), media_type="image/png", headers=FOREVER)
        except OSError:
            return _no_picture()
        return FileResponse(path, media_type="image/png", headers=FOREVER)

    @router.get("/live/{recipe_id}.png")
    def live(recipe_id: str, who: Asks) -> Response:
        pixels = services.studio.engine.painted_live(who.visitor, recipe_id)
        if pixels is None:
            return _no_picture()
        return Response(png.pack(pixels), media_type="image/png", headers=UNCACHED)

    @router.get("/thumbs/{picture_id}.jpg")
    async def thumb(picture_id: str, who: Asks) -> Response:
        def find() -> bytes | None:
            library = libraries.of(who.visitor)
            is_start = _DIGEST.fullmatch(picture_id)
            path = library.starts / f"{picture_id}.png" if is_start else library.file_of(picture_id)
            try:
                return _thumbnail(path, _THUMB_PX) if path else None
            except OSError:
                return None

        data = await thumbs.run(find)
        if data is None:
            return _no_picture()
        return Response(data, media_type="image/jpeg", headers=FOREVER)

    @router.get("/opening/{number}.webp")
    def opening(number: int) -> Response:
        if not 1 <= number <= len(opening_files()):
            return _no_picture()
        # WebP: every new visitor loads it, and it has two thirds of a JPEG's bytes.
        data = _thumbnail(opening_files()[number - 1], _OPENING_PX, "WEBP")
        headers = {"Cache-Control": "max-age=3600"}
        return Response(data, media_type="image/webp", headers=headers)

    @router.post("/drop")
    async def drop(
        files: list[UploadFile], state: Annotated[str, Form(max_length=_MAX_STATE)], who: Asks
    ) -> Response:
        """Import dropped files: the request is a form with the page state and the files."""
        sent: object = None
        with suppress(ValueError, RecursionError):  # A state that is no JSON is ignored.
            sent = json.loads(state)
        page = read_state(sent, who)

        def import_files() -> PageUpdate:
            with tempfile.TemporaryDirectory(prefix="seedgrid-drop-") as folder:
                names = [_save_upload(Path(folder), each, i) for i, each in enumerate(files)]
                return services.library.on_drop(names, page, services.file_work.bounds.dropped)

        try:
            update = await services.file_work.do(who.address, import_files)
        except SeedGridError as error:
            update = PageUpdate(status=stage.complain(next_epoch(), error))
        return json_answer(update.parts())

    return router


def _save_upload(folder: Path, file: UploadFile, number: int) -> str:
    """Write an upload into a folder of its own, under the file's name, odd characters replaced."""
    name = re.sub(r"[^\w. -]", "_", file.filename or "file")[-_MAX_NAME:].lstrip(".")
    path = folder / str(number) / (name or "file")
    path.parent.mkdir()
    with path.open("wb") as target:
        shutil.copyfileobj(file.file, target)
    return str(path)


@lru_cache(maxsize=4096)
def _thumbnail(path: Path, side_px: int, kind: str = "JPEG") -> bytes:
    """Return a PNG file as a small `kind` file; cached by path, as library paths are digests."""
    with unpacked(path.read_bytes()) as image:
        thumbnail = image.convert("RGB")
    thumbnail.thumbnail((side_px, side_px), Image.Resampling.LANCZOS)
    target = io.BytesIO()
    thumbnail.save(target, kind, quality=_QUALITY)
    return target.getvalue()


def export_routes(services: PageServices) -> APIRouter:
    """Return the routes below `/seedgrid` of downloads and exports."""
    router = APIRouter(prefix="/seedgrid")
    file_work = services.file_work

    @router.get("/download/selected.zip")
    async def selected(who: Asks, ids: str = "") -> Response:
        """Pictures by their ids, joined by commas; `ID*` is the whole work of that picture."""
        named = ids.split(",")[:MAX_NAMED]
        make = partial(_archive, file_work, "selected")
        return await _answered(services, who, partial(_selected, named), make)

    @router.get("/download/{picture_id}/{scope}.zip")
    async def download(picture_id: str, scope: Scope, who: Asks) -> Response:
        make = partial(_archive, file_work, scope)
        return await _answered(services, who, partial(_family, picture_id, scope), make)

    @router.get("/export/{picture_id}/{scope}.{kind}")
    async def export(
        picture_id: str,
        scope: Literal["round", "work", "picture"],
        kind: Literal["png", "zip", "py"],
        who: Asks,
        starts: bool = False,
    ) -> Response:
        """A sheet, a bundle or a script; `starts` includes the pictures that others start from."""

        def make(entries: Sequence[Entry], cleanup: ExitStack) -> Response:
            if kind == "zip":
                weights = weight_files(entries).values()
                _check_size([*(entry.path for entry in entries), *weights], file_work.bounds)
            if starts:
                check_starts([e.recipe for e in entries], services.libraries.of(who.visitor))
            write: dict[str, Callable[[Path], object]] = {
                "zip": lambda path: write_bundle(entries, path, has_starts=starts),
                "py": lambda path: path.write_text(script(entries, has_starts=starts), "utf-8"),
            }
            draw = partial(write_sheet, entries, language=who.language)
            return _written(f"seedgrid-{entries[0].id[:8]}.{kind}", write.get(kind, draw), cleanup)

        return await _answered(services, who, partial(_family, picture_id, scope), make)

    return router


def _no_picture() -> Response:
    return PlainTextResponse("there is no such picture", status_code=404)


async def _answered(
    services: PageServices,
    who: Who,
    find: Callable[[Library], Sequence[Entry]],
    make: Callable[[Sequence[Entry], ExitStack], Response],
) -> Response:
    """Answer with `make`'s response for the found pictures, which is file work until it is sent."""
    file_work = services.file_work

    def found() -> Sequence[Entry]:
        entries = find(services.libraries.of(who.visitor))
        if len(entries) > MAX_PICTURES:
            value, limit = f"{len(entries):,}", f"{MAX_PICTURES:,}"
            raise InputError("download_many", field="picture", value=value, limit=limit)
        _check_size([entry.path for entry in entries], file_work.bounds)
        return entries

    with ExitStack() as cleanup:
        try:
            cleanup.enter_context(file_work.place(who.address))
            entries = await file_work.run(found, who.address)
            if not entries:
                return PlainTextResponse("there is nothing to download", status_code=404)
            answer = await file_work.run(lambda: make(entries, cleanup), who.address)
        except LibraryError:  # `_refuse` sends its code, as its text may name a folder.
            raise
        except SeedGridError as error:
            codes = {"download_many": 413, "download_large": 413}
            status = 429 if isinstance(error, RunError) else codes.get(error.code, 409)
            return PlainTextResponse(sentence(error, who.language), status_code=status)
        return Holding(answer, cleanup.pop_all())


def _family(picture_id: str, scope: str, library: Library) -> tuple[Entry, ...]:
    """Return a picture, or its round or work without other pictures that are lost or trashed."""
    try:
        entry = library.get(picture_id)
    except InputError:
        return ()
    if scope == "picture":
        return (entry,)
    lineage = entry.lineage
    group = library.round(lineage.round_id) if scope == "round" else library.work(lineage.work_id)
    return tuple(e for e in group if e.id == entry.id or not (e.trashed or e.lost))


def _selected(named: Sequence[str], library: Library) -> Sequence[Entry]:
    selected: dict[str, Entry] = {}
    works_read: set[str] = set()
    for name in dict.fromkeys(named):
        picture_id, is_work = name.rstrip("*"), name.endswith("*")
        entry = selected.get(picture_id)
        if entry is not None and (entry.lineage.work_id in works_read or not is_work):
            continue  # Many names of one large work must not read it again and again.
        entries = _family(picture_id, "work" if is_work else "picture", library)
        selected |= {entry.id: entry for entry in entries}
        if is_work:
            works_read |= {entry.lineage.work_id for entry in entries}
        if len(selected) > MAX_PICTURES:
            break
    return tuple(selected.values())


def _check_size(files: Sequence[Path], bounds: FileWorkBounds) -> None:
    most = bounds.download_bytes
    if most is not None and (size := sum(map(size_of, files))) > most:
        value, limit = f"{size / 1e6:,.0f}", f"{most / 1e6:,.0f}"
        raise InputError("download_large", field="picture", value=value, limit=limit)


def _archive(
    file_work: FileWork, name: str, entries: Sequence[Entry], _cleanup: ExitStack
) -> Response:
    """Answer with the pictures' files; an error in the first piece still refuses the request."""
    pieces = packed_pictures(entries)
    first = next(pieces)

    async def body() -> AsyncIterator[bytes]:
        piece: bytes | None = first
        while piece is not None:
            yield piece
            piece = await file_work.run(lambda: next(pieces, None))

    filename = f"seedgrid-{name}-{entries[0].id[:8]}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return Streaming(body(), media_type="application/zip", headers=headers)


def _written(name: str, write: Callable[[Path], object], cleanup: ExitStack) -> Response:
    """Write a file into a temporary folder, which `cleanup` deletes when the answer is sent."""
    folder = tempfile.TemporaryDirectory(prefix="seedgrid-out-", ignore_cleanup_errors=True)
    path = Path(cleanup.enter_context(folder)) / name
    write(path)
    return FileResponse(path, filename=name)
