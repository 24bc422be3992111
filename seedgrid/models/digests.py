"""SHA-256 of weight files, remembered by path, size and time so that gigabytes are read once.

Knows nothing of what a model is: files in, a digest out. No torch needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from seedgrid.storage.cache import recall, remember

_SMALL_BYTES: Final = 1 << 20
_CACHE: Final = "digests"


def files_digest(files: Mapping[str, Path]) -> str:
    """Return one digest of named files, as `sha256sum NAME… | sha256sum` gives it.

    Args:
        files: Where each file lies, by the name it counts under.

    Returns:
        64 hexadecimal digits, from the digests and names in the order of the names.

    Raises:
        OSError: A file cannot be read.
    """
    known = recall(_CACHE)
    count = len(known)
    lines = [f"{_file_digest(path, known)}  {name}\n" for name, path in sorted(files.items())]
    if len(known) > count:
        remember(_CACHE, known)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _file_digest(path: Path, known: dict[str, Any]) -> str:
    """Return a file's digest, from `known` when path, size and time are those of then."""
    real = path.resolve()
    status = real.stat()
    if status.st_size < _SMALL_BYTES:
        return hashlib.sha256(real.read_bytes()).hexdigest()
    key = f"{real}|{status.st_size}|{status.st_mtime_ns}"
    if key not in known:
        with real.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return str(known[key])
