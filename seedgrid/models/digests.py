"""SHA-256 of weight files, remembered so that gigabytes are read once.

A file is known by its device, number, size and both of its times: a program that writes into it
can put the time of the writing back, but not that of the last change, which the system keeps.

Knows nothing of what a model is: files in, a digest out. No torch needed.
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
        files: Where each file lies, by the name it counts under.

    Returns:
        64 hexadecimal digits, from the digests and names in the order of the names.
    """
    digests = _file_digests(list(files.values()))
    lines = [f"{digests[path]}  {name}\n" for name, path in sorted(files.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def known_digest(files: Mapping[str, Path]) -> str | None:
    """Return what `files_digest` would, where no large file has to be read for it; else None."""
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
    """Return what is another as soon as any of the files was written, replaced or taken away.

    Who has read them keeps it: a file that is mapped into memory changes there, too, when somebody
    writes into it.
    """
    return tuple(_state_or_gone(path) for _, path in sorted(files.items()))


def _file_digests(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the digests of files, as they are remembered, or read now."""
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
        remember(_CACHE, recall(_CACHE) | new)  # Others remembered theirs while these were read.
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
