"""What a click is answered with when something hinders it: a sentence, not an error of the server.

A library may refuse at any look, also where a click only wants to see something: its folder is
gone and cannot be made again, its disk is full.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from seedgrid.core.errors import SeedGridError, told_of
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.state.page_state import next_epoch

P = ParamSpec("P")


def says_what_hinders(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
    """Have an action say what hinders it; then nothing else changes on the page."""

    @wraps(action)
    def answer(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
        try:
            return action(*args, **kwargs)
        except (SeedGridError, MemoryError) as met:
            error = met if isinstance(met, SeedGridError) else told_of(met)
            # No older news may cover it.
            return PageUpdate(status=stage.complain(next_epoch(), error))

    return answer
