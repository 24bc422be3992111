"""Saver: the thread that puts painted pictures into libraries and announces those that are safe.

It saves beside the painting, in the order of submission. Batches that wait for one library are
saved together: under a hundred painters the disk is waited for once, not once a batch.
"""

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Picture, Pixels
from seedgrid.core.recipe import Passport
from seedgrid.engine.run import Run
from seedgrid.engine.scratch import Known

logger = logging.getLogger(__name__)

_MOST_PICTURES: Final = 64
_MOST_BYTES: Final = 16 * 2**20
"""Of pixels: so many more than one batch has are packed into files at the same time."""
_COPIED_TOGETHER: Final = 4
"""So many remembered pictures are kept again, and shown, at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Call:
    """A function that is called after everything that was submitted before."""

    function: Callable[[], object]
    done: Future[None] = field(default_factory=Future)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Pictures of a run that wait to be saved, by cell."""

    run: Run
    pictures: Mapping[int, Picture]
    done: Future[None] = field(default_factory=Future)

    @property
    def num_bytes(self) -> int:
        """How much memory the pixels take."""
        return sum(picture.pixels.nbytes for picture in self.pictures.values())

    def announce(self, entries: Iterable[Entry]) -> None:
        """Tell that all are safe."""
        finished = zip(self.pictures.items(), entries, strict=True)
        self.run.announce(
            *(
                Finished(cell=cell, entry=entry, is_uniform=_is_uniform(picture.pixels))
                for (cell, picture), entry in finished
            )
        )


class Saver:
    """One thread. It goes on while the interpreter shuts down, so a finished picture is saved."""

    def __init__(self) -> None:
        self._waiting: deque[_Batch | _Call] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="seedgrid-saver", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[[], object]) -> Future[None]:
        """Call a function after everything that was submitted before."""
        return self._put(_Call(function=function))

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
        return self._put(_Batch(run=run, pictures=pictures))

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
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _put(self, work: _Batch | _Call) -> Future[None]:
        with self._changed:
            if self._is_closed:
                work.done.cancel()
            else:
                self._waiting.append(work)
                self._changed.notify()
        return work.done

    def _work(self) -> None:
        while (work := self._next()) is not None:
            if isinstance(work, _Call):
                _settle(work.done, work.function)
            else:
                _save(work)

    def _next(self) -> _Call | list[_Batch] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if not self._waiting:
                return None
            first = self._waiting.popleft()
            return first if isinstance(first, _Call) else [first, *self._alike(first)]

    def _alike(self, first: _Batch) -> list[_Batch]:
        """Remove and return the batches for the same library that can be saved with this one."""
        alike: list[_Batch] = []
        num_pictures, num_bytes = len(first.pictures), first.num_bytes
        for each in tuple(self._waiting):
            if not isinstance(each, _Batch) or each.run.library is not first.run.library:
                continue
            num_pictures += len(each.pictures)
            num_bytes += each.num_bytes
            if num_pictures > _MOST_PICTURES or num_bytes > _MOST_BYTES:
                break
            alike.append(each)
            self._waiting.remove(each)
        return alike


def _save(batches: Sequence[_Batch]) -> None:
    """Save batches for one library together; what cannot be saved so is tried in smaller parts."""
    pictures = [picture for batch in batches for picture in batch.pictures.values()]
    try:
        entries = iter(batches[0].run.library.add_together(pictures) if pictures else ())
    except BaseException as error:  # noqa: BLE001 (the thread's edge: the futures raise it)
        if len(batches) > 1:
            logger.info("%d batches are saved one by one: %s", len(batches), error)
            for batch in batches:
                _save([batch])
        else:
            _settle(batches[0].done, partial(_save_alone, batches[0], error))
        return
    for batch in batches:
        _settle(batch.done, partial(batch.announce, [next(entries) for _ in batch.pictures]))


def _save_alone(batch: _Batch, error: BaseException) -> None:
    """On a full disk, save each picture that finds room; raise the first error of the others."""
    is_full = isinstance(error, LibraryError) and error.code == "disk_full"
    if not is_full or len(batch.pictures) == 1:
        raise error
    parts = [_Batch(run=batch.run, pictures=dict([each])) for each in batch.pictures.items()]
    for part in parts:
        _save([part])
    for part in parts:
        part.done.result()


def _save_again(run: Run, known: Sequence[tuple[int, Entry]]) -> None:
    entries = run.library.add_again(*((entry, run.jobs[cell].lineage) for cell, entry in known))
    run.announce(
        *(
            Finished(cell=cell, entry=entry, remembered=True)
            for (cell, _), entry in zip(known, entries, strict=True)
        )
    )


def _is_uniform(pixels: Pixels) -> bool:
    return bool((pixels == pixels[0, 0]).all())


def _settle(done: Future[None], function: Callable[[], object]) -> None:
    try:
        function()
    except BaseException as error:  # noqa: BLE001 (the thread's edge: the future raises it)
        done.set_exception(error)
    else:
        done.set_result(None)
