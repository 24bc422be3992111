"""Saver: the thread that saves and announces pictures, in order, while the next are painted."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Picture, Pixels
from seedgrid.core.recipe import Passport
from seedgrid.engine.known import Known
from seedgrid.engine.run import Run

_COPIED_TOGETHER: Final = 4  # So many remembered pictures are saved again, and announced, at a time

_Call = tuple[Future[None], Callable[[], object]]


class Saver:
    """One thread. It runs on while the interpreter shuts down, so nothing finished is lost."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = Lock()
        self._is_closed = False
        Thread(target=self._work, name="seedgrid-saver", daemon=True).start()

    def submit(self, function: Callable[[], object]) -> Future[None]:
        """Call a function after everything that was submitted before."""
        done: Future[None] = Future()
        with self._lock:
            if self._is_closed:
                done.cancel()
            else:
                self._calls.put((done, function))
        return done

    def save(
        self, run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport
    ) -> Future[None]:
        """Save the pictures of some cells: all or none, but on a full disk each that finds room."""
        pictures = {
            cell: Picture(
                pixels=pixels,
                recipe=run.jobs[cell].recipe,
                passport=passport,
                lineage=run.jobs[cell].lineage,
            )
            for cell, pixels in painted
        }
        return self.submit(partial(_save, run, pictures))

    def keep(self, run: Run, known: Known) -> tuple[Future[None], ...]:
        """Save and announce what needs no painting.

        Pictures of the library get new places in the lineage; live ones are saved as if painted
        now.
        """
        cells = list(known.entries.items())
        kept = [
            self.submit(partial(_save_again, run, cells[at : at + _COPIED_TOGETHER]))
            for at in range(0, len(cells), _COPIED_TOGETHER)
        ]
        if known.painted:
            kept.append(self.save(run, list(known.painted.items()), known.passport))
        return tuple(kept)

    def flush(self, timeout_s: float) -> None:
        """Wait until what was submitted is done, at most so long."""
        with contextlib.suppress(TimeoutError, CancelledError):
            self.submit(lambda: None).result(timeout_s)

    def close(self) -> None:
        """Accept nothing more; the thread ends when it has done what was submitted."""
        with self._lock:
            self._is_closed = True
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            done, function = call
            try:
                function()
            except BaseException as error:  # noqa: BLE001 (the thread's edge: the future raises it)
                done.set_exception(error)
            else:
                done.set_result(None)


def _save(run: Run, pictures: dict[int, Picture]) -> None:
    """Save pictures by cell and announce that all are safe; those of a live run are not saved."""
    try:
        if run.is_live:
            entries = tuple(_unsaved(picture) for picture in pictures.values())
        else:
            entries = run.library.add_together(list(pictures.values())) if pictures else ()
    except LibraryError as error:
        if error.code != "disk_full" or len(pictures) == 1:
            raise
        _save_each(run, pictures)
        return
    run.announce(
        *(Finished(cell=cell, entry=entry) for cell, entry in zip(pictures, entries, strict=True))
    )


def _unsaved(picture: Picture) -> Entry:
    """Return what a picture would be in a library; there is no file."""
    return Entry(
        path=Path(),
        recipe=picture.recipe,
        passport=picture.passport,
        lineage=picture.lineage,
        pixels_sha256=picture.pixels_sha256,
        file_sha256="",
    )


def _save_each(run: Run, pictures: dict[int, Picture]) -> None:
    """Save each picture that finds room; raise the last error of the others."""
    refused: LibraryError | None = None
    for cell, picture in pictures.items():
        try:
            _save(run, {cell: picture})
        except LibraryError as error:
            refused = error
    if refused is not None:
        raise refused


def _save_again(run: Run, known: Sequence[tuple[int, Entry]]) -> None:
    """Announce pictures of the library; those of an ordinary run get new places first."""
    entries = [entry for _, entry in known]
    if not run.is_live:
        copies = ((entry, run.jobs[cell].lineage) for cell, entry in known)
        entries = list(run.library.add_again(*copies))
    cells = [cell for cell, _ in known]
    pairs = zip(cells, entries, strict=True)
    run.announce(*(Finished(cell=cell, entry=entry, remembered=True) for cell, entry in pairs))
