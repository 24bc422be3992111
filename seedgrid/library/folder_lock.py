"""FolderLock: one thread of one process at a time migrates, repairs or deletes in a library."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from seedgrid.core.errors import LibraryError
from seedgrid.storage.files import refusals


class FolderLock:
    """Held by one process, and by one of its threads; that may hold it again."""

    def __init__(self, folder: Path, *, timeout_s: float) -> None:
        self.guard = threading.RLock()
        self._folder = folder
        self._lock = FileLock(folder / "library.lock", timeout=timeout_s, thread_local=False)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold it in the block."""
        with self.guard, refusals(Path(self._lock.lock_file)):
            try:
                self._lock.acquire()
            except Timeout as error:
                raise LibraryError("library_locked", value=str(self._folder)) from error
            try:
                yield
            finally:
                self._lock.release()
