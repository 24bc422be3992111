"""Saver: the thread that saves and announces pictures, in order, while the next are painted.

This module also finds pictures that need no painting: saved ones, and those of live runs.
"""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Final

from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Entry, Picture, Pixels
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.engine.run import Run

_MOST_BYTES: Final = 64 * 2**20  # Of all owners' pixels: 340 pictures of 256 px, or 21 of 1024 px
_COPIED_TOGETHER: Final = 4  # How many library pictures are copied and announced in one call

_Call = tuple[Future[None], Callable[[], object]]


class LivePictures:
    """Pictures of live runs, only in memory; the least recently used are dropped. Thread-safe."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        # By owner and recipe id: the pixels, the passport's digest, the tiny decoder's id
        self._pictures: OrderedDict[tuple[str, str], tuple[Pixels, str, str]] = OrderedDict()
        self._lock = Lock()

    def put(
        self, owner: str, recipe: Recipe, passport: Passport, pixels: Pixels, decoder: str = ""
    ) -> None:
        """Store a picture, shape (height, width, 3), uint8; `decoder` is `Placement.decoder`."""
        key = owner, recipe.id
        with self._lock:
            before = self._pictures.pop(key, None)
            self._num_bytes += pixels.nbytes - (before[0].nbytes if before else 0)
            self._pictures[key] = pixels, passport.digest, decoder
            while self._num_bytes > self._most_bytes:
                _, (oldest, *_) = self._pictures.popitem(last=False)
                self._num_bytes -= oldest.nbytes

    def get(
        self, owner: str, recipe_id: str, passport_digest: str = "", decoder: str | None = None
    ) -> Pixels | None:
        """Return an owner's picture of a recipe, (height, width, 3) uint8; None if there is none.

        An empty `passport_digest` stands for any passport. The picture may have been decoded by the
        model's own VAE or by the tiny `decoder`; None stands for any decoder.
        """
        with self._lock:
            pixels, digest, decoded_by = self._pictures.get((owner, recipe_id), (None, "", ""))
            if pixels is None or passport_digest not in ("", digest):
                return None
            if decoder is not None and decoded_by not in ("", decoder):
                return None
            self._pictures.move_to_end((owner, recipe_id))
            return pixels


@dataclass(frozen=True, kw_only=True)
class Reusable:
    """Pictures of a run that need no painting, by cell, all painted under one passport."""

    passport: Passport
    from_library: Mapping[int, Entry]
    from_live: Mapping[int, Pixels]  # Live runs of the same owner painted them

    @property
    def cells(self) -> set[int]:
        """The cells of all these pictures."""
        return {*self.from_library, *self.from_live}


def find_reusable(
    run: Run, cells: Iterable[int], passport: Passport, live_pictures: LivePictures
) -> Reusable:
    """Look for pictures in the run's library and its owner's live runs, unless it is `fresh`."""
    ids = {} if run.fresh else {cell: run.jobs[cell].recipe.id for cell in cells}
    saved = run.library.find_painted(tuple(ids.values()), passport.digest) if ids else {}
    entries = {cell: saved[recipe_id] for cell, recipe_id in ids.items() if recipe_id in saved}
    pixels = {
        cell: live_pictures.get(run.owner, recipe_id, passport.digest, run.placement.decoder)
        for cell, recipe_id in ids.items()
        if cell not in entries
    }
    live = {cell: each for cell, each in pixels.items() if each is not None}
    return Reusable(passport=passport, from_library=entries, from_live=live)


class Saver:
    """A daemon thread, which still runs at exit, when `Engine.close` waits for it to save all."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = Lock()
        self._is_closed = False
        Thread(target=self._work, name="seedgrid-saver", daemon=True).start()

    def enqueue(self, function: Callable[[], object]) -> Future[None]:
        """Call a function on the saver's thread, in order; after `close`, cancel its future."""
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
        """Save pictures of a run by cell: all or none, but on a full disk each one that fits."""
        pictures = {
            cell: Picture(
                pixels=pixels,
                recipe=run.jobs[cell].recipe,
                passport=passport,
                lineage=run.jobs[cell].lineage,
            )
            for cell, pixels in painted
        }
        return self.enqueue(partial(_save, run, pictures))

    def save_reusable(self, run: Run, reusable: Reusable) -> tuple[Future[None], ...]:
        """Save and announce reusable pictures; those of live runs are announced as just painted."""
        cells = list(reusable.from_library.items())
        saved = [
            self.enqueue(partial(_save_copies, run, cells[at : at + _COPIED_TOGETHER]))
            for at in range(0, len(cells), _COPIED_TOGETHER)
        ]
        if reusable.from_live:
            saved.append(self.save(run, list(reusable.from_live.items()), reusable.passport))
        return tuple(saved)

    def flush(self, timeout_s: float) -> None:
        """Wait until what was enqueued is done, at most `timeout_s` seconds."""
        with contextlib.suppress(TimeoutError, CancelledError):
            self.enqueue(lambda: None).result(timeout_s)

    def close(self) -> None:
        """Accept nothing more; the thread ends when it has done what was enqueued."""
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
    """Save pictures by cell and announce them as finished; those of a live run are not saved."""
    try:
        if run.is_live:
            entries = tuple(map(_entry_without_file, pictures.values()))
        else:
            entries = run.library.add_together(list(pictures.values())) if pictures else ()
    except LibraryError as error:
        if error.code != "disk_full" or len(pictures) == 1:
            raise
        _save_each(run, pictures)
    else:
        pairs = zip(pictures, entries, strict=True)
        run.announce(*(Finished(cell=cell, entry=entry) for cell, entry in pairs))


def _entry_without_file(picture: Picture) -> Entry:
    """Return an entry as a library would; its path and its file's digest are empty."""
    return Entry(
        path=Path(),
        recipe=picture.recipe,
        passport=picture.passport,
        lineage=picture.lineage,
        pixels_sha256=picture.pixels_sha256,
        file_sha256="",
    )


def _save_each(run: Run, pictures: dict[int, Picture]) -> None:
    """Save each picture that fits on the disk; raise the last error of the others."""
    refused: LibraryError | None = None
    for cell, picture in pictures.items():
        try:
            _save(run, {cell: picture})
        except LibraryError as error:
            refused = error
    if refused is not None:
        raise refused


def _save_copies(run: Run, found: Sequence[tuple[int, Entry]]) -> None:
    """Announce pictures of the library; an ordinary run first adds copies in its own lineage."""
    cells, entries = zip(*found, strict=True)
    if not run.is_live:
        lineages = (run.jobs[cell].lineage for cell in cells)
        entries = run.library.add_again(*zip(entries, lineages, strict=True))
    pairs = zip(cells, entries, strict=True)
    run.announce(*(Finished(cell=cell, entry=entry, remembered=True) for cell, entry in pairs))
