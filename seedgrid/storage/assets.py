"""Where the files of `assets/` are: beside the package in a checkout, inside it when installed."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def assets_folder() -> Path:
    """Return the folder with the page's scripts and styles, the typeface and the bundled model."""
    inside = _PACKAGE / "assets"
    return inside if inside.is_dir() else _PACKAGE.parent / "assets"
