"""Downloads: the pictures of a grid, of a tree, or those that were selected, in one ZIP file.

An id is 128 random bits: only who was shown a picture can ask for it, as for the picture itself.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from seedgrid.core.entry import Entry
from seedgrid.core.errors import SeedGridError
from seedgrid.export.pictures import write_pictures
from seedgrid.web.state.visitor_libraries import Libraries

MAX_NAMED: Final = 200
MAX_PICTURES: Final = 1000
SCOPES: Final = ("round", "work")


def download_routes(libraries: Libraries) -> list[Route]:
    """Return the addresses: `download/ID/round.zip`, `…/work.zip`, `download/selected.zip?ids=…`.

    Args:
        libraries: Where the pictures are.
    """

    def family(request: Request) -> Response:
        scope = request.path_params["scope"]
        if scope not in SCOPES:
            return _nothing()
        return _packed(libraries.family(request.path_params["id"], scope=scope), scope)

    def selected(request: Request) -> Response:
        """Pictures by their ids, joined by commas; `ID*` is the whole work of that picture."""
        named = request.query_params.get("ids", "").split(",")
        found: dict[str, Entry] = {}
        for name in named[:MAX_NAMED]:
            scope = "work" if name.endswith("*") else "picture"
            family = libraries.family(name.rstrip("*"), scope=scope)
            found |= {entry.id: entry for entry in family}
        return _packed(tuple(found.values()), "selected")

    return [
        Route("/seedgrid/download/selected.zip", selected),
        Route("/seedgrid/download/{id}/{scope}.zip", family),
    ]


def _packed(entries: tuple[Entry, ...], name: str) -> Response:
    """Write the archive into a folder of its own, which goes when the answer has gone."""
    if not entries or len(entries) > MAX_PICTURES:
        return _nothing()
    folder = Path(tempfile.mkdtemp(prefix="seedgrid-download-"))
    path = folder / "pictures.zip"
    try:
        write_pictures(entries, path)
    except SeedGridError as error:
        shutil.rmtree(folder, ignore_errors=True)
        return PlainTextResponse(str(error), status_code=409)
    except BaseException:  # The folder goes, and the error goes on.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    gone = BackgroundTask(shutil.rmtree, folder, ignore_errors=True)
    filename = f"seedgrid-{name}-{entries[0].id[:8]}.zip"
    return FileResponse(path, filename=filename, media_type="application/zip", background=gone)


def _nothing() -> Response:
    return PlainTextResponse("there is nothing to download", status_code=404)
