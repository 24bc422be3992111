"""PageState: the place of one browser in the tree of choices, as ids. The browser keeps it.

What a browser sends back is validated.
"""

from __future__ import annotations

import threading
import time
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from seedgrid.core.picture import PictureId, new_id
from seedgrid.core.recipe import Value

_MAX_EPOCH: Final = 2**53 - 2**20
"""JavaScript's numbers are exact up to 2**53; real epochs are far smaller."""


class PageState(Value):
    """Which round is on the stage, which picture is picked, which run goes on.

    Attributes:
        visitor: The browser's random id, for the queue.
        work: The work on the rail.
        round: The round on the stage.
        picked: The picture in the card: picked on the stage, or the parent of the round there.
        run: The last run that was started here.
        epoch: Grows with every update; the browser ignores smaller ones, so that late news of a run
            cannot replace newer content.
    """

    visitor: PictureId
    work: PictureId | None = None
    round: PictureId | None = None
    picked: PictureId | None = None
    run: PictureId | None = None
    epoch: Annotated[int, Field(ge=0, le=_MAX_EPOCH)] = 0

    def move(self, **changes: str | None) -> PageState:
        """Return a copy with other ids and a new epoch."""
        epoch = _EPOCHS.after(self.epoch)
        return self.model_copy(update={**changes, "epoch": epoch})

    def to_browser(self) -> dict[str, Any]:
        """Return it as the browser keeps it; the visitor is in a cookie."""
        return self.model_dump(mode="json", exclude={"visitor"})


class _Epochs:
    """Growing numbers: milliseconds of the clock, or one more where the clock has not advanced."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._last = 0

    def after(self, epoch: int) -> int:
        """Return a number above `epoch` and above all earlier ones of this process.

        The clock keeps it above the numbers of an earlier process, which open pages have seen.
        """
        with self._guard:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            return max(self._last, epoch + 1)


_EPOCHS: Final = _Epochs()


def next_epoch() -> int:
    """Return a number above all earlier ones."""
    return _EPOCHS.after(0)


def read_page_state(kept: object) -> PageState:
    """Read the state that a browser kept; an invalid one gives a new visitor's state."""
    visitor = {"visitor": new_id()}
    try:
        return PageState.model_validate(visitor | kept if isinstance(kept, dict) else visitor)
    except ValidationError:
        return PageState.model_validate(visitor)
