"""Downloads from a visitor's own library: ZIP files, sheets, bundles and scripts.

All is done by `FileWork`, and an archive of pictures is sent while it is made.
"""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Literal

from fastapi import APIRouter
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.responses import StreamingResponse as Streaming

from seedgrid.core.errors import InputError, LibraryError, RunError, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.export.bundle import packed_pictures, weight_files, write_bundle
from seedgrid.export.script import script
from seedgrid.export.sheets import write_sheet
from seedgrid.storage.files import size_of
from seedgrid.studio import check_starts
from seedgrid.web.server.guard import HARMLESS
from seedgrid.web.server.routes import Answers
from seedgrid.web.server.waiting import FileWork, FileWorkBounds, Holding
from seedgrid.web.server.who import Asks, Who
from seedgrid.web.state.visitor_libraries import Libraries, family
from seedgrid.web.texts import choose_language

MAX_NAMED: Final = 200
MAX_PICTURES: Final = 1000
_ALL_OF: Final = "*"
Scope = Literal["round", "work"]


def export_routes(answers: Answers) -> APIRouter:
    """Return the routes below `/seedgrid` of downloads and exports."""
    router = APIRouter(prefix="/seedgrid")
    libraries, file_work = answers.libraries, answers.file_work

    def find(who: Who, picture_id: str, scope: str) -> Callable[[], Sequence[Entry]]:
        return lambda: family(libraries.of(who.visitor), picture_id, scope=scope)

    @router.get("/download/selected.zip")
    async def selected(who: Asks, ids: str = "") -> Response:
        """Pictures by their ids, joined by commas; `ID*` is the whole work of that picture."""
        named = ids.split(",")[:MAX_NAMED]
        make = partial(_archive, file_work, "selected")
        return await _answered(file_work, who, lambda: _selected(libraries, who, named), make)

    @router.get("/download/{picture_id}/{scope}.zip")
    async def download(picture_id: str, scope: Scope, who: Asks) -> Response:
        make = partial(_archive, file_work, scope)
        return await _answered(file_work, who, find(who, picture_id, scope), make)

    @router.get("/export/{picture_id}/{scope}.{kind}")
    async def export(
        picture_id: str,
        scope: Literal["round", "work", "picture"],
        kind: Literal["png", "zip", "py"],
        who: Asks,
        lang: str = "",
        starts: bool = False,
    ) -> Response:
        """A sheet, a bundle or a script; `starts` includes the pictures that others start from."""

        def make(entries: Sequence[Entry], kept: ExitStack) -> Response:
            if kind == "zip":
                weights = weight_files(entries).values()
                _check_size([*(entry.path for entry in entries), *weights], file_work.bounds)
            if starts:
                check_starts([entry.recipe for entry in entries], libraries.of(who.visitor))
            write: dict[str, Callable[[Path], object]] = {
                "zip": lambda path: write_bundle(entries, path, has_starts=starts),
                "py": lambda path: path.write_text(script(entries, has_starts=starts), "utf-8"),
            }
            draw = partial(write_sheet, entries, language=choose_language(lang))
            return _written(f"seedgrid-{entries[0].id[:8]}.{kind}", write.get(kind, draw), kept)

        return await _answered(file_work, who, find(who, picture_id, scope), make)

    return router


def no_picture() -> Response:
    """Answer 404."""
    return PlainTextResponse("there is no such picture", status_code=404)


async def _answered(
    file_work: FileWork,
    who: Who,
    find: Callable[[], Sequence[Entry]],
    make: Callable[[Sequence[Entry], ExitStack], Response],
) -> Response:
    """Find pictures and answer with them, as file work, which ends when the answer is sent."""
    with ExitStack() as kept:
        try:
            kept.enter_context(file_work.place(who.address))
            found = await file_work.run(lambda: _bounded(find(), file_work.bounds), who.address)
            if not found:
                return PlainTextResponse("there is nothing to download", status_code=404)
            answer = await file_work.run(lambda: make(found, kept), who.address)
        except LibraryError:  # The server answers its code: its sentence may name a folder.
            raise
        except SeedGridError as error:
            codes = {"download_many": 413, "download_large": 413}
            status = 429 if isinstance(error, RunError) else codes.get(error.code, 409)
            return PlainTextResponse(str(error), status_code=status)
        return Holding(answer, kept.pop_all())


def _selected(libraries: Libraries, who: Who, named: Sequence[str]) -> Sequence[Entry]:
    library = libraries.of(who.visitor)
    found: dict[str, Entry] = {}
    works_read: set[str] = set()
    for name in dict.fromkeys(named):
        picture_id, is_work = name.rstrip(_ALL_OF), name.endswith(_ALL_OF)
        known = found.get(picture_id)
        if known is not None and (known.lineage.work_id in works_read or not is_work):
            continue  # Many names of one large work must not read it again and again.
        entries = family(library, picture_id, scope="work" if is_work else "picture")
        found |= {entry.id: entry for entry in entries}
        if is_work:
            works_read |= {entry.lineage.work_id for entry in entries}
        if len(found) > MAX_PICTURES:
            break
    return tuple(found.values())


def _bounded(entries: Sequence[Entry], bounds: FileWorkBounds) -> Sequence[Entry]:
    if len(entries) > MAX_PICTURES:
        value, limit = f"{len(entries):,}", f"{MAX_PICTURES:,}"
        raise InputError("download_many", field="picture", value=value, limit=limit)
    _check_size([entry.path for entry in entries], bounds)
    return entries


def _check_size(files: Sequence[Path], bounds: FileWorkBounds) -> None:
    most = bounds.download_bytes
    if most is not None and (size := sum(map(size_of, files))) > most:
        value, limit = f"{size / 1e6:,.0f}", f"{most / 1e6:,.0f}"
        raise InputError("download_large", field="picture", value=value, limit=limit)


def _archive(
    file_work: FileWork, name: str, entries: Sequence[Entry], _kept: ExitStack
) -> Response:
    """Answer with the pictures' files; the first piece is made before the answer begins."""
    pieces = packed_pictures(entries)
    first = next(pieces)
    filename = f"seedgrid-{name}-{entries[0].id[:8]}.zip"
    headers = HARMLESS | {"Content-Disposition": f'attachment; filename="{filename}"'}
    body = _one_by_one(first, pieces, file_work)
    return Streaming(body, media_type="application/zip", headers=headers)


async def _one_by_one(
    first: bytes, pieces: Iterator[bytes], file_work: FileWork
) -> AsyncIterator[bytes]:
    piece: bytes | None = first
    while piece is not None:
        yield piece
        piece = await file_work.run(lambda: next(pieces, None))


def _written(name: str, write: Callable[[Path], object], kept: ExitStack) -> Response:
    """Write a file into a temporary folder, which is deleted when the answer was sent."""
    folder = tempfile.TemporaryDirectory(prefix="seedgrid-out-", ignore_cleanup_errors=True)
    path = Path(kept.enter_context(folder)) / name
    write(path)
    return FileResponse(path, filename=name, headers=HARMLESS)
