"""Later: scripts and words that a page needs only when somebody opens library or models, in one.

The page fetches it with the first click that asks for something in it (assets/door.js), so that
what opens at the start stays small. Knows no component.
"""

import hashlib
import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from seedgrid.storage.assets import assets_folder
from seedgrid.web.server.headers import FOREVER
from seedgrid.web.texts import later_texts

SCRIPTS: Final = (
    "card_grid.js",
    "tags.js",
    "selection.js",
    "undo.js",
    "library.js",
    "looking.js",
    "loras.js",
    "models.js",
)
"""In this order; files in `assets/`."""
MODELS_STYLE: Final = "models.css"
ADDRESS: Final = "seedgrid/assets/later.js"


def later_script() -> bytes:
    """Return the words and the scripts, in one."""
    words = json.dumps(later_texts(), ensure_ascii=False)
    style = json.dumps({"models_style": asset_address(MODELS_STYLE)})
    scripts = [(assets_folder() / name).read_text("utf-8") for name in SCRIPTS]
    told = (
        f"for (const [key, told] of Object.entries({words}))"
        " SeedGridConfig.texts[key] = told[SeedGridConfig.language] ?? told.en;"
        f"Object.assign(SeedGridConfig, {style});"
    )
    return "\n".join([told, *scripts]).encode()


def later_version() -> str:
    """Return what changes with the script."""
    return version_of(later_script())


def version_of(content: bytes) -> str:
    """Return what changes with a content, so that it may be cached for ever by its address."""
    return hashlib.sha256(content).hexdigest()[:12]


def asset_address(name: str) -> str:
    """Return where a file of `assets/` is; it changes with the content."""
    return f"seedgrid/assets/{name}?v={version_of((assets_folder() / name).read_bytes())}"


def later_route() -> Route:
    """Return its address; it stands before the one of all other assets."""

    def later(_: Request) -> Response:
        return Response(later_script(), media_type="text/javascript", headers=FOREVER)

    return Route(f"/{ADDRESS}", later)
