"""The library's PNG files, each under the SHA-256 of its bytes, and who is writing them.

A file is on the disk, whole, before anybody hears of it. Unfinished files lie in a folder of the
process that writes them, which it keeps locked: what a killed process left is known at once by
its lock being free. Knows nothing of the database.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from seedgrid.storage.files import make_folder, refusals, sync_folder, write_atomically

_NAME: Final = re.compile(r"[0-9a-f]{64}\.png")


class Objects:
    """Files by content, under `folder/objects/ab/abcd….png`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "objects"
        self._sessions = folder / "tmp"
        self._session: tuple[Path, FileLock] | None = None
        self._guard = threading.Lock()

    def path(self, file_sha256: str) -> Path:
        """Say where the file with this content is, or would be."""
        return self.folder / file_sha256[:2] / f"{file_sha256}.png"

    def put(self, data: bytes) -> str:
        """Write a file; when this returns it is on the disk."""
        file_sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(file_sha256)
        session = self.open_session()
        # A file that is there may be torn: its name proves nothing.
        if self.read(file_sha256) is None:
            make_folder(path.parent)
            write_atomically(path, data, temporary_folder=session)
        else:
            with refusals(path):
                sync_folder(path.parent)
        return file_sha256

    def read(self, file_sha256: str) -> bytes | None:
        """Return the file's bytes, or None when it is missing or not what its name says."""
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
        """Go through the SHA-256 of all files, by name only, in no order."""
        for folder, name in self._listed():
            if _is_ours(folder, name):
                yield name.removesuffix(".png")

    def strays(self) -> Iterator[Path]:
        """Go through the files whose name or place is not one of ours."""
        for folder, name in self._listed():
            if not _is_ours(folder, name):
                yield self.folder / folder / name

    def _listed(self) -> Iterator[tuple[str, str]]:
        """Go through everything that lies here: the folder's name, empty at the top, and its own.

        Strings and not paths: a hundred thousand of them are listed at a start after a crash.
        """
        if not self.folder.is_dir():
            return
        with refusals(self.folder), os.scandir(self.folder) as folders:
            for folder in folders:
                if not folder.is_dir():
                    yield "", folder.name
                    continue
                with os.scandir(folder.path) as files:
                    for file in files:
                        yield folder.name, file.name

    def is_empty(self) -> bool:
        """Tell whether there is no picture at all."""
        return next(self.names(), None) is None

    def open_session(self) -> Path:
        """Return this process's folder for unfinished files, locked as long as it lives."""
        with self._guard:
            with refusals(self._sessions):
                if self._session is not None and not self._session[0].is_dir():
                    self._session[1].release(force=True)  # Somebody deleted the whole library.
                    self._session = None
                while self._session is None:
                    self._session = self._try_session()
            return self._session[0]

    def _try_session(self) -> tuple[Path, FileLock] | None:
        """Make and lock a folder; None when a starting process took it for an abandoned one."""
        session = self._sessions / secrets.token_hex(8)
        make_folder(session)
        lock = FileLock(session / "lock", thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return None
        except OSError:
            if session.is_dir():
                raise
            return None
        return (session, lock) if session.is_dir() else None

    def close_session(self, *, leave_trace: bool = False) -> None:
        """Let go of this process's folder.

        Args:
            leave_trace: Something went wrong: keep the folder, so that the next start looks.
        """
        with self._guard:
            if self._session is not None:
                session, lock = self._session
                self._session = None
                if not leave_trace:
                    shutil.rmtree(session, ignore_errors=True)
                lock.release(force=True)

    @contextlib.contextmanager
    def abandoned_sessions(self) -> Iterator[tuple[Path, ...]]:
        """Hold the folders of processes that were killed; deleted when the block succeeds."""
        found: list[tuple[Path, FileLock]] = []
        folders = sorted(self._sessions.iterdir()) if self._sessions.is_dir() else []
        for folder in folders:
            lock = FileLock(folder / "lock", thread_local=False)
            with contextlib.suppress(Timeout, OSError):
                lock.acquire(timeout=0)
                found.append((folder, lock))
        try:
            yield tuple(folder for folder, _ in found)
            for folder, _ in found:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            for _, lock in found:
                lock.release(force=True)


def _is_ours(folder: str, name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.startswith(folder) and len(folder) == 2
