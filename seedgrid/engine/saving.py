"""Saving: puts painted pictures into a run's library and announces each that is safe.

Called on the saver's thread, beside the next batch. Knows nothing of who paints.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from seedgrid.core.entry import Entry
from seedgrid.core.errors import LibraryError
from seedgrid.core.events import Finished
from seedgrid.core.picture import Picture, Pixels
from seedgrid.core.recipe import Passport
from seedgrid.engine.run import Run

SAVED_TOGETHER: Final = 4
"""Pictures go into the library in one transaction: the disk is waited for once, not four times."""


def save(run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport) -> None:
    """Save a few pictures together; on a full disk each that finds room."""
    pictures = {
        cell: Picture(
            pixels=pixels,
            recipe=run.jobs[cell].recipe,
            passport=passport,
            lineage=run.jobs[cell].lineage,
        )
        for cell, pixels in painted
    }
    try:
        entries = run.library.add_together(list(pictures.values()))
    except LibraryError as error:
        if error.code != "disk_full" or len(painted) == 1:
            raise
        _save_one_by_one(run, painted, passport)
    else:
        finished = zip(pictures, entries, strict=True)
        run.announce(
            *(
                Finished(cell=cell, entry=entry, is_uniform=_is_uniform(pictures[cell].pixels))
                for cell, entry in finished
            )
        )


def _is_uniform(pixels: Pixels) -> bool:
    return bool((pixels == pixels[0, 0]).all())


def _save_one_by_one(run: Run, painted: Sequence[tuple[int, Pixels]], passport: Passport) -> None:
    errors: list[LibraryError] = []
    for one in painted:
        try:
            save(run, [one], passport)
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
