"""What the page is told: its parts as values, in one answer or piece by piece."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.web.serializers.stage import Json, complain
from seedgrid.web.state.page_state import PageState, next_epoch


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


def says_what_hinders(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
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
