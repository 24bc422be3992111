"""A cache of small JSON files: digests, probe results, paths of models, facts on LoRAs.

A missing or damaged file counts as empty; a failure to write is ignored.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import platformdirs
from pydantic import BaseModel, ValidationError

from seedgrid.core.errors import LibraryError
from seedgrid.storage.files import make_folder, write_atomically

ModelT = TypeVar("ModelT", bound=BaseModel)

MAX_VALUES: Final = 500  # In one file: each lookup reads all of it, and visitors add values

_DIGESTS: Final = "digests"
_SMALL_BYTES: Final = 1 << 20


def cache_folder() -> Path:
    """Return the folder of the cache: `SEEDGRID_CACHE`, or the system's folder for caches."""
    return Path(os.environ.get("SEEDGRID_CACHE") or platformdirs.user_cache_dir("seedgrid", False))


def recall(name: str) -> dict[str, Any]:
    """Return the values stored under a name; empty if there are none."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        data = json.loads((cache_folder() / f"{name}.json").read_bytes())
        if isinstance(data, dict):
            return data
    return {}


def recall_texts(name: str) -> dict[str, list[str]]:
    """Return the lists of texts stored under a name; anything else is left out."""
    return {
        key: [text for text in texts if isinstance(text, str)]
        for key, texts in recall(name).items()
        if isinstance(texts, list)
    }


def remember(name: str, data: dict[str, Any]) -> None:
    """Store a dictionary of plain values under a name."""
    with contextlib.suppress(OSError, LibraryError):
        make_folder(cache_folder())
        write_atomically(cache_folder() / f"{name}.json", json.dumps(data).encode())


def remember_one(name: str, key: str, value: object) -> None:
    """Store a plain value under a name and a key; beyond `MAX_VALUES` the oldest are dropped."""
    values = recall(name)
    values.pop(key, None)  # Removed first, so that it is inserted at the end.
    remember(name, dict([*values.items(), (key, value)][-MAX_VALUES:]))


def recall_value(name: str, key: str, kind: type[ModelT]) -> ModelT | None:
    """Return a value stored as its JSON by `remember_one`; None if there is none that validates."""
    return _read(recall(name).get(key, ""), kind)


def recall_values(name: str, kind: type[ModelT]) -> list[ModelT]:
    """Return all values under a name, without those that do not validate."""
    values = (_read(data, kind) for data in recall(name).values())
    return [value for value in values if value is not None]


def _read(data: str, kind: type[ModelT]) -> ModelT | None:
    with contextlib.suppress(ValidationError):
        return kind.model_validate_json(data)
    return None


def files_digest(files: Mapping[str, Path]) -> str:
    """Return one digest of named files, as `sha256sum NAME… | sha256sum` gives it."""
    lines = [f"{file_digest(path)}  {name}\n" for name, path in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def known_digest(files: Mapping[str, Path]) -> str | None:
    """Return `files_digest` if no large file has to be read for it, else None."""
    known = recall(_DIGESTS)
    with contextlib.suppress(OSError):
        if all(_is_small(path) or _state(path) in known for path in files.values()):
            return files_digest(files)
    return None


def file_digest(path: Path) -> str:
    """Return a file's SHA-256, 64 hexadecimal digits; that of a large file is cached."""
    is_small, state = _is_small(path), _state(path)
    if not is_small and (known := recall(_DIGESTS).get(state)):
        return str(known)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not is_small:
        remember(_DIGESTS, recall(_DIGESTS) | {state: digest})
    return digest


def states(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return texts that change when any of the files is written, replaced or deleted."""
    texts = []
    for _, path in sorted(files.items()):
        try:
            texts.append(_state(path))
        except OSError:
            texts.append("deleted")
    return tuple(texts)


def _is_small(path: Path) -> bool:
    return path.stat().st_size < _SMALL_BYTES


def _state(path: Path) -> str:
    """Return a text that changes with a file's content: programs can reset mtime, but not ctime."""
    status = path.stat()
    times = f"{status.st_mtime_ns}|{status.st_ctime_ns}"
    return f"{status.st_dev}|{status.st_ino}|{status.st_size}|{times}"
