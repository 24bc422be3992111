"""First: what the page needs of ours at its start: a script for each language and a style sheet.

One file is packed a third smaller than its parts, and a visitor gets the words of one language.
Knows no component.
"""

import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seedgrid.locales import locales
from seedgrid.storage.assets import assets_folder
from seedgrid.web.server.headers import FOREVER
from seedgrid.web.server.later import version_of
from seedgrid.web.texts import page_texts

SCRIPTS: Final = (
    "base.js",
    "turns.js",
    "away.js",
    "place.js",
    "stream.js",
    "stage.js",
    "rail.js",
    "picked.js",
    "verdict.js",
    "exports.js",
    "fours.js",
    "offers.js",
    "starting.js",
    "status.js",
    "history.js",
    "hints.js",
    "advice.js",
    "bar.js",
    "folds.js",
    "shapes.js",
    "door.js",
    "zoom.js",
    "large.js",
    "drop.js",
    "roll.js",
    "names.js",
    "keys.js",
    "press.js",
)
STYLES: Final = ("page.css", "panel.css", "library.css", "overlay.css")
"""In this order, as the scripts; files in `assets/`."""
_FOLDER: Final = "seedgrid/assets"


def first_script(language: str) -> bytes:
    """Return the words of a language, English ones where it has none, and the scripts."""
    texts = {key: told.get(language, told["en"]) for key, told in page_texts().items()}
    words = json.dumps(texts, ensure_ascii=False)
    return f"SeedGridConfig.texts = {words};\n".encode() + _joined(SCRIPTS)


def first_style() -> bytes:
    """Return the style sheets."""
    return _joined(STYLES)


def script_address(language: str) -> str:
    """Return where the script of a language is; it changes with the content."""
    return f"{_FOLDER}/first-{language}.js?v={version_of(first_script(language))}"


def style_address() -> str:
    """Return where the style sheet is; it changes with the content."""
    return f"{_FOLDER}/first.css?v={version_of(first_style())}"


def first_routes() -> list[Route]:
    """Return their addresses; they stand before the one of all other assets."""

    def script(request: Request) -> Response:
        language = request.path_params["language"]
        if language not in locales():
            return Response(status_code=404)
        return Response(first_script(language), media_type="text/javascript", headers=FOREVER)

    def style(_: Request) -> Response:
        return Response(first_style(), media_type="text/css", headers=FOREVER)

    return [
        Route(f"/{_FOLDER}/first-{{language:str}}.js", script),
        Route(f"/{_FOLDER}/first.css", style),
    ]


def _joined(names: tuple[str, ...]) -> bytes:
    return b"\n".join((assets_folder() / name).read_bytes() for name in names)
