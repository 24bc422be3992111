"""PageUpdate: the parts of the page that change, in one answer or in an event of a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.web.serializers.stage import Json, complain
from seedgrid.web.state.page_state import PageState, next_epoch


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """The parts of the page that change; None leaves a part as it is.

    Attributes:
        state: The new page state, for callers in this process; browsers get it in `place`.
        keyed: Whether addresses must name the visitor, since the browser keeps no cookie.
        offer: The entries of lists, and defaults, with a model.
        place: The new page state; applied before the other parts.
        fields: New values of fields, by name, from a dropped picture or a link.
        advice: Notices at fields.
        library: The library's answer.
        portable: The cost of portable pictures on this machine.
        queue: This visitor's other runs.
        live: The answer to a live request, by its number; or how long four pictures take.
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
        """Return the parts that change, by name."""
        return {k: v for k, v in vars(self).items() if v is not None and k != "state"}


P = ParamSpec("P")


def says_what_hinders(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
    """Have an action answer an error as a status line; nothing else changes on the page."""

    @wraps(action)
    def answer(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
        try:
            return action(*args, **kwargs)
        except (SeedGridError, MemoryError) as met:
            error = as_ours(met)
            # A new epoch: older news cannot replace it.
            return PageUpdate(status=complain(next_epoch(), error))

    return answer
