"""PageState, where one browser is in the tree of choices, and PageUpdate, what changes on its page.

The state lives in that browser as ids, and is checked like anything from outside.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Final, ParamSpec

from pydantic import Field, ValidationError

from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.core.picture import PictureId, new_id
from seedgrid.core.recipe import Value
from seedgrid.web.serializers.stage import Json, complain

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


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """What changes on the page; None leaves a part as it is.

    Attributes:
        state: Where the browser is then, for those who ask in this process: `place` tells it.
        keyed: Whether addresses must say who asks, since the browser keeps no cookie.
        offer: What the settings offer with a model.
        place: Where the browser is then; told before what is shown there.
        fields: What the fields shall show, by name, of a dropped picture or a link.
        advice: What is to know of the fields before anything is painted.
        library: What the library found, or did to pictures.
        portable: What portable pictures cost here.
        queue: What else of this visitor's is painted or waits.
        live: How a live question was answered, by its number; or how long four pictures take.
    """

    state: PageState | None = None
    keyed: bool | None = None
    offer: Json | None = None
    place: Json | None = None
    fields: Json | None = None
    advice: list[Json] | None = None
    stage: Json | None = None
    status: Json | None = None
    rail: Json | None = None
    picked: Json | None = None
    library: Json | None = None
    verdict: Json | None = None
    portable: Json | None = None
    live: Json | None = None
    queue: list[Json] | None = None

    def parts(self) -> dict[str, Any]:
        """Return what changes, by the parts of the page."""
        return {k: v for k, v in vars(self).items() if v is not None and k != "state"}


P = ParamSpec("P")


def reports_errors(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
    """Have an action say what hinders it; then nothing else changes on the page.

    A library may refuse at any look: its folder is gone and cannot be made again, its disk is full.
    """

    @wraps(action)
    def answer(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
        try:
            return action(*args, **kwargs)
        except (SeedGridError, MemoryError) as met:
            error = as_ours(met)
            # No older news may cover it.
            return PageUpdate(status=complain(next_epoch(), error))

    return answer
