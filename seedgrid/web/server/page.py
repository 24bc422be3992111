"""The page: one HTML document for each language from `assets/page.html`, and its files.

Addresses of scripts and styles contain a digest of all of them, so browsers cache them for good.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from typing import Any, Final

import brotli
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from seedgrid.core.field import Field
from seedgrid.core.fields import IN_LINKS, ON_PAGE, field
from seedgrid.core.prompts import GUIDE_PROMPT
from seedgrid.core.variables import is_zero_gpu
from seedgrid.locales import locales
from seedgrid.storage.files import assets_folder
from seedgrid.web.server.guard import FOREVER, UNCACHED
from seedgrid.web.texts import page_texts, words_of

MAX_FILE_MB: Final = 64  # Limit of a dropped file; the page checks it before sending
STYLES: Final = ("page.css", "panel.css", "library.css", "overlay.css")  # The order in `page.css`
_KINDS: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
_PRELOADED: Final = (  # Modules of every page, preloaded with `page.js`
    *("base", "server", "place", "stage", "rail", "card"),
    *("variations", "words", "complete", "form", "live"),
)


class Files:
    """The scripts, styles and fonts of the page, in memory, each compressed once."""

    def __init__(self) -> None:
        folder = assets_folder()
        names = [*folder.glob("*.js"), *folder.glob("*.svg"), *folder.glob("fonts/*.woff2")]
        self._plain = {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}
        self._plain["page.css"] = b"\n".join((folder / name).read_bytes() for name in STYLES)
        self._plain["models.css"] = (folder / "models.css").read_bytes()
        all_bytes = b"".join(self._plain[name] for name in sorted(self._plain))
        self.version = hashlib.sha256(all_bytes).hexdigest()[:12]
        self._packed: dict[str, bytes] = {}

    def answer(self, request: Request) -> Response:
        """Answer with a file, compressed if the browser accepts Brotli."""
        name = request.path_params["name"]
        body = self._plain.get(name)
        if body is None:
            return PlainTextResponse("there is no such file", status_code=404)
        is_newest = request.path_params["version"] == self.version
        headers = dict(FOREVER if is_newest else UNCACHED)
        kind = _KINDS[f".{name.rpartition('.')[2]}"]
        if kind != "font/woff2" and "br" in request.headers.get("accept-encoding", ""):
            body = self._packed.setdefault(name, brotli.compress(body, quality=9))
            headers |= {"Content-Encoding": "br", "Vary": "Accept-Encoding"}
        return Response(body, media_type=kind, headers=headers)


@cache
def files() -> Files:
    """Return the files of the page."""
    return Files()


def document(
    request: Request, language: str, suffixes: tuple[str, ...], headers: Mapping[str, str]
) -> Response:
    """Answer with the page in a language, compressed if the browser accepts Brotli."""
    body, packed = _documents(language, suffixes)
    if "br" in request.headers.get("accept-encoding", ""):
        headers = {**headers, "Content-Encoding": "br", "Vary": "Accept-Encoding"}
        body = packed
    return Response(body, media_type="text/html", headers=dict(headers))


@lru_cache(maxsize=16)
def _documents(language: str, suffixes: tuple[str, ...]) -> tuple[bytes, bytes]:
    body = render(language, suffixes).encode()
    return body, brotli.compress(body, quality=9)


def render(language: str, suffixes: Sequence[str]) -> str:
    """Return the page's HTML in a language; `suffixes` are the default variations."""
    folder = f"seedgrid/assets/{files().version}"
    locale = locales()[language]
    config = {
        "language": language,
        "joiner": locale.clause_joiner,
        "lowers": locale.lowers_clauses,
        "texts": page_texts(language),
        "fields": [row.id for row in ON_PAGE],
        "lists": [row.name for row in ON_PAGE if row.widget == "choice"],
        "max_upload_mb": MAX_FILE_MB,
        "links": [row.name for row in IN_LINKS],
        "assets": folder,
        "zero_gpu": is_zero_gpu(),
    }
    html: str = _template().render(
        tag=locale.tag,
        t=words_of(language),
        config=json.dumps(config, ensure_ascii=False).replace("<", "\\u003c"),
        folder=folder,
        modules=_PRELOADED,
        prompt=GUIDE_PROMPT,
        seeds=str(field("seeds").default),
        suffixes=suffixes,
        settings=_groups(expert=False),
        experts=_groups(expert=True),
    )
    return html


def _groups(*, expert: bool) -> list[list[Field]]:
    rows = [row for row in ON_PAGE if row.widget != "bar" and row.is_expert == expert]
    return [list(found) for _, found in groupby(rows, key=lambda row: row.row or row.name)]


@cache
def _template() -> Any:  # noqa: ANN401 (jinja2's)
    loader = FileSystemLoader(assets_folder())
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("page.html")
