"""The command that opens the page: the same as `python app.py`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import seedgrid
from seedgrid.cli import options
from seedgrid.core.errors import InputError


def ui(
    model: options.Model = None,
    library: options.Library = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 7860,
    lang: Annotated[str, typer.Option(help="auto, en, zh or ko.")] = "auto",
) -> None:
    """Open the page; the same as `python app.py`."""
    _load_page()(model=model, library=library, host=host, port=port, lang=lang)


def _load_page() -> Callable[..., Any]:
    """Return `main` of the app.py beside the package.

    The Space needs app.py at the root of the repository, outside the package, so it is loaded by
    its path and not by its all too common name.
    """
    path = Path(seedgrid.__file__).resolve().parent.parent / "app.py"
    specification = importlib.util.spec_from_file_location("app", path)
    if not path.is_file() or specification is None or specification.loader is None:
        raise InputError("page_missing", field="ui", value=path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["app"] = module
    specification.loader.exec_module(module)
    main: Callable[..., Any] = module.main
    return main
