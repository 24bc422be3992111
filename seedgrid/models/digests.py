"""SHA-256 of weight files, cached so that gigabytes are read once.

The cache's key is device, inode, size, modification time and change time: a program can set the
modification time back, but not the change time.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from seedgrid.storage.cache import recall, remember

_SMALL_BYTES: Final = 1 << 20
_CACHE: Final = "digests"


def files_digest(files: Mapping[str, Path]) -> str:
    """Return one digest of named files, as `sha256sum NAME… | sha256sum` gives it.

    Args:
        files: The path of each file, by its name in the digest.

    Returns:
        64 hexadecimal digits, from the digests and names in the order of the names.
    """
    digests = _file_digests(list(files.values()))
    lines = [f"{digests[path]}  {name}\n" for name, path in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def known_digest(files: Mapping[str, Path]) -> str | None:
    """Return `files_digest` if no large file has to be read for it, else None."""
    known = recall(_CACHE)
    try:
        if all(_is_small(path) or _state(path) in known for path in files.values()):
            return files_digest(files)
    except OSError:
        return None
    return None


def file_digest(path: Path) -> str:
    """Return a file's own SHA-256, 64 hexadecimal digits."""
    return _file_digests([path])[path]


def states(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return texts that change when any of the files is written, replaced or deleted.

    Readers compare them, since a file that is mapped into memory changes when it is written.
    """
    return tuple(_state_or_gone(path) for _, path in sorted(files.items()))


def _file_digests(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the digests of files, from the cache or by reading them."""
    known = recall(_CACHE)
    found: dict[Path, str] = {}
    new: dict[str, str] = {}
    for path in paths:
        state = "" if _is_small(path) else _state(path)
        if state in known:
            found[path] = str(known[state])
            continue
        with path.open("rb") as file:
            found[path] = hashlib.file_digest(file, "sha256").hexdigest()
        if state:
            new[state] = found[path]
    if new:
        remember(_CACHE, recall(_CACHE) | new)  # Another process may have added some meanwhile.
    return found


def _is_small(path: Path) -> bool:
    return path.stat().st_size < _SMALL_BYTES


def _state(path: Path) -> str:
    status = path.stat()
    times = f"{status.st_mtime_ns}|{status.st_ctime_ns}"
    return f"{status.st_dev}|{status.st_ino}|{status.st_size}|{times}"


def _state_or_gone(path: Path) -> str:
    try:
        return _state(path)
    except OSError:
        return "gone"
