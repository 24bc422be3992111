"""Downloads: pictures in one ZIP file, and sheets, bundles and scripts of a round or a work.

An id is 128 random bits: only who was shown a picture can ask for it, as for the picture itself.
All of it is file work of `file_work.py`, and an archive of pictures goes out as it is made.
"""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from seedgrid.core.errors import InputError, LibraryError, RunError, SeedGridError
from seedgrid.core.picture import Entry
from seedgrid.export.bundle import packed_pictures, weight_files, write_bundle
from seedgrid.export.script import script
from seedgrid.export.sheets import write_sheet
from seedgrid.storage.files import size_of
from seedgrid.web.server.file_work import FileWork, FileWorkBounds, Holding
from seedgrid.web.server.headers import HARMLESS
from seedgrid.web.server.waiting import network_of
from seedgrid.web.state.visitor_libraries import Libraries
from seedgrid.web.texts import choose_language

MAX_NAMED: Final = 200
MAX_PICTURES: Final = 1000
SCOPES: Final = ("round", "work")
EXPORTS: Final = ("png", "zip", "py")

_ALL_OF: Final = "*"


def download_routes(libraries: Libraries, file_work: FileWork) -> list[Route]:
    """Return the addresses: `download/ID/round.zip`, `…/work.zip`, `download/selected.zip?ids=…`.

    And `export/ID/SCOPE.KIND`, of a picture, its round or its work.
    """

    async def family(request: Request) -> Response:
        wanted, scope = request.path_params["id"], request.path_params["scope"]
        find = partial(libraries.family, wanted, scope=scope)
        return await _downloaded(request, find, scope) if scope in SCOPES else _nothing()

    async def selected(request: Request) -> Response:
        """Pictures by their ids, joined by commas; `ID*` is the whole work of that picture."""
        named = request.query_params.get("ids", "").split(",")[:MAX_NAMED]
        return await _downloaded(request, lambda: _selected(libraries, named), "selected")

    async def export(request: Request) -> Response:
        wanted, scope = request.path_params["id"], request.path_params["scope"]
        kind = request.path_params["kind"]
        find = partial(libraries.family, wanted, scope=scope)
        if kind not in EXPORTS:
            return _nothing()
        make = partial(_exported, kind=kind, language=language_of(request))
        return await answered(file_work, request, find, make)

    async def _downloaded(
        request: Request, find: Callable[[], Sequence[Entry]], name: str
    ) -> Response:
        return await answered(file_work, request, find, partial(_archive, name=name))

    return [
        Route("/seedgrid/download/selected.zip", selected),
        Route("/seedgrid/download/{id}/{scope}.zip", family),
        Route("/seedgrid/export/{id}/{scope}.{kind}", export),
    ]


async def answered(
    file_work: FileWork,
    request: Request,
    find: Callable[[], Sequence[Entry]],
    make: Callable[[Sequence[Entry], FileWork, ExitStack], Response],
) -> Response:
    """Find pictures and make an answer of them, as file work, which ends when it is sent."""
    address = network_of(request.client.host if request.client else None)
    with ExitStack() as kept:
        try:
            kept.enter_context(file_work.place(address))
            bounds = file_work.bounds
            entries = await file_work.run(lambda: _bounded(find(), bounds), address)
            if not entries:
                return _nothing()
            answer = await file_work.run(lambda: make(entries, file_work, kept), address)
        except LibraryError:  # Its words may name a visitor's folder: `app.refuse` says its code.
            raise
        except SeedGridError as error:
            return PlainTextResponse(str(error), status_code=_status(error))
        return Holding(answer, kept.pop_all())


def language_of(request: Request) -> str:
    """Return the language in which a page asks; the page alone names one."""
    return choose_language(request.query_params.get("lang"))


def _selected(libraries: Libraries, named: Sequence[str]) -> Sequence[Entry]:
    found: dict[str, Entry] = {}
    whole: set[str] = set()
    for name in dict.fromkeys(named):
        known = found.get(name.rstrip(_ALL_OF))
        if known is not None and (known.lineage.work_id in whole or not name.endswith(_ALL_OF)):
            continue
        scope = "work" if name.endswith(_ALL_OF) else "picture"
        family = libraries.family(name.rstrip(_ALL_OF), scope=scope)
        found |= {entry.id: entry for entry in family}
        if scope == "work":
            whole |= {entry.lineage.work_id for entry in family}
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
    if bounds.download_bytes is None:
        return
    size = sum(size_of(file) for file in files)
    if size > bounds.download_bytes:
        value, limit = f"{size / 1e6:,.0f}", f"{bounds.download_bytes / 1e6:,.0f}"
        raise InputError("download_large", field="picture", value=value, limit=limit)


def _archive(
    entries: Sequence[Entry], file_work: FileWork, _kept: ExitStack, *, name: str
) -> Response:
    """Answer with the pictures' files; the first piece is made before anything is said."""
    pieces = packed_pictures(entries)
    first = next(pieces)
    filename = f"seedgrid-{name}-{entries[0].id[:8]}.zip"
    headers = HARMLESS | {"Content-Disposition": f'attachment; filename="{filename}"'}
    body = _one_by_one(first, pieces, file_work)
    return StreamingResponse(body, media_type="application/zip", headers=headers)


async def _one_by_one(
    first: bytes, pieces: Iterator[bytes], file_work: FileWork
) -> AsyncIterator[bytes]:
    piece: bytes | None = first
    while piece is not None:
        yield piece
        piece = await file_work.run(lambda: next(pieces, None))


def _exported(
    entries: Sequence[Entry], file_work: FileWork, kept: ExitStack, *, kind: str, language: str
) -> Response:
    if kind == "zip":
        weights = weight_files(entries).values()
        _check_size([*(entry.path for entry in entries), *weights], file_work.bounds)

    def write(path: Path) -> None:
        if kind == "zip":
            write_bundle(entries, path)
        elif kind == "py":
            path.write_text(script(entries), encoding="utf-8")
        else:
            write_sheet(entries, path, language)

    return written(f"seedgrid-{entries[0].id[:8]}.{kind}", write, kept)


def written(name: str, write: Callable[[Path], None], kept: ExitStack) -> Response:
    """Write a file into a folder of its own, which goes when the answer has gone."""
    folder = tempfile.TemporaryDirectory(prefix="seedgrid-out-", ignore_cleanup_errors=True)
    path = Path(kept.enter_context(folder)) / name
    write(path)
    return FileResponse(path, filename=name, headers=HARMLESS)


def _status(error: SeedGridError) -> int:
    if isinstance(error, RunError):
        return 429
    return 413 if error.code in ("download_many", "download_large") else 409


def _nothing() -> Response:
    return PlainTextResponse("there is nothing to download", status_code=404)
