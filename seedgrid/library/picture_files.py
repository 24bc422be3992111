"""The PNG files of a library; each is on the disk, whole, before its row is committed."""

import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from seedgrid.core.picture import Entry, Origin, Picture
from seedgrid.formats.png import PngRecord
from seedgrid.storage.files import make_folder, refusals, sync_folder, write_atomically

_UNFINISHED_FOR_S: Final = 24 * 3600.0  # An older temporary file was left by a killed process


class PictureFiles:
    """The PNG files of a library, each under the SHA-256 of its bytes: `objects/ab/abcd….png`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._objects = folder / "objects"
        self._unfinished = folder / "tmp"

    def path(self, file_sha256: str) -> Path:
        """Return the path of the file with this content, whether it exists or not."""
        return self._objects / file_sha256[:2] / f"{file_sha256}.png"

    def write(self, data: bytes) -> None:
        """Write a file under the SHA-256 of its bytes; when this returns it is on the disk."""
        file_sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(file_sha256)
        make_folder(self._unfinished)
        make_folder(path.parent)
        # `read` checks the digest, as an existing file may be incomplete.
        if self.read(file_sha256) is None:
            write_atomically(path, data, temporary_folder=self._unfinished)
        else:
            with refusals(path):
                sync_folder(path.parent)

    def new_entry(self, sha256: str, picture: Picture | PngRecord | Entry, origin: Origin) -> Entry:
        """Return the entry of a picture's file, without marks."""
        return Entry(
            path=self.path(sha256),
            recipe=picture.recipe,
            passport=picture.passport,
            lineage=picture.lineage,
            pixels_sha256=picture.pixels_sha256,
            file_sha256=sha256,
            origin=origin,
        )

    def read(self, file_sha256: str) -> bytes | None:
        """Return the file's bytes, or None when it is missing or has another digest."""
        try:
            data = self.path(file_sha256).read_bytes()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == file_sha256 else None

    def remove(self, file_sha256: str) -> None:
        """Delete a file for good."""
        path = self.path(file_sha256)
        with refusals(path):
            if path.exists():
                path.unlink()
                sync_folder(path.parent)

    def names(self) -> Iterator[str]:
        """Yield the SHA-256 of each file, as its name has it, unread; in no order."""
        with refusals(self._objects):
            for path in self._objects.glob("??/*.png"):
                if re.fullmatch(r"[0-9a-f]{64}", path.stem) and path == self.path(path.stem):
                    yield path.stem

    def set_aside(self, path: Path) -> None:
        """Move a damaged file into `damaged/`; it is not deleted."""
        if not path.exists():
            return
        aside = self._folder / "damaged"
        make_folder(aside)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        with refusals(path):
            path.rename(aside / f"{stamp}-{secrets.token_hex(2)}-{path.name}")
            sync_folder(path.parent)

    def sweep(self) -> None:
        """Delete what killed processes left unfinished a day ago or earlier."""
        with contextlib.suppress(OSError):
            for path in self._unfinished.iterdir():
                if time.time() - path.stat().st_mtime > _UNFINISHED_FOR_S:
                    path.unlink()
