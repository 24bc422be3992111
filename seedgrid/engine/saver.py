"""Saver: the thread that puts painted pictures into libraries and announces those that are safe.

It saves beside the painting, batch by batch, in the order of submission.
"""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Picture, Pixels
from seedgrid.core.recipe import Passport
from seedgrid.engine.batches import Known
from seedgrid.engine.run import Run

_COPIED_TOGETHER: Final = 4
"""So many remembered pictures are kept again, and shown, at a time."""


_Call = tuple[Future[None], Callable[[], object]]


class Saver:
    """One thread. It goes on while the interpreter shuts down, so a finished picture is saved."""

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
        """Keep and announce what needs no painting.

        What the library has is copied to its new places in the lineage; what was painted live is
        saved as if it had been painted now.
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
        """Wait until what was submitted is done, or the disk does not come back."""
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
    """Save pictures by cell and tell that all are safe."""
    try:
        entries = run.library.add_together(list(pictures.values())) if pictures else ()
    except LibraryError as error:
        if error.code != "disk_full" or len(pictures) == 1:
            raise
        _save_each(run, pictures)
        return
    run.announce(
        *(Finished(cell=cell, entry=entry) for cell, entry in zip(pictures, entries, strict=True))
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
    entries = run.library.add_again(*((entry, run.jobs[cell].lineage) for cell, entry in known))
    run.announce(
        *(
            Finished(cell=cell, entry=entry, remembered=True)
            for (cell, _), entry in zip(known, entries, strict=True)
        )
    )
