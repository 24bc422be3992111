"""The page: its texts, a document for each language from `assets/page.html`, and its files.

Addresses of scripts and styles contain a digest of all of them, so browsers cache them for good.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import groupby
from typing import Final

import brotli
from jinja2 import Environment, StrictUndefined
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from seedgrid.core.errors import SeedGridError
from seedgrid.core.field import Field
from seedgrid.core.fields import IN_LINKS, ON_PAGE, field
from seedgrid.core.prompts import GUIDE_PROMPT
from seedgrid.core.variables import is_zero_gpu
from seedgrid.locales import ENGLISH, english, locales
from seedgrid.storage.files import assets_folder

# Headers of files whose address has a digest or a random id, so that they never change
FOREVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
UNCACHED: Final = {"Cache-Control": "no-store"}
MAX_FILE_MB: Final = 64  # Limit of a dropped file; the page checks it before sending
# Style sheets, which are sent in this order as one `page.css`
STYLES: Final = ("page.css", "panel.css", "library.css", "overlay.css", "models.css")
_KINDS: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".svg": "image/svg+xml",
}
_PRELOADED: Final = (  # Modules of every page, preloaded with `page.js`
    *("base", "server", "place", "stage", "rail", "card"),
    *("variations", "words", "form", "live"),
)


def say(key: str, language: str, **data: object) -> str:
    """Return the text of a key in a language, filled in with `data`; empty for an unknown key."""
    text = page_texts(language).get(key, "")
    return text.format(**data) if data else text


def sentence(error: SeedGridError, language: str) -> str:
    """Return the sentence of an error in a language."""
    return page_texts(language)[f"error_{error.code}"].format(**error.data)


@cache
def page_texts(language: str) -> dict[str, str]:
    """Return every text, error and reason by key; in English where it is not translated."""
    texts: dict[str, str] = {}
    for locale in (english(), locales()[language]):
        texts |= {**locale.words, **locale.later}
        texts |= {f"error_{code}": each for code, each in locale.errors.items()}
        texts |= {f"reason_{code}": each for code, each in locale.reasons.items()}
    return texts


def _about_fields(language: str) -> dict[str, str]:
    """Return a text about what each field of the page does, by `NAME_about`."""
    texts, space = page_texts(language), "" if locales()[language].tag.startswith("zh") else " "
    keys = {each.name: (f"{each.name}_info", f"bits_{each.effect}") for each in ON_PAGE}
    return {f"{n}_about": space.join(filter(None, map(texts.get, k))) for n, k in keys.items()}


def choose_language(*wishes: str | None) -> str:
    """Return the first supported language among tags or `Accept-Language` headers, or English."""
    for wish in wishes:
        for tag in (wish or "").split(","):
            name = tag.strip().lower().replace("_", "-").split(";")[0].split("-")[0]
            if name in locales():
                return name
    return ENGLISH


@cache
def files() -> dict[str, bytes]:
    """Return the scripts, styles, fonts and SVG images of the page by their names."""
    folder = assets_folder()
    paths = [*folder.glob("*.js"), *folder.glob("*.svg"), *folder.glob("fonts/*.woff2")]
    by_name = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    by_name["page.css"] = b"\n".join((folder / name).read_bytes() for name in STYLES)
    return by_name


@cache
def version() -> str:
    """Return a digest of all files, which is a part of their addresses."""
    return hashlib.sha256(b"".join(files()[name] for name in sorted(files()))).hexdigest()[:12]


def file_answer(request: Request) -> Response:
    """Answer with a file of the page; one with an old version in its address is not cached."""
    name = request.path_params["name"]
    body = files().get(name)
    if body is None:
        return PlainTextResponse("there is no such file", status_code=404)
    headers = FOREVER if request.path_params["version"] == version() else UNCACHED
    kind = _KINDS[f".{name.rpartition('.')[2]}"]
    return compressed(request, body, kind, headers)


def json_answer(parts: Mapping[str, object], status_code: int = 200) -> Response:
    """Answer with JSON that browsers do not cache, such as the parts of a `PageUpdate`."""
    return JSONResponse(parts, status_code, UNCACHED)


def compressed(request: Request, body: bytes, kind: str, headers: Mapping[str, str]) -> Response:
    """Answer with a body, packed by Brotli if the browser accepts it; fonts are packed already."""
    if kind != "font/woff2" and "br" in request.headers.get("accept-encoding", ""):
        headers = {**headers, "Content-Encoding": "br", "Vary": "Accept-Encoding"}
        body = _packed(body)
    return Response(body, media_type=kind, headers=dict(headers))


@lru_cache(maxsize=128)
def _packed(body: bytes) -> bytes:
    packed: bytes = brotli.compress(body, quality=9)
    return packed


@lru_cache(maxsize=16)
def document(language: str, suffixes: tuple[str, ...]) -> bytes:
    """Return the page's HTML in a language; `suffixes` are the default variations."""
    folder = f"seedgrid/assets/{version()}"
    locale = locales()[language]
    config = {
        "language": language,
        "joiner": locale.clause_joiner,
        "lowers": locale.lowers_clauses,
        "texts": page_texts(language),
        "fields": [each.id for each in ON_PAGE],
        "lists": [each.name for each in ON_PAGE if each.widget == "choice"],
        "max_upload_mb": MAX_FILE_MB,
        "links": [each.name for each in IN_LINKS],
        "zero_gpu": is_zero_gpu(),
    }
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    page = environment.from_string((assets_folder() / "page.html").read_text("utf-8"))
    html: str = page.render(
        tag=locale.tag,
        t=page_texts(language) | _about_fields(language),
        config=json.dumps(config, ensure_ascii=False).replace("<", "\\u003c"),
        folder=folder,
        modules=_PRELOADED,
        prompt=GUIDE_PROMPT,
        seeds=str(field("seeds").default),
        suffixes=suffixes,
        settings=_groups(expert=False),
        experts=_groups(expert=True),
    )
    return html.encode()


def _groups(*, expert: bool) -> list[list[Field]]:
    shown = [each for each in ON_PAGE if each.widget != "bar" and each.is_expert == expert]
    return [list(group) for _, group in groupby(shown, key=lambda each: each.row or each.name)]
