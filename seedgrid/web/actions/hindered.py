"""What a click is answered with when something hinders it: a sentence, not an error of the server.

A library may refuse at any look, also where a click only wants to see something: its folder is
gone and cannot be made again, its disk is full. Knows no component.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec

from seedgrid.core.errors import SeedGridError, told_of
from seedgrid.web.serializers import stage
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.state.page_state import read_page_state

P = ParamSpec("P")


def says_what_hinders(answer: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
    """Have a handler say what hinders it; then nothing else changes on the page."""
    parameters = signature(answer)

    @wraps(answer)
    def answered(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
        try:
            return answer(*args, **kwargs)
        except (SeedGridError, MemoryError) as met:
            error = met if isinstance(met, SeedGridError) else told_of(met)
            kept = parameters.bind(*args, **kwargs).arguments["kept"]
            # No older news may cover it.
            return PageUpdate(status=stage.complain(read_page_state(kept).move().epoch, error))

    return answered
