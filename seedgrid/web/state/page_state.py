"""PageState: where one browser is in the tree of choices. It lives in that browser, ids only.

Knows nothing of pictures. What comes back from a browser is checked like anything from outside.
"""

from __future__ import annotations

import threading
import time
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from seedgrid.core.picture import PictureId, new_id
from seedgrid.core.recipe import Value

_MAX_EPOCH: Final = 2**53 - 2**20
"""A browser counts exactly up to 2**53; nobody's page comes near this one."""


class PageState(Value):
    """Which round is on the stage, which picture is picked, which run goes on.

    Attributes:
        visitor: Who this browser is to the queue; says nothing about the person.
        work: The tree.
        round: The round on the stage.
        picked: The picture in the card: picked on the stage, or the parent of the round there.
        run: The last run that was started here.
        epoch: Grows with everything that is shown; in the browser the greatest one wins, so that
            the last words of a run cannot overwrite what came after it.
    """

    visitor: PictureId
    work: PictureId | None = None
    round: PictureId | None = None
    picked: PictureId | None = None
    run: PictureId | None = None
    epoch: Annotated[int, Field(ge=0, le=_MAX_EPOCH)] = 0

    def move(self, **changes: str | None) -> PageState:
        """Return a copy with other ids, to be shown now."""
        epoch = _EPOCHS.after(self.epoch)
        return self.model_copy(update={**changes, "epoch": epoch})

    def to_browser(self) -> dict[str, Any]:
        """Return it as the browser keeps it: who it is, a cookie says."""
        return self.model_dump(mode="json", exclude={"visitor"})


class _Epochs:
    """Numbers that only grow: with the clock, and past it where it stands still or steps back."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._last = 0

    def after(self, epoch: int) -> int:
        """Return a number above `epoch` and above all that were given before by this process.

        The clock is in it for a program that was started again: pages that are still open have
        seen its numbers from before. What a browser says moves only that browser's own numbers.
        """
        with self._guard:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            return max(self._last, epoch + 1)


_EPOCHS: Final = _Epochs()


def next_epoch() -> int:
    """Return a number above all that were given before."""
    return _EPOCHS.after(0)


def read_page_state(kept: object) -> PageState:
    """Read what a browser kept; a new visitor's state when it is nothing that we wrote."""
    visitor = {"visitor": new_id()}
    try:
        return PageState.model_validate(visitor | kept if isinstance(kept, dict) else visitor)
    except ValidationError:
        return PageState.model_validate(visitor)
