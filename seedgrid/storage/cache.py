"""A cache of small JSON files: digests, probe results, paths of models, facts on LoRAs.

A missing or damaged one is treated as empty: what it held is computed, or asked for, again. One
that cannot be written is no error. No torch needed.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import Any, Final, TypeVar

import platformdirs
from pydantic import BaseModel, ValidationError

from seedgrid.core.errors import LibraryError
from seedgrid.storage.files import make_folder, write_atomically

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_VALUES: Final = 500
"""Maximum entries of one file: each lookup reads all of it, and visitors add entries."""


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


def recall_texts(name: str) -> dict[str, list[str]]:
    """Return the lists of texts that were remembered under a name; anything else is left out."""
    return {
        key: [text for text in texts if isinstance(text, str)]
        for key, texts in recall(name).items()
        if isinstance(texts, list)
    }


def remember(name: str, data: dict[str, Any]) -> None:
    """Keep a dictionary of plain values under a name."""
    with contextlib.suppress(OSError, LibraryError):
        make_folder(cache_folder())
        write_atomically(cache_folder() / f"{name}.json", json.dumps(data).encode())


def remember_one(name: str, key: str, value: object) -> None:
    """Keep a plain value under a name, by its key; beyond `MAX_VALUES` the oldest are dropped."""
    known = recall(name)
    known.pop(key, None)  # Inserted again, it is the newest.
    remember(name, dict([*known.items(), (key, value)][-MAX_VALUES:]))


def recall_value(name: str, key: str, kind: type[ModelT]) -> ModelT | None:
    """Return a value that `remember_value` kept; None if there is none that validates."""
    return _read(recall(name).get(key), kind)


def recall_values(name: str, kind: type[ModelT]) -> list[ModelT]:
    """Return all values that `remember_value` kept under a name, but those of other releases."""
    found = (_read(data, kind) for data in recall(name).values())
    return [value for value in found if value is not None]


def remember_value(name: str, key: str, value: BaseModel) -> None:
    """Keep a value as `remember_one` does, so that `recall_value` finds it."""
    remember_one(name, key, value.model_dump_json())


def _read(data: object, kind: type[ModelT]) -> ModelT | None:
    try:
        return kind.model_validate_json(data) if isinstance(data, str) else None
    except ValidationError:
        return None
