"""Small JSON files for what can be worked out again: digests, places of models, probe results.

A cache that is damaged, or that cannot be written, costs time and is no error. No torch needed.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import platformdirs

from seedgrid.core.errors import LibraryError
from seedgrid.storage.files import make_folder, write_atomically


def cache_folder() -> Path:
    """Return the folder for such files: `SEEDGRID_CACHE`, or the system's place for caches."""
    return Path(os.environ.get("SEEDGRID_CACHE") or platformdirs.user_cache_dir("seedgrid", False))


def recall(name: str) -> dict[str, Any]:
    """Return what was remembered under a name; empty when nothing was."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads((cache_folder() / f"{name}.json").read_bytes())
        if isinstance(data, dict):
            return data
    return {}


def remember(name: str, data: dict[str, Any]) -> None:
    """Keep a dictionary of plain values under a name."""
    with contextlib.suppress(OSError, LibraryError):
        make_folder(cache_folder())
        write_atomically(cache_folder() / f"{name}.json", json.dumps(data).encode())
