"""PageState, a browser's untrusted place in the tree of choices, and PageUpdate, what changes."""

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

_MAX_EPOCH: Final = 2**53 - 2**20  # JavaScript's numbers are exact up to 2**53


class PageState(Value):
    """Ids of the work and the round on the stage, the picture in the card, and the last run.

    `visitor` names this browser to the queue. `epoch` grows with every update; the browser shows
    the greatest, so late news overwrites nothing newer.
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
        """Return it as the browser keeps it: without the visitor, whom a cookie names."""
        return self.model_dump(mode="json", exclude={"visitor"})


class _Epochs:
    """Growing numbers, even if the clock stands still or steps back."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._last = 0

    def after(self, epoch: int) -> int:
        """Return a number above all before; it follows the clock, so it grows over restarts."""
        with self._guard:
            self._last = max(self._last + 1, time.time_ns() // 1_000_000)
            return max(self._last, epoch + 1)


_EPOCHS: Final = _Epochs()


def next_epoch() -> int:
    """Return an epoch above all that were given before."""
    return _EPOCHS.after(0)


def read_page_state(kept: object) -> PageState:
    """Read the state that a browser sends; a new visitor's where it cannot be read."""
    visitor = {"visitor": new_id()}
    try:
        return PageState.model_validate(visitor | kept if isinstance(kept, dict) else visitor)
    except ValidationError:
        return PageState.model_validate(visitor)


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """The parts of the page that change; None leaves a part as it is."""

    state: PageState | None = None  # For callers in this process; the browser gets `place`
    keyed: bool | None = None  # Whether addresses must name the visitor: no cookie is kept
    offer: Json | None = None  # The options of the settings with a model
    place: Json | None = None
    fields: Json | None = None  # Values for the fields, by name, of a dropped picture or a link
    advice: list[Json] | None = None  # Notices at fields, before anything is painted
    stage: Json | None = None
    status: Json | None = None
    rail: Json | None = None
    picked: Json | None = None
    library: Json | None = None
    verdict: Json | None = None
    portable: Json | None = None
    live: Json | None = None  # A live answer by its number, or how long four pictures take
    queue: list[Json] | None = None  # The visitor's other runs

    def parts(self) -> dict[str, Any]:
        """Return the parts that change, by name."""
        return {k: v for k, v in vars(self).items() if v is not None and k != "state"}


P = ParamSpec("P")


def reports_errors(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
    """Answer with an action's error in the status line; nothing else changes on the page."""

    @wraps(action)
    def answer(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
        try:
            return action(*args, **kwargs)
        except (SeedGridError, MemoryError) as error:
            # A new epoch: older news cannot replace it.
            return PageUpdate(status=complain(next_epoch(), as_ours(error)))

    return answer
