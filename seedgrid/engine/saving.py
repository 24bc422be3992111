"""Saving: puts painted pictures into a run's library and announces each that is safe.

On a thread of its own, beside the next batch. What waits by then is saved together: under a hundred
painters the disk and the database are waited for once, not once a batch. Knows nothing of who
paints.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Picture, Pixels
from seedgrid.core.recipe import Passport
from seedgrid.engine.background import TaskThread, settle
from seedgrid.engine.run import Run

logger = logging.getLogger(__name__)

_MOST_PICTURES: Final = 64
_MOST_BYTES: Final = 16 * 2**20
"""Of pixels: so many more than one batch has are packed into files at the same time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Pictures of a run that wait to be saved, by cell."""

    run: Run
    pictures: dict[int, Picture]
    saved: Future[None] = field(default_factory=Future)

    @property
    def num_bytes(self) -> int:
        """How much memory the pixels take."""
        return sum(picture.pixels.nbytes for picture in self.pictures.values())

    def announce(self, entries: Iterable[Entry]) -> None:
        """Tell that all are safe."""
        finished = zip(self.pictures, entries, strict=True)
        self.run.announce(
            *(
                Finished(cell=cell, entry=entry, is_uniform=_is_uniform(self.pictures[cell].pixels))
                for cell, entry in finished
            )
        )


class Saver(TaskThread):
    """The thread that saves."""

    def __init__(self) -> None:
        self._waiting: deque[_Batch] = deque()
        self._guard = threading.Lock()
        super().__init__("seedgrid-saver")

    def save(
        self, run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport
    ) -> Future[None]:
        """Save a batch: all of it or none, but on a full disk each picture that finds room.

        It is done before whatever is submitted after it.
        """
        pictures = {
            cell: Picture(
                pixels=pixels,
                recipe=run.jobs[cell].recipe,
                passport=passport,
                lineage=run.jobs[cell].lineage,
            )
            for cell, pixels in painted
        }
        batch = _Batch(run=run, pictures=pictures)
        if not pictures:  # All of them missed.
            batch.saved.set_result(None)
            return batch.saved
        with self._guard:
            self._waiting.append(batch)
        # One task a batch, and each takes the oldest one that waits: so the order holds, though a
        # task may find that its own was saved together with an earlier one.
        self.submit(self._save_some)
        return batch.saved

    def _save_some(self) -> None:
        some = self._oldest()
        if len(some) < 2 or not _saved_together(some):
            for batch in some:
                settle(batch.saved, partial(_save, batch))

    def _oldest(self) -> list[_Batch]:
        """Take the oldest batch, and those for the same library that go with it."""
        with self._guard:
            taken: list[_Batch] = []
            num_pictures = num_bytes = 0
            for batch in tuple(self._waiting):
                if taken and batch.run.library is not taken[0].run.library:
                    continue
                num_pictures += len(batch.pictures)
                num_bytes += batch.num_bytes
                if taken and (num_pictures > _MOST_PICTURES or num_bytes > _MOST_BYTES):
                    break
                taken.append(batch)
                self._waiting.remove(batch)
            return taken


def _saved_together(some: Sequence[_Batch]) -> bool:
    """Save batches for one library, all or none; False where each has to be tried alone."""
    pictures = [picture for batch in some for picture in batch.pictures.values()]
    try:
        entries = iter(some[0].run.library.add_together(pictures))
    except BaseException as error:  # noqa: BLE001 (alone, the batch that it is about raises it again)
        logger.info("%d batches are saved one by one: %s", len(some), error)
        return False
    for batch in some:
        settle(batch.saved, partial(batch.announce, [next(entries) for _ in batch.pictures]))
    return True


def _save(batch: _Batch) -> None:
    try:
        entries = batch.run.library.add_together(list(batch.pictures.values()))
    except LibraryError as error:
        if error.code != "disk_full" or len(batch.pictures) == 1:
            raise
        _save_one_by_one(batch)
    else:
        batch.announce(entries)


def _is_uniform(pixels: Pixels) -> bool:
    return bool((pixels == pixels[0, 0]).all())


def _save_one_by_one(batch: _Batch) -> None:
    errors: list[LibraryError] = []
    for cell, picture in batch.pictures.items():
        try:
            _save(_Batch(run=batch.run, pictures={cell: picture}))
        except LibraryError as error:
            errors.append(error)
    if errors:
        raise errors[0]


def save_again(run: Run, known: Sequence[tuple[int, Entry]]) -> None:
    """Keep what the library remembers at its new places, and announce it."""
    copies = [(entry, run.jobs[cell].lineage) for cell, entry in known]
    entries = run.library.add_again(*copies)
    run.announce(
        *(
            Finished(cell=cell, entry=entry, remembered=True)
            for (cell, _), entry in zip(known, entries, strict=True)
        )
    )


def wait_for(saving: Sequence[Future[None]]) -> None:
    """Wait until all are settled, then raise the first error there is."""
    errors = [error for future in saving if (error := future.exception()) is not None]
    if errors:
        raise errors[0]
