"""What a trial found of portable arithmetic here: whether its bits are right, and what it costs.

Kept in the cache folder by the passport, like what a probe found. Needs no torch;
`portable/selftest.py` does the work.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from seedgrid.core.recipe import Passport, Value
from seedgrid.storage.cache import recall_value, remember_value

_CACHE: Final = "portable"


class PortableTrial(Value):
    """Portable arithmetic as one machine computes it.

    Attributes:
        wrong: The operations whose bits are not those of the definition; it may not be used then.
        times: How many times as long as torch's own arithmetic it takes.
    """

    wrong: tuple[str, ...]
    times: Annotated[float, Field(gt=0)]


def recall_trial(passport: Passport) -> PortableTrial | None:
    """Return what an earlier trial found under this passport, if there was one."""
    return recall_value(_CACHE, passport.digest, PortableTrial)


def keep_trial(passport: Passport, trial: PortableTrial) -> None:
    """Remember what a trial found."""
    remember_value(_CACHE, passport.digest, trial)
