"""Writes a file so that it exists whole or not at all, also after a crash or a power cut.

No data were lost in the crash tests (docs/log.md) with this order: temporary file, fsync, rename,
fsync of the folder. Errors of the operating system become one `LibraryError`.
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

RESERVE_BYTES: Final = 250_000  # For the database's journal, folders and marks

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_CODES: Final = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EACCES: "folder_read_only",
    errno.EPERM: "folder_read_only",
    errno.EROFS: "folder_read_only",
}


def write_atomically(
    path: Path, data: bytes, *, temporary_folder: Path | None = None, mode: int = 0o666
) -> None:
    """Write a file as `open_atomically`; when this returns it is complete on the disk."""
    with open_atomically(path, temporary_folder=temporary_folder, mode=mode) as file:
        file.write(data)


@contextlib.contextmanager
def open_atomically(
    path: Path, *, temporary_folder: Path | None = None, mode: int = 0o666
) -> Iterator[BinaryIO]:
    """Open a temporary file to write to; it is renamed to `path` if the block succeeds.

    `temporary_folder` must be on the file system of `path`, whose folder is the default; a killed
    process leaves at most one file behind. `mode` is limited by the process's umask.
    Raises `disk_full`, `folder_read_only` or `folder_refuses`; the temporary file is deleted.
    """
    temporary = (temporary_folder or path.parent) / f".seedgrid-{secrets.token_hex(8)}.part"
    with refusals(path):
        try:
            with open(temporary, "x+b", opener=partial(os.open, mode=mode)) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder and its parents, and fsync each of them."""
    with refusals(path):
        missing = takewhile(lambda folder: not folder.exists(), (path, *path.parents))
        for folder in reversed(tuple(missing)):
            folder.mkdir(exist_ok=True)
            sync_folder(folder.parent)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def check_room(folder: Path, num_bytes: int) -> None:
    """Raise `disk_low` if the disk has no room for so many bytes; writing can still fail."""
    with refusals(folder):
        free = shutil.disk_usage(folder).free
    if free < num_bytes + RESERVE_BYTES:
        sizes = {"wanted": num_bytes + RESERVE_BYTES, "free": free}
        shown = {name: f"{size / 1e6:.1f} MB" for name, size in sizes.items()}
        raise LibraryError("disk_low", value=str(folder), **shown)


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of all files of a folder; vanishing files count 0."""
    num_bytes = 0
    for each in (path, *path.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            num_bytes += each.stat().st_size if each.is_file() else 0
    return num_bytes


def nearest_folder(path: Path) -> Path:
    """Return a folder, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def sync_folder(folder: Path) -> None:
    """Flush the list of a folder's files to the disk (fsync); Windows does that by itself."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Raise an OSError of the block as a `LibraryError`."""
    try:
        yield
    except OSError as error:
        code = _CODES.get(error.errno or 0)
        if code is not None:
            raise LibraryError(code, value=str(path.parent)) from error
        reason = error.strerror or str(error)
        raise LibraryError("folder_refuses", value=str(path), reason=reason) from error


def delete_aside(folder: Path) -> None:
    """Rename a folder at once, and delete it in a thread, since that can take seconds."""
    aside = folder.with_name(f"gone-{secrets.token_hex(16)}")
    try:
        folder.rename(aside)
    except OSError:  # The folder does not exist, or on Windows a file in it is open.
        shutil.rmtree(folder, ignore_errors=True)
        return
    deleting = partial(shutil.rmtree, aside, ignore_errors=True)
    threading.Thread(target=deleting, name="seedgrid-delete", daemon=True).start()


def assets_folder() -> Path:
    """Return the folder of the page's files and the bundled model."""
    # Beside the package in a checkout, inside it when installed.
    inside = _PACKAGE / "assets"
    return inside if inside.is_dir() else _PACKAGE.parent / "assets"
