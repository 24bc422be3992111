"""Write a file so that it is there whole or not at all, also after a crash or a power cut.

The order is the one that lost nothing in the crash tests (docs/log.md): temporary file, fsync,
rename, fsync of the folder. Knows nothing of pictures or of the library; what the operating system
refuses becomes a `LibraryError` with one sentence here and nowhere else.

    write_atomically(Path("sheet.png"), data)
"""

import contextlib
import errno
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, Final

from seedgrid.core.errors import LibraryError

DELETING: Final = "seedgrid-delete"
"""What threads are called that delete what `delete_aside` put aside."""

RESERVE_BYTES: Final = 250_000
"""For what is written beside the pictures: the database's journal, folders, marks."""

_PACKAGE: Final = Path(__file__).resolve().parents[1]

TEMPORARY_PREFIX: Final = ".seedgrid-"
TEMPORARY_SUFFIX: Final = ".part"

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def write_atomically(
    path: Path, data: bytes, *, temporary_folder: Path | None = None, mode: int = 0o666
) -> None:
    """Write a file; when this returns it is on the disk, whole, under its name.

    Args:
        path: Replaced if it exists.
        data: The whole content.
        temporary_folder: Where the unfinished file lies, on the same file system; beside `path`
            by default. A killed process leaves at most one file there.
        mode: Who may read and write it, as far as the process's own mask lets them.

    Raises:
        LibraryError: `disk_full`, `folder_read_only` or `folder_refuses`; nothing is left behind.
    """
    with open_atomically(path, temporary_folder=temporary_folder, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(
    path: Path, *, temporary_folder: Path | None = None, mode: int = 0o666
) -> Iterator[BinaryIO]:
    """Open a file to write piece by piece; it gets its name when the block ends, or never.

    Arguments as of `write_atomically`.

    Raises:
        LibraryError: `disk_full`, `folder_read_only` or `folder_refuses`; nothing is left behind.
    """
    name = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    temporary = (temporary_folder or path.parent) / name
    with refusals(path):
        try:
            with open(temporary, "x+b", opener=partial(os.open, mode=mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:  # Nothing is left behind, whatever stopped the writer.
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, each of them safe on disk."""
    with refusals(path):
        missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
        for folder in reversed(tuple(missing)):
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def check_room(folder: Path, num_bytes: int) -> None:
    """Make sure that so much can be written, before anybody waits for what would be lost.

    Other programs may use the space meanwhile: writing can still fail.
    """
    with refusals(folder):
        free = shutil.disk_usage(folder).free
    if free < num_bytes + RESERVE_BYTES:
        wanted = f"{(num_bytes + RESERVE_BYTES) / 1e6:.1f} MB"
        raise LibraryError(
            "disk_low", value=str(folder), wanted=wanted, free=f"{free / 1e6:.1f} MB"
        )


def size_of(path: Path) -> int:
    """Return how many bytes a file has, or all files of a folder; what goes meanwhile has none."""
    num_bytes = 0
    for each in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            num_bytes += each.stat().st_size if each.is_file() else 0
    return num_bytes


def nearest_folder(path: Path) -> Path:
    """Return a folder, or the one that is there of those in which it would be made."""
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def sync_folder(folder: Path) -> None:
    """Put the folder's list of names on the disk; Windows does that by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses inside the block into one `LibraryError`."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise LibraryError("disk_full", value=str(path.parent)) from error
        if error.errno in _FORBIDDEN:
            raise LibraryError("folder_read_only", value=str(path.parent)) from error
        reason = error.strerror or str(error)
        raise LibraryError("folder_refuses", value=str(path), reason=reason) from error


def delete_aside(folder: Path) -> None:
    """Have a folder gone at once, and what was in it deleted by a thread of its own.

    Deleting thousands of files takes a second, so a thread does it.
    """
    aside = folder.with_name(f"gone-{secrets.token_hex(16)}")
    try:
        folder.rename(aside)
    except OSError:  # It is not there, or Windows has a file in it open.
        shutil.rmtree(folder, ignore_errors=True)
        return
    deleting = partial(shutil.rmtree, aside, ignore_errors=True)
    threading.Thread(target=deleting, name=DELETING, daemon=True).start()


def assets_folder() -> Path:
    """Return the folder with the page's scripts and styles, the typeface and the bundled model.

    It is beside the package in a checkout, inside it when installed.
    """
    inside = _PACKAGE / "assets"
    return inside if inside.is_dir() else _PACKAGE.parent / "assets"
